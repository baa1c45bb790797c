// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
            return QueueExplanation(operation: operation, queue: name, standing: operation.standing, reasons: [])
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
    var behindGate: Operation {
        #if canImport(ObjectiveC)
            self
        #else
            (self as? ForeignGate)?.source ?? self
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
    /// What keeps an operation from its end that began.
    fileprivate var pauses: [QueueExplanation.Reason] {
        let waits = core.withLock { $0.extras?.bodyWaits ?? [] }.map { operation in
            QueueExplanation.Reason.resting(WaitReason(.operation, "its body waits for \(operation.displayName)"))
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
