// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit

/// One schedule: a random graph on two queues, and the events that happen to it.
final class SchedulerScenario: @unchecked Sendable {
    // Sendable: only one thread uses it.

    /// One operation as the test sees it.
    final class Member {
        let number: Int
        let operation: TypedOperation<Int, Flaw>
        let queue: Int
        let upstream: [Member]
        var isBarrier = false
        var isAdded = false
        var runs = 0
        var category: OperationCategory?
        var throttleKey: String?
        var owner: Int?
        /// The reason that its body must not run, if there is one.
        var reasonNotToRun: String?

        init(_ number: Int, _ operation: TypedOperation<Int, Flaw>, queue: Int, upstream: [Member]) {
            self.number = number
            self.operation = operation
            self.queue = queue
            self.upstream = upstream
        }

        var isInUse: Bool { runs > 0 && !operation.isFinished }
    }

    let workers: ManualWorkers
    let areManyReady: Bool
    let queues: [QueueManager]
    let clock = ManualClock()
    var members: [Member] = []
    var generator: SeededGenerator
    let census = LiveObjects()
    let wakes = Tally()
    let categories = [OperationCategory("a"), OperationCategory("b", limit: 2)]
    let throttle: OperationThrottle
    let owners: [OperationOwner]
    /// The object that is one of the owners, until it is freed.
    var screen: Screen? = Screen()
    var isCancellingOwner = false
    var waits = 0
    /// Closures and plain operations.
    var strangers = Strangers()
    /// The operations that a thread held when the width was reduced, and when the queue was suspended.
    var takenBeforeWidth: [Set<Int>] = [[], []]
    var takenBeforeSuspension: [Set<Int>] = [[], []]
    private(set) var faults: [String] = []
    var history: [String] = []

    struct Strangers {
        var added = 0
        var begun = 0
        /// Whether some of them may have been dropped.
        var mayBeDropped = false
        var operations: [Operation] = []
    }

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        // Threads take batches only if many operations are ready.
        areManyReady = generator.chance(1, in: 2)
        workers = ManualWorkers(areBodiesShort: areManyReady)
        throttle = OperationThrottle(clock: clock)
        owners = [.named("scheduler's contract \(seed)")] + (screen.map { [.object($0)] } ?? [])
        let widths = [Int.random(in: 1...3, using: &generator), Int.random(in: 1...2, using: &generator)]
        queues = widths.enumerated().map { [workers] in workers.makeQueue("q\($0)", width: $1) }
        // The lists of failures would hold operations.
        for queue in queues { queue.failureLimit = 0 }
        history.append("widths \(widths)")
    }

    /// Runs the schedule and returns the number of steps.
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
        letGoOfMembers()
        if faults.isEmpty, census.count > 0 { fault("alive at the end: \(census.types)") }
        return steps
    }

    private func letGoOfMembers() {
        // Objects that are freed with them may look for them.
        let gone = members
        members = []
        withExtendedLifetime(gone) {}
    }

    func fault(_ text: String) { faults.append(text) }
}

// The graph.
extension SchedulerScenario {
    private func makeMembers() {
        for number in 0..<Int.random(in: areManyReady ? 15...40 : 3...10, using: &generator) {
            let upstream = members.filter { _ in generator.chance(1, in: areManyReady ? 60 : 3) }
            let queue = Int.random(in: 0...1, using: &generator)
            let operation = makeOperation(number)
            let member = Member(number, census.track(operation), queue: queue, upstream: upstream)
            for other in upstream { depend(operation, on: other.operation) }
            if generator.chance(1, in: 4) {
                member.category = categories.randomElement(using: &generator)
                operation.categories = member.category.map { [$0] } ?? []
            }
            if generator.chance(1, in: areManyReady ? 12 : 4) { setOptions(of: member) }
            // An operation on which others of its queue depend must not stand behind a barrier that waits for them.
            member.isBarrier = upstream.isEmpty && generator.chance(1, in: areManyReady ? 40 : 8)
            members.append(member)
        }
        history.append(
            members.map { "\($0.number) in q\($0.queue) after \($0.upstream.map(\.number))" }.joined(separator: "; "))
    }

