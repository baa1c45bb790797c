// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An explanation of why an operation does not run, with structured values and a readable description.
///
/// The explanation describes the moment at which it was created. The queue checks the dependencies one after another,
/// so the states of some of them may have changed when the explanation is complete.
package struct QueueExplanation: Sendable, CustomStringConvertible {
    /// The operation that the explanation describes.
    package let operation: Operation
    /// The name of the queue that created the explanation.
    package let queue: String
    /// The state of the operation.
    package let standing: OperationStanding
    /// The reasons why the operation does not run.
    ///
    /// The array is empty if nothing prevents the operation from running. The array is also empty if the operation is
    /// not in the queue, unless the operation waits for the width of its group.
    package let reasons: [Reason]

    /// A reason why an operation does not run.
    ///
    /// Future versions may add cases.
    package enum Reason: Sendable {
        /// The operation waits for another operation that has not ended.
        ///
        /// The associated values are the other operation and its state.
        case dependency(Operation, OperationStanding)
        /// The operation waits because of a delay or another start condition, after its dependencies have ended.
        ///
        /// The associated values are the kind of start condition, a clause that describes it, such as "its startDelay
        /// has not elapsed", and the operations, in any queue, that hold the resource that the entry needs. The kinds
        /// are `delay`, `condition`, `throttle`, `category`, `group` (a suspended group), `groupWidth` and `admission`.
        case hold(kind: String, detail: String, holders: [Operation])
        /// The queue is suspended, possibly with a reason.
        ///
        /// See ``QueueManager/suspend(because:)``.
        case suspended(because: String?)
        /// The operation is a barrier or was added after a barrier, and earlier entries have not ended.
        ///
        /// The associated values are the barriers that were added before the entry and have not ended, and all entries
        /// that must end first, including these barriers. The entries are in no particular order. The first value is
        /// `nil` if the operation itself is a barrier.
        case barrier(behind: [QueueEntry]?, ahead: [QueueEntry])
        /// The queue has reached its width.
        ///
        /// The associated values are the width and the entries that occupy the slots.
        case width(Int, holders: [QueueEntry])
        /// The queue currently has no free thread.
        ///
        /// The associated values are the number of threads and the entries that occupy them.
        case threads(Int, holders: [QueueEntry])
        /// All queues in the process together have reached the maximum number of threads, and all of these threads are
        /// busy.
        ///
        /// The associated value is the maximum number of threads.
        case threadLimit(Int)
        /// More urgent entries are ready and begin first.
        ///
        /// The associated value is the number of these entries.
        case turn(ahead: Int)
        /// The operation is a plain `Foundation.Operation` whose `isReady` property is `false`.
        case ownReadiness
        /// The operation began and was then suspended.
        case operationSuspended
        /// The operation has begun, but has released its slot while it waits to continue its work.
        case resting(WaitReason)
        /// The operation was canceled, and its body is still running.
        case windingDown
    }
}

/// The state of an operation, inside or outside a queue.
///
/// Future versions may add cases.
package enum OperationStanding: Sendable, Hashable, CustomStringConvertible {
    /// The operation is in a ``QueueManager``.
    ///
    /// The associated values are the name of the queue and the state of the entry.
    case inQueue(String, QueueEntry.State)
    /// The operation is a child of a group and is not in a queue yet.
    ///
    /// The associated value is the name of the group.
    case inGroup(String)
    /// The operation is in an `OperationQueue`, which OperationKit can detect only on Linux.
    case inOperationQueue
    /// The operation was started and is in no known queue.
    case executing
    /// The operation was started, is in no known queue, and waits for dependencies that have not ended.
    case startedAndWaiting
    /// The operation was not started and is in no known queue, so it does not begin before you start it.
    case notStarted
    /// The operation has ended.
    case ended(QueueEntry.Ending)

    /// A description of the state.
    package var description: String {
        switch self {
        case .inQueue(let queue, let state): "\(state) in queue \(queue)"
        case .inGroup(let group): "a child of \(group) that waits for the group to start it"
        case .inOperationQueue: "in an OperationQueue"
        case .executing: "executing, in no queue"
        case .startedAndWaiting: "started directly, and waiting for its dependencies"
        case .notStarted: "not started, and in no queue that would start it"
        case .ended(.success): "ended"
        case .ended(.failure): "failed"
        case .ended(.cancelled): "canceled"
        }
    }
}

