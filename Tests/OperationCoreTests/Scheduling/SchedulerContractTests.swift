// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The scheduler and its operations, driven together through orders drawn from a seed, against what DESIGN promises.
@Suite("The scheduler's contract", .timeLimit(Rounds.timeLimit))
struct SchedulerContractTests {
    @Test func `in whatever order things happen, limits and order hold and nothing is lost`() {
        let count = UInt64(Rounds.count(ci: 3_000, soak: 100_000))
        let start = ContinuousClock.now
        var steps = 0
        let seeds: Range<UInt64>
        if let seed = ProcessInfo.processInfo.environment["OPERATIONKIT_SEED"].flatMap(UInt64.init) {
            seeds = seed..<seed + 1
        } else {
            seeds = Rounds.firstSeed..<Rounds.firstSeed + count
        }
        for seed in seeds {
            let scenario = SchedulerScenario(seed: seed)
            steps += scenario.run()
            guard scenario.faults.isEmpty else {
                Issue.record(
                    """
                    seed \(seed) (repeat with OPERATIONKIT_SEED=\(seed)): \(scenario.faults)
                    \(scenario.history.joined(separator: "\n"))
                    """)
                return
            }
        }
        print("soak: scheduler contract, \(seeds.count) schedules of \(steps) steps: \(start.duration(to: .now))")
    }
}

/// One schedule: a random graph on two queues, and what happens to it.
final class SchedulerScenario: @unchecked Sendable {
    // Sendable: all of it happens on one thread.

    /// One operation as the test sees it.
    private final class Member {
        let number: Int
        let operation: TypedOperation<Int, Flaw>
        let queue: Int
        let upstream: [Member]
        var isBarrier = false
        var isAdded = false
        var runs = 0
        var category: OperationCategory?

        init(_ number: Int, _ operation: TypedOperation<Int, Flaw>, queue: Int, upstream: [Member]) {
            self.number = number
            self.operation = operation
            self.queue = queue
            self.upstream = upstream
        }
    }

