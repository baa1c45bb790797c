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
            let turn = SessionTurn { 0 }
            let (first, second) = (Creditor(), Creditor())
            turn.putOff(for: first) { served.withLock { $0.append("first") } }
            turn.putOff(for: second) { served.withLock { $0.append("second") } }
            turn.putOff(for: first) { served.withLock { $0.append("first again") } }
            #expect(turn.isOwing)
            turn.settle()
            #expect(!turn.isOwing)
            turn.settle()
            withExtendedLifetime((first, second)) {}
        }
        #expect(served.withLock { $0 } == ["first", "second"])
    }

    @Test func `deferred actions run when the first one is due`() async throws {
        let served = Locked(0)
        try await TestThread.run {
            let now = Locked<Int64>(0)
            let turn = SessionTurn { now.withLock { $0 } }
            let (first, second) = (Creditor(), Creditor())
            turn.putOff(for: first) { served.withLock { $0 += 1 } }
            now.withLock { $0 = 60_000 }
            turn.putOff(for: second) { served.withLock { $0 += 1 } }
            turn.settleIfDue()
            #expect(served.withLock { $0 } == 0)
            now.withLock { $0 = 100_000 }
            turn.settleIfDue()
            #expect(served.withLock { $0 } == 2)
            withExtendedLifetime((first, second)) {}
        }
    }
}
