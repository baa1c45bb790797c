// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A clause of an explanation, such as "it began and was suspended".
///
/// The text is created without holding a lock, because it contains names, which may come from user code.
private typealias Reason = () -> String

/// Returns the first few names.
private func names(_ entries: [QueueEntry]) -> String { list(entries.map(\.name)) }

private func names(of operations: [Operation]) -> String { list(operations.map(\.displayName)) }

private func heldBy(_ holders: [Operation]) -> String {
    holders.isEmpty ? "" : " (held by \(names(of: holders)))"
}

private func list(_ names: [String]) -> String {
    let shown = names.prefix(5).sorted().joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
}

// The reasons why an operation does not run. These reasons are only collected on request.
extension QueueEngine {
    /// Returns an explanation of why an operation does not run, which describes the moment of the call.
    ///
    /// The queue checks the dependencies one after another, so the states of some of them may have changed when the
    /// explanation is complete.
    func explain(_ operation: Operation) -> String {
        var isReadyByItself = true
        if !(operation is ManagedOperation) { isReadyByItself = operation.isReady }
        let look = applyAfterReclaiming { state, _ -> (stage: QueueMachine.Stage, reasons: [Reason])? in
            guard let slot = slot(of: operation, state) else { return nil }
            return (state.machine.entries[Int(slot)].stage, reasonsOfQueue(slot, state))
        }
        var reasons: [String] = []
        let verb: String
        if let look, let place = QueueEntry.State(look.stage) {
            reasons = self.reasons(of: operation, place, isReadyByItself: isReadyByItself) + look.reasons.map { $0() }
            verb = self.verb(place, hasReasons: !reasons.isEmpty)
        } else {
            if let hold = (operation as? ManagedOperation)?.life.holdByWidth { reasons = [hold] }
            if let (queue, state) = operation.placeInQueue {
                verb =
                    queue == name
                    ? self.verb(state, hasReasons: !reasons.isEmpty)
                    : "is not in queue \(name), but \(state) in queue \(queue)"
            } else {
                verb = "is not in queue \(name) (\(operation.standing))"
            }
        }
        let subject = "\(operation.displayName) \(verb)"
        return (reasons.isEmpty ? subject : subject + ": " + reasons.joined(separator: "; ")) + "."
    }

    private func verb(_ state: QueueEntry.State, hasReasons: Bool) -> String {
        switch state {
        case .waiting: "waits in queue \(name)"
        case .held: "is held in queue \(name)"
        case .ready: hasReasons ? "is ready in queue \(name)" : "is about to begin in queue \(name)"
        case .running: "runs in queue \(name)"
        case .ending: "was canceled in queue \(name) and is about to end"
        }
    }

