// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Foundation's graph: removed dependencies and cycles", .timeLimit(.minutes(Rounds.minutes)))
struct RemovedDependencyTests {
    @Test(arguments: EdgeKind.allCases)
    func `L4: an operation whose only dependency was removed is ready and runs`(kind: EdgeKind) async throws {
        let ran = Arrivals(1)
        let isDone = try await TestThread.run {
            let upstream = kind.makeUpstream()
            let downstream = kind.makeDownstream { ran.arrive() }
            downstream.addDependency(upstream)
            #expect(!downstream.operation.isReady)
            downstream.removeDependency(upstream)
            #expect(downstream.operation.isReady)
            #expect(downstream.operation.dependencies.isEmpty)
            OperationQueue().addOperation(downstream.operation)
            return ran.haveAllCome()
        }
        #expect(isDone)
    }

    @Test(arguments: EdgeKind.allCases)
    func `L4: an operation waiting in a queue runs when its last dependency is removed`(kind: EdgeKind) async throws {
        let failures = try await TestThread.run {
            let queue = OperationQueue()
            for _ in 0..<Rounds.count(ci: 500, soak: 50_000) {
                let ran = Arrivals(1)
                let upstream = kind.makeUpstream()
                let downstream = kind.makeDownstream { ran.arrive() }
                downstream.addDependency(upstream)
                queue.addOperation(downstream.operation)
                downstream.removeDependency(upstream)
                guard ran.haveAllCome() else { return 1 }
                upstream.operation.start()
                upstream.end()
            }
            return 0
        }
        #expect(failures == 0)
    }

    @Test(arguments: EdgeKind.allCases)
    func `L4: a dependency that is removed while it ends is counted only once`(kind: EdgeKind) async throws {
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 2)
            for _ in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let (removed, kept) = (kind.makeUpstream(), kind.makeUpstream())
                let downstream = kind.makeDownstream()
                for upstream in [removed, kept] {
                    upstream.operation.start()
                    downstream.addDependency(upstream)
                }
                team.run([{ downstream.removeDependency(removed) }, { removed.end() }])
                if downstream.operation.isReady { failures += 1 }
                kept.end()
                if !downstream.operation.isReady { failures += 1 }
            }
        }
    }

    @Test func `L6: an operation cannot depend on itself, and still runs after the refused edge`() async throws {
        NoticeHub.install()
        let operation = QuickWork().named("Narcissus")
        operation.addDependency(operation)
        #expect(operation.dependencies.isEmpty)
        do {
            try operation.depend(on: operation, otherwise: .cancel)
            Issue.record("The edge was accepted.")
        } catch {
            #expect(error.code == .cycle)
            #expect(error.path == ["Narcissus", "Narcissus"])
            #expect(error.message == "Narcissus cannot depend on itself.")
        }
        #expect(try await operation.run() == 1)
    }

    @Test(
        "L7: concurrently adding the edges of a cycle does not deadlock, and one edge is refused",
        arguments: [2, 3, 5, 8])
    func concurrentCircle(length: Int) async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: length)
            for _ in 0..<Rounds.count(ci: 1_000, soak: 50_000) {
                let operations = (0..<length).map { _ in QuickWork() }
                let refusals = Tally()
                team.run(
                    (0..<length).map { position in
                        {
                            let next = operations[(position + 1) % length]
                            do { try operations[position].depend(on: next, otherwise: .runAnyway) } catch {
                                refusals.add()
                            }
                        }
                    })
                let edges = operations.reduce(0) { $0 + $1.dependencies.count }
                for operation in operations { operation.start() }
                for operation in operations { operation.waitUntilFinished() }
                if refusals.value != 1 || edges != length - 1 { failures += 1 }
            }
        }
    }
}
