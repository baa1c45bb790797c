// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

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

// How urgent an operation is, and that what it waits for is as urgent.
extension ManagedOperation {
    /// Whether some operation was ever less urgent than normal: as long as there is none, a normal one need not raise
    /// those that it waits for.
    private static let isAnyLow = Atomic(false)

    final func levelDidChange() {
        var (level, effective, host) = (QueueLevel.normal, QueueLevel.normal, nil as QueueEngine?)
        // Another thread may set it at the same time, so the latest value is applied.
        applyLatest({ QueueLevel(queuePriority, qualityOfService) }) { present in
            level = present
            (effective, host) = noteOwnLevel(present)
        }
        if level < .normal { raiseToDependents() }
        guard let host else { return }
        host.reconsider(self)
        raiseUpstream(to: effective)
    }

    private func noteOwnLevel(_ level: QueueLevel) -> (effective: QueueLevel, host: QueueEngine?) {
        if level < .normal { Self.isAnyLow.store(true, ordering: .sequentiallyConsistent) }
        return core.withLock { core in
            core.ownLevel = level
            return (core.urgency, core.host)
        }
    }

    /// Those that wait for this operation may have taken it for as urgent as they are, and not have raised it.
    private func raiseToDependents() {
        for dependent in nodeIfAny?.listeningDownstream ?? [] {
            raise(to: dependent.core.withLock { $0.levelOfUpstream })
        }
    }

    /// Makes what this operation waits for at least as urgent as it is, once it is in a queue.
    final func raiseUpstreamIfNeeded(_ level: QueueLevel) {
        guard Self.mayRaise(level) else { return }
        raiseUpstream(to: level == .awaited ? core.withLock { $0.urgency } : level)
    }

    /// Whether one that is so urgent may wait for one that is less.
    static func mayRaise(_ level: QueueLevel) -> Bool {
        level > .normal || level > .veryLow && isAnyLow.load(ordering: .sequentiallyConsistent)
    }

    /// Makes the operation, and what it waits for, at least that urgent.
    final func raise(to level: QueueLevel) {
        if raiseItself(to: level) { raiseUpstream(to: level) }
    }

    /// Makes the operation the first of all, for a body that is so urgent waits for it and holds a thread; what it waits for
    /// is made as urgent as the body.
    final func raise(forBodyOf urgency: QueueLevel) {
        // In a loop and not in a recursion: groups are in groups, to any depth.
        var raised: [ManagedOperation] = [self]
        var next = 0
        while next < raised.count {
            let operation = raised[next]
            next += 1
            guard operation.becomeAwaited(by: urgency), let group = operation.groupEngine else { continue }
            raised += group.presentChildren
        }
    }

    /// False if it was the first of all before, or has ended.
    private func becomeAwaited(by urgency: QueueLevel) -> Bool {
        raise(to: urgency)
        let (isNew, host) = core.withLock { core -> (Bool, QueueEngine?) in
            guard !core.isAwaited, !core.machine.isFinished else { return (false, nil) }
            core.isAwaited = true
            return (true, core.host)
        }
        host?.reconsider(self)
        return isNew
    }

    private func raiseUpstream(to level: QueueLevel) {
        var next = nodeIfAny?.liveUpstream ?? []
        while let operation = next.popLast() {
            if operation.raiseItself(to: level) { next += operation.nodeIfAny?.liveUpstream ?? [] }
        }
    }

    /// False if it was that urgent already, and with it what it waits for.
    private func raiseItself(to level: QueueLevel) -> Bool {
        let (isRaised, host) = core.withLock { core -> (Bool, QueueEngine?) in
            guard core.raisedLevel < level, !core.machine.isFinished else { return (false, nil) }
            core.raisedLevel = level
            return (true, core.host)
        }
        host?.reconsider(self)
        return isRaised
    }
}

extension ManagedOperation.Core {
    /// How urgent that is for which it waits from now on: its own priority counts once it is in a queue.
    var levelOfUpstream: QueueLevel { host == nil ? raisedLevel : urgency }
}

/// The wait of an operation that rests.
struct OperationWait {
    /// Which of its waits it is.
    var number: UInt32
    var reason: WaitReason
}

// Operations that wait in the middle of their work, without a thread.
extension ManagedOperation {
    /// What the operation waits for in the middle of its work; nil while it does not.
    ///
    /// Meanwhile it is executing, but takes no place of its ``QueueManager``: others run in its stead. It gets one again
    /// before it goes on, and before anything that has not begun.
    public final var waitReason: WaitReason? {
        core.withLock { $0.machine.ending == nil ? $0.extras?.wait?.reason : nil }
    }

