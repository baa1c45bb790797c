// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Groups that are canceled at a random moment, with real threads and step by step.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(Rounds.minutes)))
struct GroupRaceTests {
    /// Creates trees of groups of all kinds.
    private struct Maker: Sendable {
        let census: LiveObjects

        /// Creates a group from a seed, with all operations in it.
        func group(_ seed: UInt64, depth: Int) -> GroupOperation<Int, GroupFailure> {
            var random = SeededGenerator(seed: seed)
            let seeds = (0..<Int.random(in: 1...3, using: &random)).map { _ in random.next() }
            let width = [nil, nil, 1, 2][Int.random(in: 0..<4, using: &random)]
            let children: @Sendable () -> [TypedOperation<Int, any Error>] = {
                seeds.map { child($0, depth: depth - 1) }
            }
            let group: GroupOperation<Int, GroupFailure>
            switch Int.random(in: 0..<7, using: &random) {
            case 0:
                group = GroupOperation(width: width) { scope in
                    try await withThrowingTaskGroup(of: Int.self) { tasks in
                        for child in children() { tasks.addTask { try await scope.run(child) } }
                        return try await tasks.reduce(0, +)
                    }
                }
            case 1:
                group = GroupOperation(width: width) { scope in
                    var sum = 0
                    for child in children() { sum += try await scope.run(child) }
                    return sum
                }
            case 2, 3:
                group = GroupOperation(
                    width: width,
                    synchronous: { scope in
                        try children().reduce(0) { try $0 + scope.perform($1) }
                    })
            case 4:
                group = GroupOperation { scope in
                    let all = GroupOperation.all(children(), width: width)
                    watch(all)
                    let shielded = try await scope.shield { try await $0.run(ClosureOperation { 1 }) }
                    return try await scope.run(all).reduce(0, +) + shielded
                }
            case 5:
                let fails = random.chance(1, in: 6)
                group = GroupOperation { scope in
                    let numbers = Numbers { index in
                        await Task.yield()
                        if fails, index == seeds.count { throw Flaw.second }
                        return index < seeds.count ? index : nil
                    }
                    let map = GroupOperation.map(numbers, width: width ?? 2) { child(seeds[$0], depth: depth - 1) }
                    watch(map)
                    return try await scope.run(map).reduce(0, +)
                }
            default:
                group = GroupOperation { scope in
                    let map = GroupOperation.map(seeds, width: width ?? 2) { child($0, depth: depth - 1) }
                    watch(map)
                    return try await scope.run(map).reduce(0, +)
                }
            }
            watch(group)
            return group
        }

        private func child(_ seed: UInt64, depth: Int) -> TypedOperation<Int, any Error> {
            if depth > 0 { return tracked(group(seed, depth: depth).mapError { $0 }) }
            var random = SeededGenerator(seed: seed)
            let fails = random.chance(1, in: 12)
            let body: @Sendable () throws -> Int = {
                if fails { throw Flaw.first }
                return 1
            }
            let leaf: TypedOperation<Int, any Error> =
                random.chance(1, in: 2)
                ? ClosureOperation(body)
                : TaskOperation(windsDownAfterCancellation: random.chance(1, in: 2)) {
                    await Task.yield()
                    return try body()
                }
            watch(leaf)
            return leaf
        }

        private func tracked<Made: ManagedOperation>(_ operation: Made) -> Made { census.track(operation) }

        private func watch(_ operation: ManagedOperation) {
            census.track(operation)
        }
    }