    private func makeOperation(_ number: Int) -> TypedOperation<Int, Flaw> {
        if generator.chance(areManyReady ? 9 : 5, in: 10) {
            let fails = generator.chance(1, in: 6)
            return SyncProbe("\(number)") { [unowned self] operation in
                didBegin(number)
                if fails { operation.finish(withError: .first) } else { operation.finish(withResult: number) }
            }
        }
        let isPrompt = generator.chance(1, in: 3)
        return HandDriven(
            "\(number)", isBrief: generator.chance(1, in: 2),
            hooks: .init(main: { [unowned self] operation in
                didBegin(number)
                if isPrompt { operation.finish(withResult: number) }
            }))
    }

    /// Adds a dependency of any kind.
    ///
    /// A dependency with a rule runs user code when the upstream operation ends.
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

    /// Sets the delay, timeout, throttle and owner, and an object whose deinit cancels others.
    private func setOptions(of member: Member) {
        let (number, operation) = (member.number, member.operation)
        operation.clock = clock
        if generator.chance(1, in: 3) { operation.startDelay = .seconds(Int.random(in: 1...4, using: &generator)) }
        if generator.chance(1, in: 4) {
            let timeout = Int.random(in: 0...3, using: &generator)
            operation.timeout = .seconds(timeout)
            if timeout == 0 { member.reasonNotToRun = "its timeout leaves no time" }
        }
        if generator.chance(1, in: 4) {
            let key = generator.chance(1, in: 2) ? "x" : "y"
            member.throttleKey = key
            operation.throttle = .init(
                key: key, interval: .seconds(Int.random(in: 0...2, using: &generator)),
                early: [.wait, .drop, .replace].randomElement(using: &generator) ?? .wait, in: throttle)
        }
        if generator.chance(1, in: 2) {
            let owner = Int.random(in: owners.indices, using: &generator)
            member.owner = owner
            operation.owner = owners[owner]
            // Other threads take their turns while the operations of the owner are canceled.
            operation.whenEnded { [unowned self] in stepWhileCancelling() }
        }
        if generator.chance(1, in: 4) {
            let word = lastWord("of \(number)")
            operation.whenEnded { withExtendedLifetime(word) {} }
        }
        history.append(
            "\(number): delay \(operation.startDelay), timeout \(operation.timeout.map { "\($0)" } ?? "none"), "
                + "throttle \(member.throttleKey ?? "none"), owner \(member.owner ?? -1)")
    }

    /// Returns an object that cancels a member when it is freed.
    func lastWord(_ whose: String) -> LastWord {
        let victim = Int.random(in: 0..<40, using: &generator)
        return LastWord { [weak self] in
            guard let self, members.indices.contains(victim) else { return }
            history.append("the last word \(whose) cancels \(victim)")
            members[victim].operation.cancel(because: .requested("by a last word"))
        }
    }
}

// The checks in the bodies.
extension SchedulerScenario {
    private func didBegin(_ number: Int) {
        let member = members[number]
        member.runs += 1
        history.append("begins \(number)")
        if member.runs > 1 { fault("\(number) ran twice") }
        if member.operation.isCancelled { fault("\(number) ran although it was canceled") }
        if let reason = member.reasonNotToRun { fault("\(number) ran although \(reason)") }
        for upstream in member.upstream {
            if !upstream.operation.isFinished { fault("\(number) ran before \(upstream.number) ended") }
            if let owner = member.owner, upstream.owner == owner,
                upstream.operation.cancellationCause?.code == .ownerCancelled
            {
                fault("\(number) began because \(upstream.number) of the same owner was canceled")
            }
        }
        if member.owner.map({ owners[$0].isGone }) == true { fault("\(number) began although its owner is gone") }
        checkLimits(member)
    }

    private func checkLimits(_ member: Member) {
        let number = member.number
        let queue = queues[member.queue]
        let running = members.filter { $0.queue == member.queue && $0.isInUse }
        if let width = queue.width, running.count > width, !takenBeforeWidth[member.queue].contains(number) {
            fault("\(running.map(\.number)) run at once, width \(width)")
        }
        if let category = member.category {
            let users = members.filter { $0.category == category && $0.isInUse }
            if users.count > category.limit { fault("\(users.map(\.number)) use \(category) at once") }
        }
        if let key = member.throttleKey {
            let users = members.filter { $0.throttleKey == key && $0.isInUse }
            if users.count > 1 { fault("\(users.map(\.number)) run at once under the key \(key)") }
        }
        for other in running where other !== member && (other.isBarrier || member.isBarrier) {
            fault("\(number) and \(other.number) run at once, and one is a barrier")
        }
        if queue.isSuspended, !takenBeforeSuspension[member.queue].contains(number) {
            fault("\(number) began in a suspended queue")
        }
    }
}