extension QueueExplanation {
    /// A description of the operation's state and of all reasons.
    package var description: String {
        let subject = "\(operation.displayName) \(verb)"
        if reasons.isEmpty { return subject + "." }
        return subject + ": " + reasons.map(\.description).joined(separator: "; ") + "."
    }

    private var verb: String {
        guard case .inQueue(let other, let state) = standing else { return "is not in queue \(queue) (\(standing))" }
        if other != queue { return "is not in queue \(queue), but \(standing)" }
        return switch state {
        case .waiting: "waits in queue \(queue)"
        case .held: "is held in queue \(queue)"
        case .ready: reasons.isEmpty ? "is about to begin in queue \(queue)" : "is ready in queue \(queue)"
        case .running: "runs in queue \(queue)"
        case .ending: "was canceled in queue \(queue) and is about to end"
        }
    }
}

extension QueueExplanation.Reason: CustomStringConvertible {
    /// A description of the reason that can be part of a sentence.
    package var description: String {
        switch self {
        case .dependency(let operation, let standing): "it depends on \(operation.displayName) (\(standing))"
        case .hold("throttle", let detail, _): detail
        case .hold(_, let detail, let holders):
            detail + (holders.isEmpty ? "" : " (held by \(names(of: holders)))")
        case .suspended(let reason): "the queue is suspended" + (reason.map { " (\($0))" } ?? "")
        case .threadLimit(let count): "all \(count) threads that the queues of the process may have are busy"
        case .barrier(nil, let ahead): "it is a barrier, and \(names(ahead)) must end first"
        case .barrier(let barriers?, let ahead):
            "it is behind the barrier \(names(barriers)), and \(names(ahead)) must end first"
        case .width(let width, let holders):
            "all slots of the queue are occupied (width \(width), held by \(names(holders)))"
        case .threads(let count, let holders):
            "all threads of the queue are busy (now \(count), held by "
                + (holders.isEmpty ? "bodies of operations that ended)" : "\(names(holders)))")
        case .turn(let ahead):
            ahead == 1 ? "1 ready operation is more urgent" : "\(ahead) ready operations are more urgent"
        case .ownReadiness: "its isReady is false"
        case .operationSuspended: "it began and was suspended"
        case .resting(let reason): "\(reason)"
        case .windingDown: "it was canceled, and its body is still running"
        }
    }
}

extension QueueExplanation.Reason {
    /// Creates the hold for a throttle whose key may not run yet, with a detail that names the holder.
    static func throttle(_ key: String, until: OperationInstant, _ runner: ManagedOperation?) -> Self {
        let ends = runner.map { "after \($0.displayName) has ended" } ?? "after the current run has ended"
        let moment = until == .distantFuture ? ends : "at \(until)"
        return .hold(
            kind: "throttle", detail: "its key \"\(key)\" may run again \(moment)",
            holders: runner.map { [$0] } ?? [])
    }

    /// Creates the hold for a category that other operations hold or wait for, or returns `nil` if there are none.
    static func category(_ category: OperationCategory, for operation: ManagedOperation) -> Self? {
        let holders = category.holders.filter { $0 !== operation }
        let queue = operation.core.withLock { $0.host }
        // The operations of other queues wait in separate lines.
        let ahead = category.waiters.prefix { $0 !== operation }.filter { other in
            let host = other.core.withLock { $0.host }
            return host == nil || host === queue
        }
        if holders.count >= category.limit {
            let line = ahead.isEmpty ? "" : "it is behind \(names(of: ahead)), and "
            return .hold(kind: "category", detail: "\(line)category \(category) has no free slot", holders: holders)
        }
        guard let first = ahead.first else { return nil }
        var detail = "it is behind \(names(of: ahead)), which came first for category \(category)"
        guard case .categories(let others) = first.admissionStanding,
            let other = others.first(where: { $0 != category && $0.holders.count >= $0.limit })
        else { return .hold(kind: "category", detail: detail, holders: []) }
        detail += ", and \(first.displayName) waits for category \(other)"
        return .hold(kind: "category", detail: detail, holders: other.holders)
    }
}

/// Returns the first few names.
private func names(_ entries: [QueueEntry]) -> String { list(entries.map(\.name)) }

private func names(of operations: [Operation]) -> String { list(operations.map(\.displayName)) }

private func list(_ names: [String]) -> String {
    let shown = names.prefix(5).sorted().joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
}

