// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why an operation does not run, or where else it is: facts for a program, a sentence for a person.
///
/// ```swift
/// let queue = QueueManager("uploads")
/// let prepare = ClosureOperation { 1 }, upload = ClosureOperation { 2 }
/// upload.addDependency(prepare)
/// try queue.add(upload)
/// print(queue.explain(upload))
/// // ClosureOperation<Int, Never> waits in queue uploads: for ClosureOperation<Int, Never>
/// // (not started, and in no queue: nobody will start it).
/// ```
///
/// It tells of the moment in which it was made; dependencies are asked one after another, so they may have moved on.
public struct QueueExplanation: Sendable, CustomStringConvertible {
    /// The operation that it is about.
    public let operation: Operation
    /// The queue that was asked.
    public let queue: String
    /// Where the operation stands.
    public let standing: OperationStanding
    /// All that keeps it from running; none if nothing does, or if it is not in the queue.
    public let reasons: [Reason]

    /// One thing that keeps an operation from running.
    ///
    /// More cases may be added.
    public enum Reason: Sendable {
        /// An operation that has not ended.
        case dependency(Dependency)
        /// A delay, or something by which it was not admitted yet.
        case hold(Hold)
        /// The queue is suspended, and why or by whom, if that was said: see ``QueueManager/suspend(because:)``.
        case suspended(because: String?)
        /// It is a barrier, or stands behind one.
        case barrier(BarrierWait)
        /// As many run as may, and these they are.
        case width(Int, holders: [QueueEntry])
        /// All threads that the queue may have are taken by these.
        case threads(Int, holders: [QueueEntry])
        /// The queues of the process have as many threads as they may, which all have something to do.
        case threadLimit(Int)
        /// So many that are ready are more urgent.
        case turn(ahead: Int)
        /// An operation of another kind says by itself that it is not ready.
        case ownReadiness
        /// It began, and was put on hold.
        case operationSuspended
        /// It began, and waits for something in the middle of its work, without a place of the queue.
        case resting(WaitReason)
        /// It was cancelled, and its body winds down.
        case windingDown
    }

    /// An operation that another waits for.
    public struct Dependency: Sendable {
        /// The operation that is waited for.
        public let operation: Operation
        /// Where it stands.
        public let standing: OperationStanding
    }

    /// What holds back an entry of whose dependencies none is left.
    public struct Hold: Sendable {
        /// What it is: `delay`, `condition`, `throttle`, `category`, `group` (which is suspended) or `groupWidth`; others
        /// may be added.
        public let kind: String
        /// What there is to say about it, as the rest of a sentence that begins with "by".
        public let detail: String
        /// Those that have what it needs, in whatever queue they are.
        public let holders: [Operation]
    }

    /// What a barrier makes an entry wait for.
    public struct BarrierWait: Sendable {
        /// Whether the entry is a barrier itself.
        public let isBarrier: Bool
        /// The barriers before it, in no order.
        public let barriers: [QueueEntry]
        /// All that must end before it, the barriers included, in no order.
        public let ahead: [QueueEntry]
    }
}

/// Where an operation stands, in a queue or out of one.
///
/// More cases may be added.
public enum OperationStanding: Sendable, Hashable, CustomStringConvertible {
    /// In a queue of this package, of that name.
    case inQueue(String, QueueEntry.State)
    /// A child of a group of that name, which has not given it to a queue yet.
    case inGroup(String)
    /// In an `OperationQueue`; this can be seen on Linux only.
    case inOperationQueue
    /// In no queue that could be seen, and started.
    case executing
    /// In no queue that could be seen, and started, but what it waits for has not ended.
    case startedAndWaiting
    /// In no queue that could be seen, and not started: nobody will start it unless you do.
    case notStarted
    /// It ended.
    case ended(QueueEntry.Ending)

    /// Where it stands, in words.
    public var description: String {
        switch self {
        case .inQueue(let queue, let state): "\(state) in queue \(queue)"
        case .inGroup(let group): "a child of \(group), waiting for the group's start or for a place in it"
        case .inOperationQueue: "in an OperationQueue"
        case .executing: "executing, in no queue"
        case .startedAndWaiting: "started by hand, waiting for its dependencies"
        case .notStarted: "not started, and in no queue: nobody will start it"
        case .ended(.success): "ended"
        case .ended(.failure): "failed"
        case .ended(.cancelled): "cancelled"
        }
    }
}

extension QueueExplanation {
    /// All of it as a sentence.
    public var description: String {
        let subject = "\(operation.displayName) \(verb)"
        if reasons.isEmpty { return subject + "." }
        return subject + ": " + reasons.map(\.description).joined(separator: "; ") + "."
    }

