// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The state of an operation in the queue that holds it.
struct QueuePlace {
    enum Standing {
        /// The operation may begin, or request its categories when it gets a slot.
        case ready(asks: Bool)
        /// Dependencies of the operation have not ended.
        case waits
        /// The group of the operation is suspended, although the operation may be the next one for its categories.
        case suspended(blocksOthers: Bool)
        /// Another start condition does not admit the operation yet.
        case held
        /// The operation has a start delay, which is not over.
        case delayed
        /// The operation was canceled and must end immediately.
        case cancelled
    }

    var slot: QueueMachine.Slot
    var level: QueueLevel
    var standing: Standing
}

// The questions of a queue about the operations that it holds. The lock of the queue may be held while `core` is taken.
extension ManagedOperation {
    /// Adds the operation to the queue, unless another queue, group or caller already uses it.
    ///
    /// The operation has no entry in the queue yet, so nothing happens to it before `assignPlace`.
    ///
    /// - Returns: The reason for a refusal, or `nil` if the queue now holds the operation.
    func claim(for engine: QueueEngine) -> OperationSetupError? {
        let (refusal, wasAsked) = core.withLock { core -> (QueueRefusal?, Bool) in
            if let host = core.host { return (.inQueue(host.name), false) }
            if core.parent != nil { return (.inGroup, false) }
            if core.machine.isFinished { return (.finished, false) }
            if core.machine.isStartUnderWay { return (.started, false) }
            core.host = engine
            core.slot = -1
            if let mapRecord { core.recordAddition(mapRecord) }
            return (nil, core.mayBeInFoundationQueue)
        }
        if let refusal { return refusal.error(self, engine.name) }
        guard wasAsked, isHeldByQueue(isByQueue: false) else { return nil }
        releaseClaim()
        return QueueRefusal.inFoundationQueue.error(self, engine.name)
    }

    /// Removes the operation from the queue before it has an entry.
    func releaseClaim() {
        core.release { core in
            core.extras?.maps?.added = nil
            return exchange(&core.host, with: nil)
        }
        life.signalReadyIfLinked()
    }

    /// Gives the operation the index of its entry, and returns its state in the queue.
    func assignPlace(_ slot: QueueMachine.Slot) -> QueuePlace {
        core.withLock { core in
            core.slot = slot
            return core.place(of: life)
        }
    }

    /// Returns the index of the operation's entry, or `nil` if it has left the queue or has no entry yet.
    func slot(in engine: QueueEngine) -> QueueMachine.Slot? {
        core.withLock { core in core.host === engine && core.slot >= 0 ? core.slot : nil }
    }

    /// Returns the operation's state in a queue, or `nil` if it has left the queue or has no entry yet.
    func place(in engine: QueueEngine) -> QueuePlace? {
        core.withLock { core in
            guard core.host === engine, core.slot >= 0 else { return nil }
            return core.place(of: life)
        }
    }

    /// Waits for the end of the delay before the start, and then notifies the queue.
    func beginHostedDelay() {
        beginDelay { operation in
            operation.expireIfOutOfTime()
            let host = operation.core.withLock { core in
                core.isDelayServed = true
                return core.host
            }
            host?.reconsider(operation)
        }
    }

    /// Whether the start is brief and calls no hooks, so that any thread may perform it.
    var beginsBriefly: Bool {
        life.isBodyBrief && core.withLock { $0.membership == nil && ($0.extras.map(\.isPlainAtStart) ?? true) }
    }

    /// Starts the operation for its queue, or returns `false` without any effect if the operation must not begin
    /// anymore.
    @discardableResult
    func beginHosted(isChecked: Bool = false) -> Bool {
        if let original { return original.beginHosted(isChecked: isChecked) }
        var isToBeChecked = false
        let action = move { core -> LifecycleMachine.StartAction? in
            guard core.isReady else { return nil }
            // The suspension of a group does not matter after the outcome is decided.
            if core.isHeldByGroup, core.machine.ending == nil { return nil }
            guard let extras = core.extras else { return core.machine.start(isReady: true, hasDelay: false) }
            guard core.isAdmitted else { return nil }
            // The delay may have been set while the operation waited for a slot.
            if core.hasDelayLeft, core.machine.ending == nil { return nil }
            isToBeChecked = !isChecked && (extras.membership != nil || extras.timing != nil)
            if isToBeChecked { return nil }
            let prepares = !extras.isPlainAtStart || extras.taskContext != nil
            return core.machine.start(isReady: true, hasDelay: false, prepares: prepares)
        }
        if isToBeChecked {
            // This check runs without holding the lock, because it may free the owner, and the clock may be the user's.
            expireIfOutOfTime()
            cancelIfOwnerIsGone()
            return beginHosted(isChecked: true)
        }
        guard let action else { return false }
        perform(action)
        return true
    }
}