// The reasons why an operation does not run. These reasons are only collected on request.
extension QueueEngine {
    func explain(_ operation: Operation) -> QueueExplanation {
        var isReadyByItself = true
        if !(operation is ManagedOperation) { isReadyByItself = operation.isReady }
        let look = applyAfterReclaiming {
            state, _ -> (stage: QueueMachine.Stage, reasons: [QueueExplanation.Reason])? in
            guard let slot = slot(of: operation, state) else { return nil }
            return (state.machine.entries[Int(slot)].stage, reasonsOfQueue(slot, state))
        }
        guard let look, let place = QueueEntry.State(look.stage) else {
            let hold = (operation as? ManagedOperation)?.life.holdByWidth
            return QueueExplanation(
                operation: operation, queue: name, standing: operation.standing, reasons: hold.map { [$0] } ?? []
            )
        }
        var reasons: [QueueExplanation.Reason] = []
        switch place {
        case .waiting:
            reasons = operation.unendedDependencies.map { .dependency($0, standing(ofAny: $0)) }
            if (operation as? ManagedOperation)?.core.withLock({ $0.isHeldByGroup }) == true {
                reasons.append(.hold(kind: "group", detail: "its group is suspended", holders: []))
            }
            if reasons.isEmpty, !isReadyByItself { reasons = [.ownReadiness] }
        case .held: reasons = holds(on: operation)
        case .running: reasons = (operation as? ManagedOperation)?.pauses ?? []
        case .ready, .ending: break
        }
        return QueueExplanation(
            operation: operation, queue: name, standing: .inQueue(name, place), reasons: reasons + look.reasons)
    }

    /// Returns the start conditions that hold back an entry whose dependencies have ended.
    private func holds(on operation: Operation) -> [QueueExplanation.Reason] {
        guard let operation = operation as? ManagedOperation else { return [] }
        switch operation.admissionStanding {
        case .evaluating(let conditions):
            let names = conditions.joined(separator: ", ")
            return [.hold(kind: "condition", detail: "its conditions are being checked (\(names))", holders: [])]
        case .throttled(let key, let until, let runner):
            return [.throttle(key, until: until, runner)]
        case .categories(let categories): return categories.compactMap { .category($0, for: operation) }
        case .none:
            let isDelayed = operation.core.withLock { $0.hasDelayLeft }
            let detail = isDelayed ? "its startDelay has not elapsed" : "it has not asked for admission yet"
            return [.hold(kind: isDelayed ? "delay" : "admission", detail: detail, holders: [])]
        }
    }

    private func slot(of operation: Operation, _ state: State) -> QueueMachine.Slot? {
        if let own = operation as? ManagedOperation {
            return own.core.withLock { $0.host === self && $0.slot >= 0 ? $0.slot : nil }
        }
        return state.machine.entries.firstIndex { entry in
            if case .plain(let plain) = entry.work { plain.operation === operation } else { false }
        }.map { QueueMachine.Slot($0) }
    }

    /// Returns the state of an operation, including that of a plain operation in this queue.
    private func standing(ofAny operation: Operation) -> OperationStanding {
        stage(of: operation).map { OperationStanding.inQueue(name, $0) } ?? operation.standing
    }

    /// Returns the state of an operation that the queue holds.
    fileprivate func stage(of operation: Operation) -> QueueEntry.State? {
        applyAfterReclaiming { state, _ in
            slot(of: operation, state).flatMap { QueueEntry.State(state.machine.entries[Int($0)].stage) }
        }
    }
}

// The reasons of the queue itself, collected under its lock.
extension QueueEngine {
    private func reasonsOfQueue(_ slot: QueueMachine.Slot, _ state: State) -> [QueueExplanation.Reason] {
        let machine = state.machine
        let entry = machine.entries[Int(slot)]
        guard [.waiting, .held, .ready, .entering].contains(entry.stage) else { return [] }
        var reasons: [QueueExplanation.Reason] = []
        if machine.isSuspended { reasons.append(.suspended(because: state.suspension.reasons)) }
        if let wait = barrierWait(slot, machine) { reasons.append(wait) }
        guard entry.stage == .ready, reasons.isEmpty else { return reasons }
        let ahead = machine.entries.count {
            $0.stage == .ready && machine.isInFront($0.epoch) && $0.level > entry.level
        }
        if machine.running >= machine.width {
            reasons.append(.width(machine.width, holders: entries(machine) { $1.stage == .running && !$1.isResting }))
        } else if state.threads.isFull {
            reasons.append(.threads(state.threads.workers, holders: entries(machine) { $1.stage == .running }))
        }
        if state.isStarving { reasons.append(.threadLimit(WorkerPool.threadLimit)) }
        if ahead > 0 { reasons.append(.turn(ahead: ahead)) }
        return reasons
    }

