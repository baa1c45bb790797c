// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Foundation's graph: dependents that are freed early", .timeLimit(.minutes(Rounds.minutes)))
struct FreedDependentTests {
    @Test(arguments: EdgeKind.allCases)
    func `L1: a dependent can be freed before its dependency ends`(kind: EdgeKind) async throws {
        try await expectNoFailures { failures in
            for _ in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let upstream = kind.makeUpstream()
                upstream.operation.start()
                let census = LiveObjects()
                autoreleasing {
                    let downstream = kind.makeDownstream()
                    census.track(downstream.operation)
                    downstream.addDependency(upstream)
                }
                if census.count != 0 { failures += 1 }
                upstream.end()
                if !upstream.operation.isFinished { failures += 1 }
            }
        }
    }

    @Test(arguments: EdgeKind.allCases)
    func `L2: a dependent canceled in a queue is freed before its dependency ends`(kind: EdgeKind) async throws {
        try await expectNoFailures { failures in
            let queue = OperationQueue()
            for _ in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let upstream = kind.makeUpstream()
                upstream.operation.start()
                let freed = Arrivals(1)
                autoreleasing {
                    let downstream = kind.makeDownstream(trace: Trace(freed))
                    downstream.addDependency(upstream)
                    queue.addOperation(downstream.operation)
                    downstream.operation.cancel()
                }
                guard freed.haveAllCome() else { return failures += 1 }
                upstream.end()
                if !upstream.operation.isFinished { failures += 1 }
            }
        }
    }

    @Test(arguments: EdgeKind.allCases)
    func `L2: a dependent canceled while its dependency ends runs at most once`(kind: EdgeKind) async throws {
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 2)
            let queue = OperationQueue()
            for _ in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let upstream = kind.makeUpstream()
                upstream.operation.start()
                let freed = Arrivals(1)
                let runs = Tally()
                autoreleasing {
                    let downstream = kind.makeDownstream(trace: Trace(freed)) { runs.add() }
                    downstream.addDependency(upstream)
                    queue.addOperation(downstream.operation)
                    let operation = downstream.operation
                    team.run([{ operation.cancel() }, { upstream.end() }])
                }
                guard freed.haveAllCome() else { return failures += 1 }
                if runs.value > 1 { failures += 1 }
            }
        }
    }
}

/// Runs `body` in a scope whose variables are released when it returns.
@inline(never)
func autoreleasing<Result>(_ body: () -> Result) -> Result { body() }
