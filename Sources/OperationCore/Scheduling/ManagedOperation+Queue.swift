// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where an operation stands in the queue that holds it.
struct QueuePlace {
    enum Standing {
        case ready
        /// Dependencies of it have not ended.
        case waits
        /// Something else must let it begin, and has not.
        case held
        /// It asked for a delay before its start, which has still to begin or goes on.
        case delayed(begins: Bool)
        /// It was cancelled, and is to be ended at once.
        case cancelled
    }

    var slot: QueueMachine.Slot
    var level: QueueLevel
    var standing: Standing
    /// Whether the operation asks for its categories when it gets a slot.
    var asks = false
    /// Whether the operation is the next one for its categories, but cannot begin because its group is suspended.
    var blocksOthers = false
}

// What a queue of this package asks of the operations that it holds. The queue's lock may be held while `core` is taken.
extension ManagedOperation {
    /// Makes the operation one of the queue's, unless it is somebody else's; nil if it is now.
    ///
    /// It has no slot there yet, so that nothing happens to it before `seat`.
    func claim(for engine: QueueEngine) -> QueueError? {
        let (refusal, wasAsked) = core.withLock { core -> (QueueRefusal?, Bool) in
            if let host = core.host { return (.inQueue(host.name), false) }
            if core.parent != nil { return (.inGroup, false) }
            if core.machine.isFinished { return (.finished, false) }
            if core.isStartUnderWay { return (.started, false) }
            core.host = engine
            core.slot = -1
            core.noteAdded(self)
            return (nil, core.mayBeInFoundationQueue)
        }
        if let refusal { return refusal.error(self, engine.name) }
        guard wasAsked, isHeldByQueue(isByQueue: false) else { return nil }
        unclaim()
        return QueueRefusal.inFoundationQueue.error(self, engine.name)
    }

    /// Takes the claim back, before the operation has a slot.
    func unclaim() {
        let host = core.withLock { core in
            core.extras?.maps?.added = nil
            return exchange(&core.host, with: nil)
        }
        withExtendedLifetime(host) {}
        life.signalReadyIfLinked()
    }

    /// Gives the operation its slot; returns where it stands.
    func seat(in engine: QueueEngine, _ slot: QueueMachine.Slot) -> QueuePlace? {
        core.withLock { core in
            core.slot = slot
            return core.place(of: life)
        }
    }

    /// Its slot in that queue; nil if it has left it, or has none yet.
    func slot(in engine: QueueEngine) -> QueueMachine.Slot? {
        core.withLock { core in core.host === engine && core.slot >= 0 ? core.slot : nil }
    }

    /// Where it stands in that queue; nil if it has left it, or has no slot yet.
    func place(in engine: QueueEngine) -> QueuePlace? {
        core.withLock { core in
            core.host === engine && core.slot >= 0 ? core.place(of: life) : nil
        }
    }

    /// Waits out the delay before the start, and tells the queue.
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

    /// Whether its start takes but a moment and runs nothing of a user's, so that it may be on any thread.
    var beginsBriefly: Bool {
        life.isBodyBrief && core.withLock { $0.membership == nil && ($0.extras.map(\.isPlainAtStart) ?? true) }
    }

    /// Starts the operation for its queue; false, and nothing happened, if a dependency came in between.
    @discardableResult
    func beginHosted(isChecked: Bool = false) -> Bool {
        if let original { return original.beginHosted(isChecked: isChecked) }
        var isPlain = true
        var isToBeChecked = false
        let action = move { core -> LifecycleMachine.StartAction? in
            guard core.isReady, core.isAdmitted, !core.isHeldNow else { return nil }
            isToBeChecked = !isChecked && (core.membership != nil || core.extras.map { $0.timing != nil } ?? false)
            if isToBeChecked { return nil }
            isPlain = core.extras.map { $0.isPlainAtStart && $0.taskContext == nil } ?? true
            return core.machine.start(isReady: true, hasDelay: false, prepares: !isPlain)
        }
        if isToBeChecked {
            // Looked at outside the lock, since the owner may be freed by that, and the clock may be the user's.
            expireIfOutOfTime()
            cancelIfOwnerIsGone()
            return beginHosted(isChecked: true)
        }
        guard let action else { return false }
        if isPlain, action == .run {
            signalExecuting()
            runBody()
        } else {
            perform(action)
        }
        return true
    }
}

extension ManagedOperation.Core {
    fileprivate mutating func place(of operation: ManagedOperation) -> QueuePlace {
        let isCalled = isCalled
        return QueuePlace(
            slot: slot, level: level, standing: standing(of: operation), asks: isCalled,
            blocksOthers: isCalled && isHeldByGroup)
    }

    /// Whether its group is suspended, which does not matter to what is cancelled.
    fileprivate var isHeldNow: Bool { isHeldByGroup && machine.ending == nil }

    private mutating func standing(of operation: ManagedOperation) -> QueuePlace.Standing {
        if machine.isCancelled { return .cancelled }
        if isHeldByGroup { return .waits }
        // Not ready, the queue will be told by the node when it is.
        guard isReady || node?.listen(.held(operation)) ?? true else { return .waits }
        if isCalled { return .ready }
        guard isAdmitted || isDelayed && hasDelayLeft else { return .held }
        guard hasDelayLeft, machine.ending == nil else { return .ready }
        defer { isDelayBegun = true }
        return .delayed(begins: !isDelayBegun)
    }
}

/// Why an operation cannot be given to a queue.
enum QueueRefusal {
    case inQueue(String)
    case inGroup
    case inFoundationQueue
    case started
    case finished

    func error(_ operation: Operation, _ queue: String) -> QueueError {
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