    private func barrierWait(_ slot: QueueMachine.Slot, _ machine: QueueMachine) -> QueueExplanation.Reason? {
        let epoch = machine.entries[Int(slot)].epoch
        guard !machine.isInFront(epoch) else { return nil }
        let front = machine.front.number
        // Numbers wrap around, so their distances from the front are compared.
        let distance = epoch &- front
        let ahead = entries(machine) { $1.stage != .free && $1.epoch &- front < distance }
        if machine.isBarrier(slot) { return .barrier(behind: nil, ahead: ahead) }
        let barriers = entries(machine) {
            $1.stage != .free && $1.epoch &- front < distance && machine.isBarrier($0)
        }
        return .barrier(behind: barriers, ahead: ahead)
    }

    private func entries(
        _ machine: QueueMachine, where isWanted: (QueueMachine.Slot, QueueMachine.Entry) -> Bool
    ) -> [QueueEntry] {
        machine.entries.enumerated().compactMap { index, entry in
            let slot = QueueMachine.Slot(index)
            return isWanted(slot, entry) ? QueueEntry(slot, entry) : nil
        }
    }
}

extension Operation {
    /// The state of the operation, which comes from its queue if it is an operation from this package.
    fileprivate var standing: OperationStanding {
        guard let own = self as? ManagedOperation else {
            if isFinished { return .ended(isCancelled ? .cancelled : .success) }
            return isExecuting ? .executing : seenInOperationQueue ? .inOperationQueue : .notStarted
        }
        let (machine, host, parent) = own.core.withLock { ($0.machine, $0.host, $0.parent) }
        if let host, let state = host.engine.stage(of: own) { return .inQueue(host.name, state) }
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

    /// The dependencies that have not ended.
    var unendedDependencies: [Operation] {
        if let own = self as? ManagedOperation { return own.nodeIfAny?.unendedUpstream ?? [] }
        return dependencies.filter { !$0.isFinished }.map(\.behindGate)
    }

    /// The operation itself, or the operation from this package that a gate represents for Foundation.
    package var behindGate: Operation {
        #if canImport(ObjectiveC)
            self
        #else
            (self as? PlainOperationGate)?.source ?? self
        #endif
    }
}

extension WaitReason {
    /// Returns the reason with the names of the children, or `nil` if a group waits only for its own resumption.
    fileprivate func naming(_ group: ParentGroup?, isSuspended: Bool) -> WaitReason? {
        guard kind == .children, let group else { return self }
        let children = group.presentChildren
        if !children.isEmpty {
            return WaitReason(.children, "\(self): \(names(of: children))")
        }
        guard group.hasReader else { return self }
        return isSuspended ? nil : WaitReason(.children, "waiting for the next element of its sequence")
    }
}

extension ManagedOperation {
    /// The hold of a child that waits for a slot in the width of its group.
    fileprivate var holdByWidth: QueueExplanation.Reason? {
        let siblings = siblingsThatFillWidth()
        guard !siblings.isEmpty, let group = core.withLock({ $0.parent }) else { return nil }
        let width = group.width
        return .hold(
            kind: "groupWidth",
            detail: "its group runs at most \(width) \(width == 1 ? "child" : "children") at a time", holders: siblings)
    }

    /// The reasons why an operation that has begun has not ended.
    fileprivate var pauses: [QueueExplanation.Reason] {
        let waits = core.withLock { $0.extras?.bodyWaits ?? [] }.map { wait in
            let name = wait.operation.displayName
            return QueueExplanation.Reason.resting(WaitReason(.operation, "its body waits for \(name)"))
        }
        let state = state
        let resting = waitReason?.naming(ownGroup, isSuspended: state == .suspended)
        let rest = [resting].compactMap { $0.map(QueueExplanation.Reason.resting) } + waits
        return switch state {
        case .suspended: [.operationSuspended] + rest
        case .cancelled: [.windingDown]
        case .notStarted, .executing, .finished: rest
        }
    }
}