    private var verb: String {
        guard case .inQueue(let other, let state) = standing else { return "is not in queue \(queue): \(standing)" }
        if other != queue { return "is not in queue \(queue), but \(standing)" }
        return switch state {
        case .waiting: "waits in queue \(queue)"
        case .held: "is held in queue \(queue)"
        case .ready: reasons.isEmpty ? "is about to begin in queue \(queue)" : "is ready in queue \(queue)"
        case .running: "runs in queue \(queue)"
        case .ending: "was cancelled in queue \(queue), and is about to end"
        }
    }
}

extension QueueExplanation.Reason: CustomStringConvertible {
    /// The reason as a part of a sentence.
    public var description: String {
        switch self {
        case .dependency(let dependency): "for \(dependency.operation.displayName) (\(dependency.standing))"
        case .hold(let hold): "by \(hold.detail)\(hold.saysWho ? "" : ", held by \(names(of: hold.holders))")"
        case .suspended(let reason): "the queue is suspended" + (reason.map { " (\($0))" } ?? "")
        case .threadLimit(let count): "all \(count) threads that the queues of the process may have are taken"
        case .barrier(let wait): wait.description
        case .width(let width, let holders): "all of its \(width) places are taken, by \(names(holders))"
        case .threads(let count, let holders):
            "all \(count) threads that it has now are busy, with "
                + (holders.isEmpty ? "bodies of operations that ended" : names(holders))
        case .turn(let ahead): "\(ahead) that are ready come before it"
        case .ownReadiness: "its own isReady is false"
        case .operationSuspended: "it began, and was suspended"
        case .resting(let reason): "\(reason)"
        case .windingDown: "it was cancelled, and its body winds down"
        }
    }
}

extension QueueExplanation.Hold {
    /// Whether the detail names all that there is to name.
    fileprivate var saysWho: Bool { holders.isEmpty || kind == "throttle" }

    /// A key that may not run yet.
    static func throttle(_ key: String, until: OperationInstant, _ runner: ManagedOperation?) -> Self {
        let ends = runner.map { "\($0.displayName) has ended" } ?? "the one that runs under it has ended"
        let moment = until == .distantFuture ? "when \(ends)" : "at \(until)"
        return Self(
            kind: "throttle", detail: "its key \"\(key)\", which may run again \(moment)",
            holders: runner.map { [$0] } ?? [])
    }

    /// A category for which the operation waits: others hold it, or came before; nil if neither is so.
    static func category(_ category: OperationCategory, for operation: ManagedOperation) -> Self? {
        let holders = category.holders.filter { $0 !== operation }
        let queue = operation.core.withLock { $0.host }
        // The operations of other queues wait in lines of their own.
        let ahead = category.waiters.prefix { $0 !== operation }.filter { other in
            let host = other.core.withLock { $0.host }
            return host == nil || host === queue
        }
        if holders.count >= category.limit {
            let line = ahead.isEmpty ? "" : ", for which \(names(of: ahead)) came before it"
            return Self(kind: "category", detail: "category \(category)\(line)", holders: holders)
        }
        guard let first = ahead.first else { return nil }
        var detail = "category \(category), which has room, but \(names(of: ahead)) came before it"
        guard case .categories(let others) = first.admissionStanding,
            let other = others.first(where: { $0 != category && $0.holders.count >= $0.limit })
        else { return Self(kind: "category", detail: detail, holders: []) }
        detail += ", and \(ahead.count == 1 ? "that one" : "the first of these") waits for category \(other)"
        return Self(kind: "category", detail: detail, holders: other.holders)
    }
}

extension QueueExplanation.BarrierWait: CustomStringConvertible {
    /// What it waits for, as a part of a sentence.
    public var description: String {
        isBarrier
            ? "it is a barrier, and \(names(ahead)) came before it"
            : "it came after the barrier \(names(barriers)), and \(names(ahead)) must end first"
    }
}

/// The first few names.
private func names(_ entries: [QueueEntry]) -> String { list(entries.map(\.name)) }

private func names(of operations: [Operation]) -> String { list(operations.map(\.displayName)) }

extension QueueExplanation {
    /// The first few names of children.
    static func names(of children: [ManagedOperation]) -> String { list(children.map(\.displayName)) }
}

private func list(_ names: [String]) -> String {
    let shown = names.prefix(5).sorted().joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
}

