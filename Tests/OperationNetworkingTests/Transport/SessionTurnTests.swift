// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

@testable import OperationNetworking

@Suite(.timeLimit(.minutes(3)))
struct SessionTurnTests {
    private final class Creditor: Sendable {}

    @Test func `each deferred action runs once per owner, in order`() async throws {
        let served = Locked<[String]>([])
        try await TestThread.run {
            let turn = SessionDeferredWork { 0 }
            let (first, second) = (Creditor(), Creditor())
            turn.deferWork(for: first) { served.withLock { $0.append("first") } }
            turn.deferWork(for: second) { served.withLock { $0.append("second") } }
            turn.deferWork(for: first) { served.withLock { $0.append("first again") } }
            #expect(turn.hasItems)
            turn.performAll()
            #expect(!turn.hasItems)
            turn.performAll()
            withExtendedLifetime((first, second)) {}
        }
        #expect(served.withLock { $0 } == ["first", "second"])
    }

    @Test func `deferred actions run when the first one is due`() async throws {
        let served = Locked(0)
        try await TestThread.run {
            let now = Locked<Int64>(0)
            let turn = SessionDeferredWork { now.withLock { $0 } }
            let (first, second) = (Creditor(), Creditor())
            turn.deferWork(for: first) { served.withLock { $0 += 1 } }
            now.withLock { $0 = 60_000 }
            turn.deferWork(for: second) { served.withLock { $0 += 1 } }
            turn.performIfDue()
            #expect(served.withLock { $0 } == 0)
            now.withLock { $0 = 100_000 }
            turn.performIfDue()
            #expect(served.withLock { $0 } == 2)
            withExtendedLifetime((first, second)) {}
        }
    }
}
