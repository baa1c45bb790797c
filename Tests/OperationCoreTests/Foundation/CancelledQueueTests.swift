// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Foundation's graph: canceling a queue", .timeLimit(.minutes(Rounds.minutes)))
struct CancelledQueueTests {
    @Test(
        "L3: canceling a queue frees 100 waiting dependents while their dependency still runs",
        arguments: EdgeKind.allCases)
    func headEndsLast(kind: EdgeKind) async throws {
        try await expectNoFailures { failures in
            for _ in 0..<Rounds.count(ci: 40, soak: 4_000) {
                let scene = Scene(kind)
                guard scene.headBegan.haveAllCome() else { return failures += 1 }
                scene.queue.cancelAllOperations()
                // All dependents are freed while the head still runs.
                guard scene.dependentsFreed.haveAllCome() else { return failures += 1 }
                if scene.head.operation.isFinished || scene.queue.operationCount != 1 { failures += 1 }
                scene.head.end()
                scene.queue.waitUntilAllOperationsAreFinished()
                if scene.runs.value != 0 || scene.queue.operationCount != 0 { failures += 1 }
            }
        }
    }

    @Test(arguments: EdgeKind.allCases)
    func `L3: a queue drains when it is canceled while the running dependency ends`(kind: EdgeKind) async throws {
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 2)
            for _ in 0..<Rounds.count(ci: 40, soak: 4_000) {
                let scene = Scene(kind)
                guard scene.headBegan.haveAllCome() else { return failures += 1 }
                team.run([{ scene.queue.cancelAllOperations() }, { scene.head.end() }])
                guard scene.dependentsFreed.haveAllCome() else { return failures += 1 }
                scene.queue.waitUntilAllOperationsAreFinished()
                if scene.queue.operationCount != 0 { failures += 1 }
            }
        }
    }
}

/// A queue with a running operation, the head, and 100 operations that depend on it.
///
/// Every other dependent also depends on its predecessor.
private struct Scene: Sendable {
    let queue = OperationQueue()
    let head: Upstream
    let headBegan = Arrivals(1)
    let dependentsFreed = Arrivals(Self.count)
    let runs = Tally()

    private static let count = 100

    init(_ kind: EdgeKind) {
        let (headBegan, dependentsFreed, runs) = (headBegan, dependentsFreed, runs)
        head = kind.makeUpstream { headBegan.arrive() }
        queue.addOperation(head.operation)
        var previous: QuickWork?
        for number in 0..<Self.count {
            let dependent = kind.makeDownstream(trace: Trace(dependentsFreed)) { runs.add() }
            dependent.addDependency(head)
            if number.isMultiple(of: 2), let previous {
                switch dependent {
                case .ours(let operation): operation.addDependency(previous)
                case .foreign(let operation): operation.addDependency(previous)
                }
            }
            if case .ours(let operation) = dependent { previous = operation }
            queue.addOperation(dependent.operation)
        }
    }
}