    /// Returns the reasons that come from the operation itself.
    private func reasons(of operation: Operation, _ state: QueueEntry.State, isReadyByItself: Bool) -> [String] {
        switch state {
        case .waiting:
            let others = operation.unendedDependencies.flatMap { uniqueWork.operations(behind: $0, of: operation) }
            var reasons = others.map { "it depends on \($0.displayName) (\(standing(ofAny: $0)))" }
            if (operation as? ManagedOperation)?.core.withLock({ $0.isHeldByGroup }) == true {
                reasons.append("its group is suspended")
            }
            return reasons.isEmpty && !isReadyByItself ? ["its isReady is false"] : reasons
        case .held: return (operation as? ManagedOperation)?.holds ?? []
        case .running: return (operation as? ManagedOperation)?.pauses ?? []
        case .ready, .ending: return []
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
    private func standing(ofAny operation: Operation) -> String {
        stage(of: operation).map { "\($0) in queue \(name)" } ?? operation.standing
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
    private func reasonsOfQueue(_ slot: QueueMachine.Slot, _ state: State) -> [Reason] {
        let machine = state.machine
        let entry = machine.entries[Int(slot)]
        guard [.waiting, .held, .ready, .entering].contains(entry.stage) else { return [] }
        var reasons: [Reason] = []
        if machine.isSuspended {
            let suspension = state.suspension.reasons.map { " (\($0))" } ?? ""
            reasons.append { "the queue is suspended" + suspension }
        }
        if let wait = barrierWait(slot, machine) { reasons.append(wait) }
        guard entry.stage == .ready, reasons.isEmpty else { return reasons }
        let ahead = machine.entries.count {
            $0.stage == .ready && machine.isInFront($0.epoch) && $0.level > entry.level
        }
        if machine.running >= machine.width {
            let (width, holders) = (machine.width, entries(machine) { $1.stage == .running && !$1.isResting })
            reasons.append { "all slots of the queue are occupied (width \(width), held by \(names(holders)))" }
        } else if state.threads.isFull {
            let (count, holders) = (state.threads.workers, entries(machine) { $1.stage == .running })
            reasons.append {
                let busy = holders.isEmpty ? "bodies of operations that ended" : names(holders)
                return "all threads of the queue are busy (now \(count), held by \(busy))"
            }
        }
        if state.isStarving {
            reasons.append { "all \(WorkerPool.threadLimit) threads that the queues of the process may have are busy" }
        }
        if ahead > 0 {
            reasons.append {
                ahead == 1 ? "1 ready operation is more urgent" : "\(ahead) ready operations are more urgent"
            }
        }
        return reasons
    }

    private func barrierWait(_ slot: QueueMachine.Slot, _ machine: QueueMachine) -> Reason? {
        let epoch = machine.entries[Int(slot)].epoch
        guard !machine.isInFront(epoch) else { return nil }
        let front = machine.front.number
        // Numbers wrap around, so their distances from the front are compared.
        let distance = epoch &- front
        let ahead = entries(machine) { $1.stage != .free && $1.epoch &- front < distance }
        if machine.isBarrier(slot) { return { "it is a barrier, and \(names(ahead)) must end first" } }
        let barriers = entries(machine) {
            $1.stage != .free && $1.epoch &- front < distance && machine.isBarrier($0)
        }
        return { "it is behind the barrier \(names(barriers)), and \(names(ahead)) must end first" }
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
    /// The name of the queue that holds the operation, if it is an operation from this package, and its state there.
    fileprivate var placeInQueue: (queue: String, state: QueueEntry.State)? {
        guard let own = self as? ManagedOperation, let host = own.core.withLock({ $0.host }) else { return nil }
        return host.engine.stage(of: own).map { (host.name, $0) }
    }

    /// The state of the operation, inside or outside a queue.
    fileprivate var standing: String {
        if let (queue, state) = placeInQueue { return "\(state) in queue \(queue)" }
        let (executing, notStarted) = ("executing, in no queue", "not started, and in no queue that would start it")
        // OperationKit can detect this only on Linux.
        let inOperationQueue = "in an OperationQueue"
        guard let own = self as? ManagedOperation else {
            if isFinished { return isCancelled ? "canceled" : "ended" }
            return isExecuting ? executing : seenInOperationQueue ? inOperationQueue : notStarted
        }
        let (machine, parent, isReady) = own.core.withLock { ($0.machine, $0.parent, $0.isReady) }
        if let parent, !machine.isStarted {
            return "a child of \(parent.displayName) that waits for the group to start it"
        }
        if machine.isFinished, let ending = machine.ending {
            return switch ending {
            case .success: "ended"
            case .failure: "failed"
            case .cancelled: "canceled"
            }
        }
        if machine.isStarted { return executing }
        if machine.isStartAwaited {
            return "started directly, and " + (isReady ? "held by a start condition" : "waiting for its dependencies")
        }
        return own.isHeldByQueue(isByQueue: false) ? inOperationQueue : notStarted
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
    /// Returns the reason with the name of the shared run or the names of the children, or `nil` if a group waits only
    /// for its own resumption.
    fileprivate func naming(for operation: ManagedOperation, isSuspended: Bool) -> WaitReason? {
        if kind == .sharedRun, let run = operation.life.sharedRun {
            return WaitReason(.sharedRun, "\(self): \(run.displayName)")
        }
        guard kind == .children, let group = operation.ownGroup else { return self }
        let children = group.presentChildren
        if !children.isEmpty {
            return WaitReason(.children, "\(self): \(names(of: children))")
        }
        guard group.hasReader else { return self }
        return isSuspended ? nil : WaitReason(.children, "waiting for the next element of its sequence")
    }
}

extension ManagedOperation {
    /// The start conditions that hold back the operation, whose dependencies have ended.
    fileprivate var holds: [String] {
        switch admissionStanding {
        case .evaluating(let conditions):
            return ["its conditions are being checked (\(conditions.joined(separator: ", ")))"]
        case .throttled(let key, let until, let runner):
            let ends = runner.map { "after \($0.displayName) has ended" } ?? "after the current run has ended"
            let moment = until == .distantFuture ? ends : "at \(until)"
            return ["its key \"\(key)\" may run again \(moment)"]
        case .categories(let categories): return categories.compactMap { hold(by: $0) }
        case .none:
            let isDelayed = core.withLock { $0.hasDelayLeft }
            return [isDelayed ? "its startDelay has not elapsed" : "it has not asked for admission yet"]
        }
    }

    /// Returns the wait for a category that other operations hold or wait for, or `nil` if there are none.
    private func hold(by category: OperationCategory) -> String? {
        let holders = category.holders.filter { $0 !== self }
        let queue = core.withLock { $0.host }
        // The operations of other queues wait in separate lines.
        let ahead = category.waiters.prefix { $0 !== self }.filter { other in
            let host = other.core.withLock { $0.host }
            return host == nil || host === queue
        }
        if holders.count >= category.limit {
            let line = ahead.isEmpty ? "" : "it is behind \(names(of: ahead)), and "
            return "\(line)category \(category) has no free slot\(heldBy(holders))"
        }
        guard let first = ahead.first else { return nil }
        let line = "it is behind \(names(of: ahead)), which came first for category \(category)"
        guard case .categories(let others) = first.admissionStanding,
            let other = others.first(where: { $0 != category && $0.holders.count >= $0.limit })
        else { return line }
        return "\(line), and \(first.displayName) waits for category \(other)\(heldBy(other.holders))"
    }

    /// The wait of a child for a slot in the width of its group.
    fileprivate var holdByWidth: String? {
        let siblings = siblingsThatFillWidth()
        guard !siblings.isEmpty, let group = core.withLock({ $0.parent }) else { return nil }
        let children = group.width == 1 ? "1 child" : "\(group.width) children"
        return "its group runs at most \(children) at a time\(heldBy(siblings))"
    }

    /// The reasons why an operation that has begun has not ended.
    fileprivate var pauses: [String] {
        let waits = core.withLock { $0.extras?.bodyWaits ?? [] }
            .map { "its body waits for \($0.operation.displayName)" }
        let state = state
        let resting = waitReason?.naming(for: self, isSuspended: state == .suspended)
        let rest = (resting.map { ["\($0)"] } ?? []) + waits
        return switch state {
        case .suspended: ["it began and was suspended"] + rest
        case .cancelled: ["it was canceled, and its body is still running"]
        case .notStarted, .executing, .finished: rest
        }
    }
}
