// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Faults of groups in other libraries.
@Suite("Scenarios: groups", .nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct GroupScenarioTests {
    @Test(
        "Scenario 1 (ProcedureKit#352): a group whose children add siblings ends once if canceled at any moment",
        arguments: 1...4)
    func childAddsSibling(seed: UInt64) async throws {
        let flaw = try await TestThread.run { () -> String? in
            var random = SeededGenerator(seed: seed + Rounds.firstSeed)
            let (team, queue) = (ThreadTeam(count: 2), QueueManager("chain", width: 2))
            for round in 0..<Rounds.count(ci: 250, soak: 10_000) {
                let census = LiveObjects()
                let flaw = try { () -> String? in
                    let group = census.track(GroupOperation(policy: .failFast))
                    let late = EventRecorder<ManagedOperation>()
                    let refusals = EventRecorder<OperationSetupError.Code>()
                    let ends = Locked(0)
                    group.whenEnded { ends.withLock { $0 += 1 } }
                    @Sendable func next(_ number: Int) -> ManagedOperation {
                        let child = census.track(ClosureOperation { number })
                        late.record(child)
                        child.whenEnded { [weak group] in
                            guard number < 10, let group else { return }
                            let sibling = next(number + 1)
                            do throws(OperationSetupError) { try group.add(sibling) } catch {
                                refusals.record(error.code)
                            }
                        }
                        return child
                    }
                    try group.add(next(0))
                    let pause = Int.random(in: 0..<2_000, using: &random)
                    team.run([
                        { try? queue.add(group) },
                        {
                            for _ in 0..<pause { _ = group.isCancelled }
                            group.cancel()
                        },
                    ])
                    group.waitUntilFinished()
                    let children = late.events
                    // The observer is called a moment after the end is visible.
                    while ends.withLock({ $0 }) == 0 { sched_yield() }
                    if ends.withLock({ $0 }) != 1 { return "it did not end once" }
                    let lost = children.filter { !$0.isFinished }
                    // Refused children are unchanged, and accepted children have ended.
                    if lost.count != refusals.count { return "\(lost.count) lost, \(refusals.count) refused" }
                    if refusals.events.contains(where: { $0 != .closed }) { return "\(refusals.events)" }
                    return nil
                }()
                try queue.waitUntilAllFinished()
                if let flaw { return "round \(round): \(flaw)" }
                if census.countAtRest() > 0 { return "round \(round): alive \(census.types)" }
            }
            return nil
        }
        #expect(flaw == nil, "seed \(seed)")
    }

    @Test("Scenario 3 (ProcedureKit PR#532): the cause of a cancellation is exact, whatever errors the children throw")
    func causeIsExact() async {
        let began = EventRecorder<Int>()
        let children = (0..<3).map { number in
            TaskOperation<Int, any Error>(windsDownAfterCancellation: true) {
                began.record(number)
                let cancelled = Gate()
                await cancelled.openedByCancellation()
                throw Flaw.converted("\(number)")
            }
        }
        let told = EventRecorder<String>()
        let group = GroupOperation { group in
            try await withThrowingTaskGroup(of: Int.self) { tasks in
                for child in children { tasks.addTask { try await group.run(child) } }
                return try await tasks.reduce(0, +)
            }
        }
        group.callbackQueue = DispatchQueue(label: "told")
        group.failureHandler = { told.record("failure \($0)") }
        group.cancellationHandler = { told.record("\($0)") }
        group.start()
        _ = await began.events(atLeast: 3)
        await group.cancelAndEnd(because: .requested("reason R"))
        await group.callbackQueue.drain()
        #expect(told.events == ["[requested] reason R"] && group.cancellationCause == .requested("reason R"))
        #expect(children.allSatisfy { $0.cancellationCause?.code == .groupCancelled })
    }

    @Test("Scenario 11 (ProcedureKit#792): a group runs children with categories added before and after its start")
    func categories() async throws {
        let category = OperationCategory("group scenario 11")
        let queue = QueueManager("categories", width: 3)
        let make: @Sendable (Int) -> ClosureOperation<Int, Never> = { number in
            let child = ClosureOperation { number }
            child.categories = [category]
            return child
        }
        let group = GroupOperation(policy: .failFast)
        for number in 0..<10 { try group.add(make(number)) }
        let first = make(10)
        first.observe(on: .global()) { _ in try? group.add(make(11)) }
        try group.add(first)
        try group.add(
            GroupOperation { scope in
                try scope.add(make(12))
                return try await scope.run(make(13)) + scope.run(make(14))
            })
        try queue.add(group)
        await group.ended()
        #expect(group.outcome?.result != nil)
    }

    @Test(arguments: [0, 1, 10, 49])
    func `scenario 25 (taskflow#479): nested groups report a child's error at any depth`(depth: Int) async throws {
        @Sendable func nested(_ level: Int) -> GroupOperation<Int, GroupFailure> {
            let fails = level == depth
            let body: @Sendable () throws -> Int = {
                if fails { throw Flaw.first }
                return 1
            }
            if level % 2 == 0 {
                return GroupOperation { group in
                    async let aside = group.run(TaskOperation(body))
                    return level == 49 ? try await aside : try await group.run(nested(level + 1)) + aside
                }.named("level \(level)")
            }
            return GroupOperation(synchronous: { group in
                let own = try group.perform(ClosureOperation(body).named("leaf"))
                return level == 49 ? own : try group.perform(nested(level + 1)) + own
            }).named("level \(level)")
        }
        let queue = QueueManager("failing", width: 1)
        let group = nested(0)
        try queue.add(group)
        await group.ended()
        await queue.drained()
        #expect(group.outcome?.error?.root?.failure.error(as: Flaw.self) == .first)
        #expect(queue.counts.unended == 0)
    }

    @Test
    func `scenario 25 (taskflow#538): a group can be canceled while its children wait for a category`() async throws {
        let category = OperationCategory("group scenario 25")
        let holder = HandDriven("holder")
        holder.categories = [category]
        holder.start()
        let queue = QueueManager("waiting", width: 1)
        let children = (0..<5).map { number in
            let child = ClosureOperation { number }
            child.categories = [category]
            return child
        }
        let group = GroupOperation { group in try await group.run(GroupOperation.all(children)) }
        try queue.add(group)
        while children.contains(where: { !$0.isAskingForCategory }) { await Task.yield() }
        group.cancel()
        await queue.drained()
        #expect(group.isFinished && children.allSatisfy { $0.isFinished && $0.isCancelled })
        holder.finish(withResult: 1)
        let next = ClosureOperation { 1 }
        next.categories = [category]
        #expect(try await next.run() == 1)
    }
}

extension ManagedOperation {
    fileprivate var isAskingForCategory: Bool {
        if case .categories = admissionStanding { true } else { false }
    }
}

extension OperationFailure where ErrorType == any Error {
    fileprivate func error<Wanted>(as: Wanted.Type) -> Wanted? {
        if case .failed(let error) = self { error as? Wanted } else { nil }
    }
}
