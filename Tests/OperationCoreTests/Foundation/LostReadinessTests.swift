// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

// A queue reads `isReady` and records the value later. If the last dependency ends in between on another thread,
// Foundation on Linux never checks again. Each round waits for its own operation, because a later operation would wake
// the queue and hide the lost one.
@Suite("Foundation's queue: lost readiness", .timeLimit(.minutes(Rounds.minutes)))
struct LostReadinessTests {
    @Test(
        "An operation runs when its manually started dependency ends while a queue adds the operation",
        arguments: EdgeKind.allCases)
    func dependencyEnds(kind: EdgeKind) async throws {
        let rounds = Rounds.count(ci: 4_000, soak: 200_000)
        let lost = try await TestThread.run { () -> Int? in
            let team = ThreadTeam(count: 2)
            let queue = OperationQueue()
            for round in 0..<rounds {
                let ran = Arrivals(1)
                let upstream = kind.makeUpstream()
                upstream.operation.start()
                let downstream = kind.makeDownstream { ran.arrive() }
                downstream.addDependency(upstream)
                let operation = downstream.operation
                team.run([{ queue.addOperation(operation) }, { upstream.end() }])
                guard ran.haveAllCome() else { return round }
            }
            return nil
        }
        #expect(lost == nil, "The operation of this round was lost.")
        if Rounds.isSoak { print("soak: lost readiness, \(kind.rawValue): \(rounds) rounds") }
    }

    @Test("An operation runs when its dependencies end on three threads while a queue adds the operation")
    func dependenciesEnd() async throws {
        let lost = try await TestThread.run { () -> Int? in
            let team = ThreadTeam(count: 4)
            let queue = OperationQueue()
            for round in 0..<Rounds.count(ci: 3_000, soak: 100_000) {
                let ran = Arrivals(1)
                let upstream = [QuickWork(), QuickWork(), QuickWork()]
                let downstream = QuickWork { _ in ran.arrive() }
                for operation in upstream { downstream.addDependency(operation) }
                team.run([
                    { queue.addOperation(downstream) }, { upstream[0].start() }, { upstream[1].start() },
                    { upstream[2].start() },
                ])
                guard ran.haveAllCome() else { return round }
            }
            return nil
        }
        #expect(lost == nil, "The operation of this round was lost.")
    }

    @Test(
        "An operation ends if it is canceled or loses its dependency while a full queue adds it",
        arguments: [false, true])
    func cancelledOrFreed(cancelled: Bool) async throws {
        let lost = try await TestThread.run { () -> Int? in
            let team = ThreadTeam(count: 3)
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            for round in 0..<Rounds.count(ci: 3_000, soak: 100_000) {
                let ended = Arrivals(2)
                let (upstream, busy) = (HeldWork(), HeldWork())
                let downstream = QuickWork()
                downstream.addDependency(upstream)
                for operation in [busy, downstream] as [ManagedOperation] {
                    operation.completionBlock = { ended.arrive() }
                }
                queue.addOperation(busy)
                team.run([
                    { queue.addOperation(downstream) },
                    { cancelled ? downstream.cancel() : downstream.removeDependency(upstream) },
                    { busy.finish(withResult: 1) },
                ])
                guard ended.haveAllCome() else { return round }
            }
            return nil
        }
        #expect(lost == nil, "The operation of this round was lost.")
    }
}