// Why an operation does not run. Nothing of it is kept ready: it is looked for when somebody asks.
extension QueueEngine {
    func explain(_ operation: Operation) -> QueueExplanation {
        var isReadyByItself = true
        if !(operation is ManagedOperation) { isReadyByItself = operation.isReady }
        let look = applySettled { state, _ -> (stage: QueueMachine.Stage, reasons: [QueueExplanation.Reason])? in
            guard let slot = slot(of: operation, state) else { return nil }
            return (state.machine.entries[Int(slot)].stage, reasonsOfQueue(slot, state))
        }
        guard let look, let place = QueueEntry.State(look.stage) else {
            let hold = (operation as? ManagedOperation)?.life.holdByWidth
            return QueueExplanation(
                operation: operation, queue: name, standing: operation.standing, reasons: hold.map { [.hold($0)] } ?? []
            )
        }
        var reasons: [QueueExplanation.Reason] = []
        switch place {
        case .waiting:
            reasons = operation.unendedDependencies.map {
                .dependency(QueueExplanation.Dependency(operation: $0, standing: standing(ofAny: $0)))
            }
            if (operation as? ManagedOperation)?.core.withLock({ $0.isHeldByGroup }) == true {
                reasons.append(.hold(.init(kind: "group", detail: "its group, which is suspended", holders: [])))
            }
            if reasons.isEmpty, !isReadyByItself { reasons = [.ownReadiness] }
        case .held: reasons = holds(on: operation).map { .hold($0) }
        case .running: reasons = (operation as? ManagedOperation)?.pauses ?? []
        case .ready, .ending: break
        }
        return QueueExplanation(
            operation: operation, queue: name, standing: .inQueue(name, place), reasons: reasons + look.reasons)
    }

    /// What holds back an entry whose dependencies ended.
    private func holds(on operation: Operation) -> [QueueExplanation.Hold] {
        guard let operation = operation as? ManagedOperation else { return [] }
        switch operation.admissionStanding {
        case .evaluating(let conditions):
            let names = conditions.joined(separator: ", ")
            return [
                QueueExplanation.Hold(kind: "condition", detail: "conditions that are looked at: \(names)", holders: [])
            ]
        case .throttled(let key, let until, let runner):
            return [.throttle(key, until: until, runner)]
        case .categories(let categories): return categories.compactMap { .category($0, for: operation) }
        case .none:
            let isDelayed = operation.core.withLock { $0.hasDelayLeft }
            let detail = isDelayed ? "its startDelay, which is not over" : "admission, which it has still to ask for"
            return [QueueExplanation.Hold(kind: isDelayed ? "delay" : "admission", detail: detail, holders: [])]
        }
    }

    private func slot(of operation: Operation, _ state: State) -> QueueMachine.Slot? {
        if let own = operation as? ManagedOperation {
            return own.core.withLock { $0.host === self && $0.slot >= 0 ? $0.slot : nil }
        }
        return state.machine.entries.firstIndex { entry in
            if case .foreign(let foreign) = entry.work { foreign.operation === operation } else { false }
        }.map { QueueMachine.Slot($0) }
    }

    /// Where an operation stands, of other kinds if it is in this queue.
    private func standing(ofAny operation: Operation) -> OperationStanding {
        let stage = applySettled { state, _ in slot(of: operation, state).map { state.machine.entries[Int($0)].stage } }
        if let stage, let state = QueueEntry.State(stage) { return .inQueue(name, state) }
        return operation.standing
    }

    /// Where an operation stands that the queue holds.
    fileprivate func stage(of operation: ManagedOperation) -> QueueEntry.State? {
        applySettled { state, _ in
            slot(of: operation, state).flatMap { QueueEntry.State(state.machine.entries[Int($0)].stage) }
        }
    }
}

// What the queue itself says, under its lock.
extension QueueEngine {
    private func reasonsOfQueue(_ slot: QueueMachine.Slot, _ state: State) -> [QueueExplanation.Reason] {
        let machine = state.machine
        let entry = machine.entries[Int(slot)]
        guard [.waiting, .held, .ready, .entering].contains(entry.stage) else { return [] }
        var reasons: [QueueExplanation.Reason] = []
        if machine.isSuspended { reasons.append(.suspended(because: state.suspension.reasons)) }
        if let wait = barrierWait(entry, machine) { reasons.append(.barrier(wait)) }
        guard entry.stage == .ready, reasons.isEmpty else { return reasons }
        let ahead = machine.countReady(before: entry)
        if machine.running >= machine.width {
            reasons.append(.width(machine.width, holders: entries(machine) { $0.stage == .running && !$0.isResting }))
        } else if state.crew.isFull {
            reasons.append(.threads(state.crew.workers, holders: entries(machine) { $0.stage == .running }))
        }
        if state.isStarving { reasons.append(.threadLimit(WorkerPool.threadLimit)) }
        if ahead > 0 { reasons.append(.turn(ahead: ahead)) }
        return reasons
    }

