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

    @Test(
        "L4: removing one of two dependencies, ended or not, leaves the other in force",
        arguments: EdgeKind.allCases, [false, true])
    func oneOfTwo(kind: EdgeKind, isEnded: Bool) {
        let (removed, kept) = (kind.makeUpstream(), kind.makeUpstream())
        let downstream = kind.makeDownstream()
        downstream.addDependency(removed)
        downstream.addDependency(kept)
        for upstream in [removed, kept] { upstream.operation.start() }
        if isEnded { removed.end() }
        downstream.removeDependency(removed)
        #expect(!downstream.operation.isReady && (isEnded || downstream.operation.dependencies.count == 1))
        if !isEnded { removed.end() }
        #expect(!downstream.operation.isReady)
        kept.end()
        #expect(downstream.operation.isReady)
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

    @Test func `L4: a dependency can be removed after any number of others were added and removed`() {
        var failures: [String] = []
        for count in 1...40 {
            for lost in 1...count {
                let operation = QuickWork()
                let others = (0..<count).map { _ in HeldWork() }
                for other in others { operation.addDependency(other) }
                for other in others.prefix(lost) { operation.removeDependency(other) }
                let late = HeldWork()
                for _ in 0..<2 { operation.addDependency(late) }
                let isCounted = operation.dependencies.count == count - lost + 1
                for other in [late] + others.dropFirst(lost) { operation.removeDependency(other) }
                if !isCounted || !operation.isReady || !operation.dependencies.isEmpty {
                    failures.append("\(lost) of \(count)")
                }
            }
        }
        #expect(failures.isEmpty)
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

    @Test func `L7: an edge that would close a cycle is refused, and all operations run`() async throws {
        NoticeHub.install()
        let operations = ["A", "B", "C"].map { name in
            let operation = QuickWork().named(name)
            return operation
        }
        operations[0].addDependency(operations[1])
        operations[1].addDependency(operations[2])
        operations[2].addDependency(operations[0])
        #expect(operations[2].dependencies.isEmpty)
        do {
            try operations[2].depend(on: operations[0], otherwise: .runAnyway)
            Issue.record("The edge was accepted.")
        } catch {
            #expect(error.path == ["C", "A", "B", "C"])
        }
        let queue = OperationQueue()
        for operation in operations { queue.addOperation(operation) }
        for operation in operations { #expect(try await operation.value == 1) }
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
