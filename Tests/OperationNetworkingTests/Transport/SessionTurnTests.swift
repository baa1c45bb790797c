// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
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

    @Test func `actions that are deferred by a deferred action run, too`() async throws {
        let served = Locked<[String]>([])
        try await TestThread.run {
            let turn = SessionDeferredWork { 0 }
            let owner = Creditor()
            turn.deferWork {
                turn.deferWork(for: owner) { served.withLock { $0.append("inner") } }
                served.withLock { $0.append("outer") }
            }
            turn.performAll()
            #expect(!turn.hasItems)
            withExtendedLifetime(owner) {}
        }
        #expect(served.withLock { $0 } == ["outer", "inner"])
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

    #if OPERATIONKIT_LIBCURL
        @Test(arguments: [false, true])
        func `all tasks that await requests of a busy session continue, also if the session is closed`(
            closes: Bool
        ) async throws {
            let server = try LoopbackServer()
            server.route("/number") { _ in .json("1") }
            for _ in 0..<20 {
                let session = CurlSession.direct()
                let base = NetworkBase(server.url("/")) { $0.session = ExchangeSession(over: session) }
                let results = await withTaskGroup(of: Int?.self) { group in
                    for _ in 0..<32 { group.addTask { try? await base.get("number", as: Int.self).run() } }
                    if closes {
                        _ = await group.next()
                        session.close()
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                #expect(results.count == (closes ? 31 : 32) && (closes || results.allSatisfy { $0 == 1 }))
                session.close()
            }
            await server.stopped()
        }
    #endif
}