    private func barrierWait(
        _ entry: QueueMachine.Entry, _ machine: QueueMachine
    ) -> QueueExplanation.BarrierWait? {
        guard !machine.isFront(entry.epoch) else { return nil }
        let front = machine.front.number
        // Numbers wrap around, so it is the distance from the front that counts.
        let distance = entry.epoch &- front
        let ahead = entries(machine) { $0.stage != .free && $0.epoch &- front < distance }
        let barriers = entries(machine) {
            $0.stage != .free && $0.epoch &- front < distance && machine.isBarrier($0.epoch)
        }
        return QueueExplanation.BarrierWait(
            isBarrier: machine.isBarrier(entry.epoch), barriers: barriers, ahead: ahead)
    }

    private func entries(
        _ machine: QueueMachine, where isWanted: (QueueMachine.Entry) -> Bool
    ) -> [QueueEntry] {
        machine.entries.enumerated().compactMap { index, entry in
            isWanted(entry) ? QueueEntry(QueueMachine.Slot(index), entry) : nil
        }
    }
}

extension QueueMachine {
    /// How many that are ready have a more urgent level.
    fileprivate func countReady(before entry: Entry) -> Int {
        entries.count { $0.stage == .ready && isFront($0.epoch) && $0.level > entry.level }
    }
}

extension Operation {
    /// Where the operation stands; asks its queue if it is of this package.
    fileprivate var standing: OperationStanding {
        guard let own = self as? ManagedOperation else {
            if isFinished { return .ended(isCancelled ? .cancelled : .success) }
            return isExecuting ? .executing : seenInOperationQueue ? .inOperationQueue : .notStarted
        }
        let (machine, host, parent) = own.core.withLock { ($0.machine, $0.host, $0.parent) }
        if let host, let state = host.stage(of: own) { return .inQueue(host.name, state) }
        if let parent, !machine.isStarted { return .inGroup(parent.displayName) }
        if machine.isFinished, let ending = machine.ending { return .ended(QueueEntry.Ending(ending)) }
        if machine.isStarted { return .executing }
        if machine.isStartAwaited { return .startedAndWaiting }
        return own.isHeldByQueue(isByQueue: false) ? .inOperationQueue : .notStarted
    }

    private var seenInOperationQueue: Bool {
        #if canImport(ObjectiveC)
            false
        #else
            FoundationQueueProbe.isHeld(self, mayBeStarting: true)
        #endif
    }

    /// What the operation waits for.
    var unendedDependencies: [Operation] {
        if let own = self as? ManagedOperation { return own.nodeIfAny?.unendedUpstream ?? [] }
        return dependencies.filter { !$0.isFinished }.map(\.behindGate)
    }

    /// The operation of this package for which one of our own making stands in for Foundation.
    package var behindGate: Operation {
        #if canImport(ObjectiveC)
            self
        #else
            (self as? PlainOperationGate)?.source ?? self
        #endif
    }
}

extension WaitReason {
    /// The same, and if it is children that are waited for, which; nil if a group waits only for its resumption.
    fileprivate func naming(_ group: GroupEngine?, isSuspended: Bool) -> WaitReason? {
        guard kind == .children, let group else { return self }
        let children = group.presentChildren
        if !children.isEmpty {
            return WaitReason(.children, "\(self): \(QueueExplanation.names(of: children))")
        }
        guard group.hasReader else { return self }
        return isSuspended ? nil : WaitReason(.children, "waiting for the next element of its sequence")
    }
}

extension ManagedOperation {
    /// What holds back a child of a group that waits for a place in the width of the group.
    fileprivate var holdByWidth: QueueExplanation.Hold? {
        let siblings = siblingsThatFillWidth()
        guard !siblings.isEmpty, let group = core.withLock({ $0.parent }) else { return nil }
        let width = group.state.withLock { $0.machine.width }
        return QueueExplanation.Hold(
            kind: "groupWidth", detail: "the width of its group, which is \(width)", holders: siblings)
    }

    /// What keeps an operation from its end that began.
    fileprivate var pauses: [QueueExplanation.Reason] {
        let waits = core.withLock { $0.extras?.bodyWaits ?? [] }.map { wait in
            let name = wait.operation.displayName
            return QueueExplanation.Reason.resting(WaitReason(.operation, "its body waits for \(name)"))
        }
        let state = state
        let resting = waitReason?.naming(groupEngine, isSuspended: state == .suspended)
        let rest = [resting].compactMap { $0.map(QueueExplanation.Reason.resting) } + waits
        return switch state {
        case .suspended: [.operationSuspended] + rest
        case .cancelled: [.windingDown]
        case .notStarted, .executing, .finished: rest
        }
    }
}