    @Test(arguments: 1...4)
    func `a tree of groups that is canceled at a random moment ends once and is freed`(part: UInt64) async throws {
        let flaw = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 2)
            let first = Rounds.firstSeed &+ part &* 1_000_000
            for seed in first..<first + UInt64(Rounds.count(ci: 300, soak: 25_000)) {
                if let flaw = try Self.round(seed, team) { return "seed \(seed): \(flaw)" }
            }
            return nil
        }
        #expect(flaw == nil)
    }

    private static func round(_ seed: UInt64, _ team: ThreadTeam) throws -> String? {
        var random = SeededGenerator(seed: seed)
        let census = LiveObjects()
        let queue = QueueManager("race", width: [1, 1, 2, 4, nil][Int.random(in: 0..<5, using: &random)])
        // The list of failures would keep operations alive.
        queue.failureLimit = 0
        let pause = Int.random(in: 0..<Int(1 << Int.random(in: 0..<14, using: &random)), using: &random)
        let cancels = random.chance(4, in: 5)
        let suspends = random.chance(1, in: 4)
        let flaw = try { () -> String? in
            let maker = Maker(census: census)
            let group = maker.group(random.next(), depth: 3)
            let ends = Locked(0)
            group.whenEnded { ends.withLock { $0 += 1 } }
            team.run([
                { try? queue.add(group) },
                {
                    for _ in 0..<pause { _ = group.state }
                    if suspends {
                        group.suspend()
                        group.resume()
                    }
                    if cancels { group.cancel(because: .requested("race")) }
                },
            ])
            group.waitUntilFinished()
            try queue.waitUntilAllFinished()
            // The observer is called a moment after the end is visible.
            while ends.withLock({ $0 }) == 0 { sched_yield() }
            if ends.withLock({ $0 }) != 1 { return "ended \(ends.withLock { $0 }) times" }
            if group.isCancelled, group.cancellationCause != .requested("race") {
                return "cancelled for \(String(describing: group.cancellationCause))"
            }
            return group.outcome == nil ? "no outcome" : nil
        }()
        if let flaw { return flaw }
        return census.countAtRest() == 0 ? nil : "alive: \(census.types)"
    }

    @Test func `step by step: a declared group ends once, after its children, for any order of events`() throws {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 3_000, soak: 100_000)) {
            if let flaw = try Self.course(seed) {
                Issue.record("seed \(seed): \(flaw)")
                return
            }
        }
    }

    private static func course(_ seed: UInt64) throws -> String? {
        let census = LiveObjects()
        let workers = ManualWorkers()
        let flaw = try { () -> String? in
            var random = SeededGenerator(seed: seed)
            let queue = workers.makeQueue(width: 2)
            queue.failureLimit = 0
            let policy: GroupPolicy = [.failFast, .collectAll, .firstSuccess, .quorum(2)][Int(seed % 4)]
            let group = census.track(GroupOperation(policy: policy, width: [nil, 1, 2][Int(seed % 3)]))
            let inner = census.track(GroupOperation(policy: .failFast))
            let children = (0..<4).map { number in
                census.track(HandDriven("\(number)", windsDown: random.chance(1, in: 3)))
            }
            if random.chance(1, in: 2) { try children[1].depend(on: children[0], otherwise: .cancel) }
            try group.add(children[0])
            try group.add(inner)
            try inner.add(children[3])
            let order = EventRecorder<String>()
            for operation in children + [inner, group] as [ManagedOperation] {
                let name = operation === group ? "group" : "child"
                operation.whenEnded { order.record(name) }
            }
            var explorer = Explorer(seed: seed)
            explorer.add("queue", { try? queue.add(group) })
            var refused: [HandDriven] = []
            let add = { (child: HandDriven) in
                do throws(OperationSetupError) { try group.add(child) } catch { refused.append(child) }
            }
            explorer.add("late", { add(children[1]) }, { add(children[2]) })
            explorer.add("hold", { group.suspend() }, { group.resume() })
            if random.chance(1, in: 2) { explorer.add("cancel", { group.cancel() }) }
            for child in children {
                explorer.add(
                    "end",
                    asking: { random in
                        if child.isFinished { return false }
                        guard child.isExecuting else { return nil }
                        if random.chance(1, in: 3) {
                            child.finish(withError: .first)
                        } else {
                            child.finish(withResult: 1)
                        }
                        return true
                    })
            }
            explorer.add("work", asking: { _ in workers.step() ? true : group.isFinished ? false : nil })
            explorer.run()
            group.resume()
            for _ in 0..<20 {
                workers.runAll()
                for child in children where child.isExecuting { child.finish(withResult: 1) }
            }
            let events = order.events
            guard events.count(where: { $0 == "group" }) == 1 else { return "\(events) \(group.state)" }
            let lost = children.filter { child in !child.isFinished && !refused.contains { $0 === child } }
            if !lost.isEmpty || refused.contains(where: { $0.isFinished || $0.isExecuting }) {
                return "left: \(children.map(\.state))"
            }
            // Refused children are unchanged, and all others ended before the group.
            return events.last == "group" && events.count == 6 - refused.count ? nil : "\(events)"
        }()
        if let flaw { return flaw }
        return census.count == 0 ? nil : "alive: \(census.types)"
    }
}