    /// The queue in which it takes a place: its own, or that of the operation in whose place it runs.
    var placeHost: QueueEngine? {
        core.withLock { $0.host } ?? placeKeeper?.placeHost
    }

    private var placeKeeper: ManagedOperation? { core.withLock { $0.extras?.placeKeeper } }

    /// Whether it is in that queue, and has or had a place there.
    package final func isHosted(by queue: QueueManager) -> Bool { placeHost === queue.engine }

    /// Whether who needs a place for each of them takes the one for this operation first.
    ///
    /// Of two queues one is always the first, so that nobody waits in a circle with a place in hand.
    package final func precedes(_ other: ManagedOperation) -> Bool {
        guard let host = placeHost, let otherHost = other.placeHost else { return true }
        return ObjectIdentifier(host) < ObjectIdentifier(otherHost)
    }

    /// The operation waits from now on and needs no slot meanwhile; its body has returned, or is about to.
    ///
    /// - Parameters:
    ///   - number: Counts up with each wait of the operation. One that is over already is not begun: the thread that
    ///     brings the news of a wait may be overtaken by the one that ends it. Said again, it changes the reason.
    ///   - reason: Why.
    package final func rest(_ number: UInt32, because reason: WaitReason) {
        guard let host = core.withLock({ $0.host }) else {
            _ = core.withLock { $0.beginWait(number, reason) }
            placeKeeper?.rest(number, because: .sharedRun)
            return
        }
        host.rest(self, number, because: reason)
    }

    /// What the operation waited for came; true if it may go on at once.
    ///
    /// If not, there is no slot for it: `goOn` is called on a global queue when there is, unless the operation ended.
    package final func wake(_ number: UInt32, _ goOn: @escaping @Sendable () -> Void) -> Bool {
        guard let host = core.withLock({ $0.host }) else {
            core.withLock { $0.endWait(number) }
            return placeKeeper?.wake(number, goOn) ?? true
        }
        return host.wake(self, number) { [weak self] in
            self?.core.withLock { $0.extras?.wait = nil }
            goOn()
        }
    }
}

extension ManagedOperation.Core {
    /// Whether it has not ended: what winds down may wait, too, and keep a place from those for whom it waits.
    private var isAtWork: Bool { machine.ending == nil || machine.isExecuting }

    /// False if the wait is over, or the operation is.
    @discardableResult
    mutating func beginWait(_ number: UInt32, _ reason: WaitReason) -> Bool {
        guard isAtWork, machine.isStarted, number > extras?.lastWait ?? 0 else { return false }
        need().wait = OperationWait(number: number, reason: reason)
        return true
    }

    /// The wait is over, though its news may be still to come.
    mutating func endWait(_ number: UInt32) {
        guard isAtWork else { return }
        let extras = need()
        extras.lastWait = max(extras.lastWait, number)
        extras.wait = nil
    }

    /// It is, but there is no slot.
    mutating func waitForPlace(_ number: UInt32) {
        if machine.ending == nil { need().wait = OperationWait(number: number, reason: .place) }
    }
}

extension QueueEngine {
    fileprivate func rest(_ operation: ManagedOperation, _ number: UInt32, because reason: WaitReason) {
        applySettled { state, _ in
            let slot = operation.core.withLock { core in
                core.beginWait(number, reason) && core.host === self ? core.slot : -1
            }
            guard slot >= 0 else { return }
            state.machine.rest(state.machine.entries.key(of: slot), because: reason)
        }
    }

    fileprivate func wake(
        _ operation: ManagedOperation, _ number: UInt32, _ goOn: @escaping @Sendable () -> Void
    ) -> Bool {
        applySettled { state, _ in
            let slot = operation.core.withLock { core in
                core.endWait(number)
                return core.host === self ? core.slot : -1
            }
            guard slot >= 0 else { return true }
            let key = state.machine.entries.key(of: slot)
            // Who came before goes on before.
            if !state.machine.isResting(key) || state.returning.isEmpty && state.machine.resume(key) { return true }
            operation.core.withLock { $0.waitForPlace(number) }
            state.machine.rest(key, because: .place)
            state.returning.append(ReturningBody(key: key, turn: .call(goOn)))
            return false
        }
    }
}
