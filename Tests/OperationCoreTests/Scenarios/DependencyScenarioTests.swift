// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: dependencies", .timeLimit(.minutes(Rounds.minutes)))
struct DependencyScenarioTests {
    @Test(
        "Scenario 9 (swift-corelibs-foundation#3261): randomly dropped, canceled and removed dependents are all freed",
        arguments: EdgeKind.allCases)
    func droppedAtRandom(kind: EdgeKind) async throws {
        let seed: UInt64 = 9
        let failure = try await TestThread.run { () -> String? in
            var random = SeededGenerator(seed: seed)
            let team = ThreadTeam(count: 4)
            let queue = OperationQueue()
            for round in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let upstream = kind.makeUpstream()
                upstream.operation.start()
                let freed = Arrivals(3)
                var actions: [@Sendable () -> Void] = [{ upstream.end() }]
                autoreleasing {
                    for _ in 0..<3 {
                        let downstream = kind.makeDownstream(trace: Trace(freed))
                        downstream.addDependency(upstream)
                        let action = Int.random(in: 0..<5, using: &random)
                        // A queued operation must end in its queue. Other operations are only dropped.
                        if action > 0 { queue.addOperation(downstream.operation) }
                        let last = LastReference(downstream.operation)
                        actions.append(misuse(downstream, upstream, action, last))
                    }
                }
                actions.shuffle(using: &random)
                if random.chance(1, in: 3) {
                    // One after another, before or after the end at random.
                    for action in actions { action() }
                } else {
                    team.run(actions)
                }
                actions = []
                guard freed.haveAllCome() else { return "round \(round): \(freed.missingCount) are alive" }
                if !upstream.operation.isFinished { return "round \(round): the dependency has not ended" }
            }
            queue.waitUntilAllOperationsAreFinished()
            return queue.operationCount == 0 ? nil : "the queue holds \(queue.operations)"
        }
        #expect(failure == nil, "seed \(seed)")
    }

    @Test(
        "Scenario 10 (swift-corelibs-foundation PR#2488): after random additions and removals, remaining edges count",
        arguments: 1...6)
    func edgesComeAndGo(seed: UInt64) async throws {
        try await expectNoFailures { failures in
            var random = SeededGenerator(seed: seed)
            for _ in 0..<Rounds.count(ci: 100, soak: 10_000) {
                let upstreams = (0..<12).map { _ in HeldWork() }
                let foreign = (0..<4).map { _ in ForeignHeldWork() }
                let all: [Operation] = upstreams + foreign
                for operation in all { operation.start() }
                let (ours, theirs) = (QuickWork(), ForeignQuickWork())
                var (oursWaits, theirsWaits): (Set<Int>, Set<Int>) = ([], [])
                var ended: Set<Int> = []
                let end = { (number: Int) in
                    guard ended.insert(number).inserted else { return }
                    number < 12 ? upstreams[number].finish(withResult: 1) : foreign[number - 12].end()
                }
                for _ in 0..<40 {
                    let number = Int.random(in: 0..<16, using: &random)
                    switch Int.random(in: 0..<8, using: &random) {
                    case 0: end(number)
                    case 1...4:
                        ours.addDependency(all[number])
                        oursWaits.insert(number)
                        guard number < 12 else { break }
                        theirs.addDependency(upstreams[number])
                        theirsWaits.insert(number)
                    default:
                        ours.removeDependency(all[number])
                        oursWaits.remove(number)
                        guard number < 12 else { break }
                        theirs.removeDependency(upstreams[number])
                        theirsWaits.remove(number)
                    }
                    if ours.isReady != oursWaits.isSubset(of: ended) { failures += 1 }
                    if theirs.isReady != theirsWaits.isSubset(of: ended) { failures += 1 }
                    if ours.dependencies.count != oursWaits.count { failures += 1 }
                }
                ours.start()
                if ours.isFinished != oursWaits.isSubset(of: ended) { failures += 1 }
                for number in 0..<16 { end(number) }
                ours.waitUntilFinished()
                if !theirs.isReady { failures += 1 }
                theirs.start()
                if ours.outcome != .success(1) || !theirs.isFinished { failures += 1 }
            }
        }
    }

    @Test("Scenario 20 (ProcedureKit PR#681): a dependency added to an operation waiting in a queue is respected")
    func addedWhilePending() async throws {
        let order = EventRecorder<String>()
        let isDone = try await TestThread.run {
            let queue = OperationQueue()
            let (first, second) = (HeldWork(), HeldWork())
            let ended = Arrivals(1)
            let operation = QuickWork { _ in order.record("operation") }
            operation.completionBlock = { ended.arrive() }
            operation.addDependency(first)
            queue.addOperation(operation)
            operation.addDependency(second)
            first.startAndFinish(withResult: 1)
            guard !operation.isReady, operation.dependencies.count == 2 else { return false }
            second.start()
            order.record("second")
            second.finish(withResult: 1)
            return ended.haveAllCome()
        }
        #expect(isDone)
        #expect(order.events == ["second", "operation"])
    }

    @Test(
        "Scenario 20 (ProcedureKit PR#777): a dependency added during the start is respected or refused",
        arguments: [false, true])
    func addedDuringStart(isForeign: Bool) async throws {
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 2)
            let queue = OperationQueue()
            for _ in 0..<Rounds.count(ci: 3_000, soak: 100_000) {
                let kind: EdgeKind = isForeign ? .oursOnForeign : .oursOnOurs
                let (upstream, ended, early) = (kind.makeUpstream(), Arrivals(1), Tally())
                upstream.operation.start()
                let operation = QuickWork { _ in if !upstream.operation.isFinished { early.add() } }
                operation.completionBlock = { ended.arrive() }
                let refusals = Tally()
                team.run([
                    { queue.addOperation(operation) },
                    {
                        do throws(OperationSetupError) {
                            try operation.depend(on: upstream.operation, otherwise: .runAnyway)
                        } catch {
                            refusals.add(error.code == .alreadyStarted ? 1 : 2)
                        }
                    },
                ])
                upstream.end()
                guard ended.haveAllCome() else { return failures += 1 }
                // Either the operation started before the dependency ended and the edge was refused, or it waited.
                if refusals.value > 1 || early.value > refusals.value { failures += 1 }
            }
        }
    }
}

/// The action on a dependent while the operation that it waits for ends.
private func misuse(
    _ downstream: Downstream, _ upstream: Upstream, _ action: Int, _ last: LastReference
) -> @Sendable () -> Void {
    switch action {
    case 0: { last.drop() }
    case 1:
        { [weak operation = downstream.operation] in
            last.drop()
            operation?.cancel()
        }
    case 2:
        {
            downstream.operation.cancel()
            last.drop()
        }
    case 3:
        {
            downstream.removeDependency(upstream)
            last.drop()
        }
    default:
        {
            downstream.removeDependency(upstream)
            downstream.operation.cancel()
            last.drop()
        }
    }
}