    private let workers: ManualWorkers
    private let areManyReady: Bool
    private let queues: [QueueManager]
    private var members: [Member] = []
    private var generator: SeededGenerator
    private let census = LiveObjects()
    private let wakes = Gates()
    private let categories = [OperationCategory("a"), OperationCategory("b", limit: 2)]
    private var waits = 0
    private(set) var faults: [String] = []
    private(set) var history: [String] = []

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        // Threads are dealt several only where many are ready.
        areManyReady = generator.chance(1, in: 2)
        workers = ManualWorkers(areBodiesShort: areManyReady)
        let widths = [Int.random(in: 1...3, using: &generator), Int.random(in: 1...2, using: &generator)]
        queues = widths.enumerated().map { [workers] in workers.makeQueue("q\($0)", width: $1) }
        // The lists of failures would hold operations.
        for queue in queues { queue.failureLimit = 0 }
        history.append("widths \(widths)")
    }

    /// Runs the schedule; returns how many steps it took.
    func run() -> Int {
        var steps = 0
        do {
            makeMembers()
            var explorer = Explorer(seed: generator.next())
            for index in 0..<3 {
                explorer.add("worker \(index)") { [workers] _ in workers.step(index) ? true : nil }
            }
            explorer.add("adder", asking: { [unowned self] in add(&$0) })
            explorer.add("meddler", asking: { [unowned self] in meddle(&$0) })
            explorer.add("finisher", asking: { [unowned self] in finish(&$0) })
            explorer.add("blocker", asking: { [unowned self] in block(&$0) })
            explorer.run { [unowned self] in
                steps += 1
                return faults.isEmpty && steps < 5_000
            }
            if faults.isEmpty { settle() }
            history.append("order \(explorer.order.joined(separator: ", "))")
        }
        members = []
        if faults.isEmpty, census.count > 0 { faults.append("alive at the end: \(census.types)") }
        return steps
    }

    private func makeMembers() {
        for number in 0..<Int.random(in: areManyReady ? 15...40 : 3...10, using: &generator) {
            let upstream = members.filter { _ in generator.chance(1, in: areManyReady ? 60 : 3) }
            let queue = Int.random(in: 0...1, using: &generator)
            let operation: TypedOperation<Int, Flaw>
            if generator.chance(areManyReady ? 9 : 5, in: 10) {
                let fails = generator.chance(1, in: 6)
                let body: @Sendable (SyncProbe) -> Void = { [unowned self] operation in
                    didBegin(number)
                    if fails { operation.finish(withError: .first) } else { operation.finish(withResult: number) }
                }
                operation = SyncProbe("\(number)", body)
            } else {
                let isPrompt = generator.chance(1, in: 3)
                operation = HandDriven(
                    "\(number)",
                    hooks: .init(main: { [unowned self] operation in
                        didBegin(number)
                        if isPrompt { operation.finish(withResult: number) }
                    }))
            }
            let member = Member(number, census.track(operation), queue: queue, upstream: upstream)
            for other in upstream { depend(operation, on: other.operation) }
            if generator.chance(1, in: 4) {
                member.category = categories.randomElement(using: &generator)
                operation.categories = member.category.map { [$0] } ?? []
            }
            // One that others of its queue wait for must not stand behind a barrier that waits for them.
            member.isBarrier = upstream.isEmpty && generator.chance(1, in: areManyReady ? 40 : 8)
            members.append(member)
        }
        history.append(
            members.map { "\($0.number) in q\($0.queue) after \($0.upstream.map(\.number))" }.joined(separator: "; "))
    }

    /// By an edge of any kind: one with a rule runs code of its own where the other ends.
    private func depend(_ operation: TypedOperation<Int, Flaw>, on other: TypedOperation<Int, Flaw>) {
        do {
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: try operation.depend(on: other, otherwise: .cancel)
            case 1: try operation.depend(on: other, otherwise: .fail { _ in .second })
            default: operation.addDependency(other)
            }
        } catch {
            fault("a dependency was refused: \(error)")
        }
    }

    // What the bodies see.

    private func didBegin(_ number: Int) {
        let member = members[number]
        member.runs += 1
        if member.runs > 1 { fault("\(number) ran twice") }
        if member.operation.isCancelled { fault("\(number) ran although it was cancelled") }
        for upstream in member.upstream where !upstream.operation.isFinished {
            fault("\(number) ran before \(upstream.number) ended")
        }
        let queue = queues[member.queue]
        let running = members.filter { $0.queue == member.queue && $0.runs > 0 && !$0.operation.isFinished }
        if let width = queue.width, running.count > width, !takenBeforeWidth[member.queue].contains(number) {
            fault("\(running.map(\.number)) run at once, width \(width)")
        }
        if let category = member.category {
            let users = members.filter { $0.category == category && $0.runs > 0 && !$0.operation.isFinished }
            if users.count > category.limit { fault("\(users.map(\.number)) use \(category) at once") }
        }
        for other in running where other !== member && (other.isBarrier || member.isBarrier) {
            fault("\(number) and \(other.number) run at once, and one is a barrier")
        }
        if queue.isSuspended, !takenBeforeSuspension[member.queue].contains(number) {
            fault("\(number) began in a suspended queue")
        }
        history.append("begins \(number)")
    }

    /// Those that a thread had when the width was made smaller, and when the queue was suspended.
    private var takenBeforeWidth: [Set<Int>] = [[], []]
    private var takenBeforeSuspension: [Set<Int>] = [[], []]

    private func taken(in queue: Int) -> Set<Int> {
        Set(queues[queue].snapshot.running.compactMap { Int($0.name) })
    }

    private func fault(_ text: String) { faults.append(text) }

    // The actors.

    private func add(_ generator: inout SeededGenerator) -> Bool? {
        let rest = members.filter { !$0.isAdded }
        guard let member = rest.randomElement(using: &generator) else { return false }
        // Behind a barrier of its queue, what comes before the barrier must not wait for it.
        let order = members.filter { $0.queue == member.queue && !$0.isAdded }
        let chosen = order.min { $0.number < $1.number } ?? member
        chosen.isAdded = true
        history.append("adds \(chosen.number)")
        do {
            let queue = queues[chosen.queue]
            if chosen.isBarrier, canBeBarrier(chosen) {
                try queue.addBarrier(chosen.operation)
            } else {
                chosen.isBarrier = false
                try queue.add(chosen.operation)
            }
        } catch {
            fault("\(chosen.number) was refused: \(error)")
        }
        return true
    }

    /// Whether nothing that was added to the queue before waits for something that is still to be added.
    private func canBeBarrier(_ member: Member) -> Bool {
        members.allSatisfy { other in
            other === member || other.isAdded && other.upstream.allSatisfy { $0.isAdded && $0 !== member }
                || !other.isAdded && other.number > member.number
        }
    }

    private func meddle(_ generator: inout SeededGenerator) -> Bool? {
        guard let member = members.randomElement(using: &generator) else { return false }
        let queue = queues[member.queue]
        switch Int.random(in: 0..<14, using: &generator) {
        case 0:
            history.append("cancels \(member.number)")
            member.operation.cancel()
        case 1:
            history.append("suspends q\(member.queue)")
            queue.isSuspended = true
            takenBeforeSuspension[member.queue] = taken(in: member.queue)
        case 2, 3, 4:
            history.append("resumes q\(member.queue)")
            queue.isSuspended = false
        case 5:
            let width = Int.random(in: 1...3, using: &generator)
            history.append("width \(width) of q\(member.queue)")
            queue.width = width
            takenBeforeWidth[member.queue] = taken(in: member.queue)
        case 6:
            member.operation.queuePriority = [.veryLow, .low, .normal, .high, .veryHigh].randomElement(
                using: &generator)!
        case 8:
            waits += 1
            queue.engine.whenDrained(QueueWait { [wakes] in wakes.pass() })
        case 9 where generator.chance(1, in: 10):
            history.append("cancels all of q\(member.queue)")
            queue.cancelAll()
        default: return generator.chance(1, in: 4) ? false : nil
        }
        return true
    }

    private func finish(_ generator: inout SeededGenerator) -> Bool? {
        let executing = members.filter { $0.operation.state == .executing && $0.operation is HandDriven }
        guard let member = executing.randomElement(using: &generator) else { return nil }
        history.append("finishes \(member.number)")
        (member.operation as? HandDriven)?.finish(withResult: member.number)
        return true
    }

    /// A body blocks: its thread takes no step, and the others do all that they find to do.
    ///
    /// Then nothing may be left that could begin.
    private func block(_ generator: inout SeededGenerator) -> Bool? {
        guard generator.chance(1, in: 12) else { return generator.chance(1, in: 8) ? false : nil }
        let blocked = (0..<workers.count).filter(workers.isBusy).randomElement(using: &generator)
        history.append("blocks worker \(blocked ?? -1)")
        let identity = blocked.flatMap(workers.identity)
        while let other = (0..<workers.count).first(where: { workers.identity($0) != identity }) { workers.step(other) }
        for queue in queues where queue.engine.isUnderused {
            fault("\(queue.name) has something to begin and no thread, while worker \(blocked ?? -1) is blocked")
        }
        return true
    }

    /// Lets everything end that can.
    private func settle() {
        for member in members where !member.isAdded {
            member.isAdded = true
            member.isBarrier = false
            do { try queues[member.queue].add(member.operation) } catch {
                fault("\(member.number) was refused: \(error)")
            }
        }
        for queue in queues { queue.isSuspended = false }
        var progress = true
        while progress {
            progress = workers.step()
            for case let operation as HandDriven in members.map(\.operation) where operation.state == .executing {
                operation.finish(withResult: 0)
                progress = true
            }
        }
        for member in members where !member.operation.isFinished {
            fault("\(member.number) was lost: \(member.operation.stateDescription)")
        }
        if workers.count > 0 { fault("\(workers.count) threads are left") }
        for queue in queues where !queue.engine.operations.isEmpty { fault("\(queue.name) is not empty") }
        let woken = wakes.count
        if woken != waits { fault("\(waits) waited and \(woken) woke") }
    }
}

/// Counts who was let through.
private final class Gates: Sendable {
    private let passed = Locked(0)
    var count: Int { passed.withLock { $0 } }
    func pass() { passed.withLock { $0 += 1 } }
}