extension HostQueue {
    /// The engine of the queue, because there is no other kind.
    var engine: QueueEngine { unsafeDowncast(self, to: QueueEngine.self) }
}

extension ManagedOperation.Core {
    /// The engine of the queue that holds the operation.
    var hostEngine: QueueEngine? { host?.engine }

    fileprivate func place(of operation: ManagedOperation) -> QueuePlace {
        QueuePlace(slot: slot, level: level, standing: standing(of: operation))
    }

    private func standing(of operation: ManagedOperation) -> QueuePlace.Standing {
        if machine.isCancelled { return .cancelled }
        if isHeldByGroup { return .suspended(blocksOthers: gateState == .called) }
        // If the operation is not ready, its node notifies the queue when it is.
        if !isReady, let node, !node.listen(operation, isHeld: true) { return .waits }
        // Most operations have neither start conditions nor a start delay.
        guard extras != nil else { return .ready(asks: false) }
        let hasDelay = hasDelayLeft
        switch gateState {
        case .called: return .ready(asks: true)
        case .closed: return .held
        case .delayed where !hasDelay: return .held
        case .open, .delayed: break
        }
        return hasDelay && machine.ending == nil ? .delayed : .ready(asks: false)
    }
}

/// The reasons why an operation cannot be added to a queue.
enum QueueRefusal {
    case inQueue(String)
    case inGroup
    case inFoundationQueue
    case started
    case finished

    func error(_ operation: Operation, _ queue: String) -> OperationSetupError {
        switch self {
        case .inQueue(let other): .alreadyAdded(operation.displayName, queue: queue, other: "queue \(other)")
        case .inGroup: .alreadyAdded(operation.displayName, queue: queue, other: "a group")
        case .inFoundationQueue:
            .alreadyAdded(operation.displayName, queue: queue, other: "an OperationQueue")
        case .started: .alreadyStarted(operation.displayName, queue: queue)
        case .finished: .alreadyFinished(operation.displayName, queue: queue)
        }
    }
}

// Operations that wait in the middle of their work, without a thread.
extension ManagedOperation {
    /// Makes the operation wait without a slot, because its body has returned or is about to return.
    ///
    /// - Parameters:
    ///   - number: The number of the wait, which increases with each wait of the operation. A wait that has already
    ///     ended is ignored, because the thread that ends a wait may overtake the thread that begins it. A second call
    ///     with the same number changes the reason.
    ///   - reason: The reason for the wait.
    package final func rest(_ number: UInt32, because reason: WaitReason) {
        guard let host = core.withLock({ $0.hostEngine }) else {
            guard core.withLock({ $0.beginWait(number, reason) }) else { return }
            slotHolder?.rest(number, because: .sharedRun)
            return
        }
        host.rest(self, number, because: reason)
    }

    /// Ends a wait, and returns whether the operation may resume immediately.
    ///
    /// If the method returns `false`, no slot is free. `resume` is then called on a global queue when a slot becomes
    /// free, unless the operation has ended.
    package final func wake(_ number: UInt32, _ resume: @escaping @Sendable () -> Void) -> Bool {
        guard let host = core.withLock({ $0.hostEngine }) else {
            core.withLock { $0.endWait(number) }
            return slotHolder?.wake(number, resume) ?? true
        }
        return host.wake(self, number) { [weak self] in
            self?.core.withLock { $0.extras?.wait = nil }
            resume()
        }
    }
}

extension QueueEngine {
    fileprivate func rest(_ operation: ManagedOperation, _ number: UInt32, because reason: WaitReason) {
        applyAfterReclaiming { state, _ in
            let slot = operation.core.withLock { core in
                core.beginWait(number, reason) && core.host === self ? core.slot : -1
            }
            guard slot >= 0 else { return }
            state.machine.rest(state.machine.entries.key(of: slot), because: reason)
        }
    }

    fileprivate func wake(
        _ operation: ManagedOperation, _ number: UInt32, _ resume: @escaping @Sendable () -> Void
    ) -> Bool {
        applyAfterReclaiming { state, _ in
            let slot = operation.core.withLock { core in
                core.endWait(number)
                return core.host === self ? core.slot : -1
            }
            guard slot >= 0 else { return true }
            let key = state.machine.entries.key(of: slot)
            // A body that waited earlier resumes earlier.
            if !state.machine.isResting(key) || state.returning.isEmpty && state.machine.resume(key) { return true }
            operation.core.withLock { $0.waitForSlot() }
            state.machine.rest(key, because: .place)
            state.returning.append(ReturningBody(key: key, turn: .call(resume)))
            return false
        }
    }
}
