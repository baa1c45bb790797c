// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

// The shell of LifecycleMachine, first half: events, applied under the lock. The second is ManagedOperation+Actions.
extension ManagedOperation {
    package final var state: OperationState { stateAndEnding.state }

    /// The state, and how the outcome came about, in one look.
    private final var stateAndEnding: (state: OperationState, ending: LifecycleMachine.Ending?) {
        let machine = storage.withLock { $0.machine }
        guard let original, !machine.isTold else { return (machine.state, machine.ending) }
        return (original.storage.withLock { $0.machine.stateBeforeConversion }, nil)
    }

    /// The state in words, which tell a result ("succeeded") from an error ("failed").
    public final var stateDescription: String {
        switch stateAndEnding {
        case (.finished, .success): "succeeded"
        case (.finished, .failure): "failed"
        case (let state, _): state.description
        }
    }

    /// Whether the operation is in the state `finished`, with that ending.
    final func hasEnded(as ending: LifecycleMachine.Ending) -> Bool {
        storage.withLock { $0.machine.state == .finished && $0.machine.ending == ending }
    }

    /// Whether the operation is not started, executing or suspended.
    public final var isWorkingOrInProcess: Bool { state.isWorkingOrInProcess }

    /// Whether the operation finished or was cancelled.
    public final var isFinishedOrCancelled: Bool { state.isFinishedOrCancelled }

    /// Why the operation was cancelled, if it was.
    public final var cancellationCause: CancellationCause? { storage.withLock { $0.cause } }

    /// Cancels the operation and says why.
    ///
    /// The first decision counts: after a result, an error or another cause the outcome stays as it is.
    ///
    /// Before the body begins, it will never run. In flight, the work is stopped and the operation ends immediately, unless
    /// its subclass winds down on its own.
    ///
    /// If you call this method on the callback queue, and that queue is serial, neither ``TypedOperation/successHandler`` nor
    /// ``TypedOperation/failureHandler`` begins after the method has returned. This also holds for a handler that was already
    /// enqueued because the operation had its result or its error before.
    public final func cancel(because cause: CancellationCause) {
        // A mapped operation may have an outcome of its own while its original has none.
        if let original, storage.withLock({ $0.machine.ending != nil }) {
            return silenceMap(of: original)
        }
        _ = tryToCancel(because: cause, silences: true)
    }

    /// Cancels the operation if, at the moment in which that is decided, `isWanted`; else does nothing.
    final func cancel(because cause: CancellationCause, onlyIf isWanted: (Core) -> Bool) {
        _ = tryToCancel(because: cause, onlyIf: isWanted)
    }

    /// Cancels the operation; returns false if it had its outcome already, and then only keeps its handlers from beginning.
    @discardableResult
    final func cancelAndSilence(because cause: CancellationCause) -> Bool {
        tryToCancel(because: cause, silences: true) == true
    }

    /// Keeps the handlers of a mapped operation that has its outcome from beginning, and those of its original if that has one.
    private func silenceMap(of original: ManagedOperation) {
        storage.withLock { $0.isSilent = true }
        let isSilent = original.storage.withLock { core in
            core.silence()
            return core.isSilent
        }
        if isSilent { original.groupEngine?.silence() }
    }

    /// Nil if it was not wanted, false if it came too late.
    ///
    /// - Parameter silences: Whether no handler of a result or an error may begin afterwards, if it came too late.
    private func tryToCancel(
        because cause: CancellationCause, through record: MapRecord? = nil, silences: Bool = false,
        onlyIf isWanted: (Core) -> Bool = { _ in true }
    ) -> Bool? {
        if let original {
            let answer = original.tryToCancel(because: cause, through: mapRecord, silences: silences, onlyIf: isWanted)
            // The original may have been canceled before, and this operation may be about to convert the cancellation.
            if silences, answer == false { storage.withLock { $0.isSilent = true } }
            return answer
        }
        let style = endStyle
        let (action, told) = move { core -> (LifecycleMachine.CancelAction?, Told) in
            guard isWanted(core) else { return (nil, Told()) }
            let action = core.machine.cancel(style: style)
            guard action != .refuse else {
                if silences { core.silence() }
                return (action, Told())
            }
            core.cause = cause
            record?.isCancelled = true
            return (action, core.takeTold())
        }
        guard let action else { return nil }
        if action == .refuse {
            if silences { groupEngine?.silence() }
            return false
        }
        signalCancelled()
        tell(told)
        switch action {
        case .refuse: break
        case .tell: cancellationDidReachAll(cause)
        case .tellAndEnd: end()
        case .tellStopAndEnd:
            stopBody(because: cause)
            end()
        }
        return true
    }

    private func cancellationDidReachAll(_ cause: CancellationCause) {
        switch core.withLock({ $0.machine.cancellationTold() }) {
        case .none: readinessDidChange()
        case .awaitEntry: break
        case .stop: stopBody(because: cause)
        case .end: end()
        }
    }

    /// Puts an executing operation on hold, if its subclass knows how; returns whether it was executing.
    @discardableResult
    package final func suspendExecution() -> Bool {
        if let original { return original.suspendExecution() }
        guard canBeSuspended, move({ $0.machine.suspend() }) else { return false }
        tellBodyOfSuspension()
        return true
    }

    /// Lets a suspended operation go on; returns whether it was suspended.
    @discardableResult
    package final func resumeExecution() -> Bool {
        if let original { return original.resumeExecution() }
        guard move({ $0.machine.resume() }) else { return false }
        tellBodyOfSuspension()
        return true
    }

    /// Starts the operation unless it was started or a queue will start it, without a word about it.
    package final func startIfNeeded() { begin(onlyIfNeeded: true) }

    final func begin(onlyIfNeeded: Bool) {
        if let original, let mapRecord {
            return original.begin(through: self, mapRecord, onlyIfNeeded: onlyIfNeeded)
        }
        // One step for the many that have nothing but a body; the others are looked at more closely.
        var isPlain = true
        let action = move { core -> LifecycleMachine.StartAction? in
            if onlyIfNeeded, core.isStartUnderWay { return nil }
            isPlain =
                core.extras == nil && core.node == nil && core.host == nil
                && core.parent == nil && !core.wasAskedForReadiness
            return isPlain ? core.machine.start(isReady: true, hasDelay: false) : nil
        }
        if isPlain, action == .run {
            signalExecuting()
            runBody()
        } else if let action {
            perform(action)
        } else if !isPlain {
            beginWithCare(onlyIfNeeded: onlyIfNeeded)
        }
    }

    /// Starts a child for its group, on this thread.
    final func beginInGroup() { life.beginWithCare(onlyIfNeeded: true, isForGroup: true) }

    /// Starts the original of a mapped operation that was started, unless its queue or its group will start it.
    ///
    /// - Parameter isByQueue: Whether a queue of Foundation started the mapped operation. Other operations that are
    ///   mapped from the same original may be in queues, too. The first queue that starts one of them starts the
    ///   original.
    final func beginUnlessTaken(isByQueue: Bool) { beginWithCare(onlyIfNeeded: true, ignoresMaps: isByQueue) }

    private func beginWithCare(onlyIfNeeded: Bool, isForGroup: Bool = false, ignoresMaps: Bool = false) {
        if !isForGroup {
            let isTaken = core.withLock { $0.host != nil || $0.parent != nil }
            if isTaken || isHeldByQueue(isByQueue: !onlyIfNeeded, ignoresMaps: ignoresMaps) {
                if !onlyIfNeeded { reportStartBesideQueue() }
                return
            }
        }
        expireIfOutOfTime()
        cancelIfOwnerIsGone()
        var isTaken = false
        let action = move { core -> LifecycleMachine.StartAction? in
            // A queue may have taken it in meanwhile.
            isTaken = core.host != nil || !isForGroup && core.parent != nil
            if isTaken || onlyIfNeeded && core.isStartUnderWay { return nil }
            return core.machine.start(
                isReady: core.isReady, isAdmitted: core.isAdmitted, hasDelay: core.hasDelay, prepares: true)
        }
        if isTaken, !onlyIfNeeded { reportStartBesideQueue() }
        guard let action else { return }
        let notes = ThreadNotes.current
        notes.queuedBodies += 1
        perform(action)
        notes.queuedBodies -= 1
        if action == .awaitDependencies, listen() { dependenciesDidEnd() }
    }

    /// Starts the operation and keeps it alive until it ended, whoever else lets go of it.
    public final func startAndKeepAlive() {
        let old = core.withLock { core in
            core.machine.isFinished ? nil : exchange(&core.need().selfReference, with: self)
        }
        // The old value may be another operation that is mapped from the same original, and may be freed here.
        withExtendedLifetime(old) {}
        start()
    }

    // Events, for the typed side.

    /// Decides a result or an error, which is in `box`; returns whether the operation keeps that now.
    final func finish(as ending: LifecycleMachine.Ending, keeping box: OutcomeBox) -> Bool {
        if original != nil { return finishMap(as: ending, keeping: box) }
        let style = endStyle
        let (action, told, isEarly) = move { core in
            let action = core.machine.finish(ending, style: style)
            guard action == .tellAndEnd || action == .keep else { return (action, Told(), false) }
            core.box = box
            return (action, core.takeTold(), action == .keep && !core.machine.isStarted)
        }
        switch action {
        case .tellAndEnd:
            tell(told)
            end()
            return true
        case .keep:
            tell(told)
            releaseBody()
            if isEarly { bodyBecameNeedless() }
            return true
        case .awaitTelling: break
        case .end: end()
        case .refuseSecond: reportSecondFinish()
        case .refuseCancelled: reportFinishAfterCancellation()
        }
        return false
    }

    /// A result came before the start: what must let a body begin does not matter any more.
    private func bodyBecameNeedless() {
        let (old, host) = core.withLock { ($0.withdrawOutdatedAdmission(), $0.host) }
        old?.giveBack()
        host?.reconsider(self)
    }

    /// Decides the error that the rule of a dependency gave, which is in `box`; returns whether the operation keeps it.
    ///
    /// Says nothing if it came too late: the rule could not know.
    final func failByRule(keeping box: OutcomeBox) -> Bool {
        if original != nil { return failMapByRule(keeping: box) }
        let (action, told) = move { core in
            let action = core.machine.failByRule()
            guard action != nil else { return (action, Told()) }
            core.box = box
            return (action, core.takeTold())
        }
        guard let action else { return false }
        tell(told)
        switch action {
        case .tellAndEnd: end()
        case .keep:
            releaseBody()
            // A queue waits for the other dependencies, which do not matter any more.
            readinessDidChange()
        }
        return true
    }

    /// The body of an operation that ends with it returned.
    package final func bodyDidReturn() {
        if let seat = ThreadNotes.current.seat, seat.operation === self { seat.isConcluding = true }
        let (action, told) = move { core in
            let action = core.machine.bodyReturned()
            if action == .tellMissingResultAndEnd { core.cause = .noResult }
            return (action, action == nil || action == .end ? Told() : core.takeTold())
        }
        guard let action else { return }
        if action == .tellMissingResultAndEnd {
            OperationDiagnostics.report(.noResult, by: self, CancellationCause.noResult.message)
            signalCancelled()
        }
        tell(told)
        end()
    }

    /// The last dependency ended, was removed, or ceased to matter.
    final func dependenciesDidEnd() {
        if let action = move({ $0.isReady ? $0.machine.dependenciesEnded() : nil }) {
            perform(action)
        } else {
            // A queue that holds the operation must look at it again.
            readinessDidChange()
        }
    }

    /// A queue that holds the operation must look at it again.
    private func readinessDidChange() {
        let (host, parent, slot) = core.withLock { ($0.host, $0.parent, $0.parentSlot) }
        if let host { return host.reconsider(self) }
        if let parent { return parent.childDidChange(self, slot) }
        signalReadyIfLinked()
    }

    /// Asks to be told when the last dependency ends; returns whether that was before.
    private func listen() -> Bool {
        nodeIfAny?.listen(.loose(WeakOperation(self))) ?? true
    }

    final func turnDidCome() {
        cancelIfOwnerIsGone()
        guard
            let action = move({ core in
                core.machine.turnCame(isAdmitted: core.isAdmitted || core.isDelayed, hasDelay: core.hasDelayLeft)
            })
        else { return }
        perform(action)
    }

    final func delayDidEnd() {
        let action = move { core -> LifecycleMachine.StartAction? in
            core.isDelayServed = true
            return core.machine.delayEnded(isAdmitted: core.isAdmitted)
        }
        guard let action else { return }
        perform(action)
    }
}

extension ManagedOperation.Core {
    /// Keeps the handlers of the outcome, which is decided, from beginning.
    ///
    /// A canceled operation has no such handlers. The operations that are mapped from it may have some: they convert the
    /// cancellation.
    fileprivate mutating func silence() {
        if let ending = machine.ending, ending != .cancelled { isSilent = true }
    }
}

// The short way for the many that are cancelled before they begin, and of which nobody is told but their group.
extension ManagedOperation {
    /// Where a child stood that was ended.
    struct GroupSeat {
        var slot: GroupMachine.Slot
        var tag: Int32
        /// Its place in the queue that held it.
        var queueSlot: QueueMachine.Slot
    }

    /// Cancels and ends, in one step, a child that has not begun, that depends on nothing and on which nothing depends,
    /// and that has no handlers; nil, and nothing happened, otherwise.
    ///
    /// To be called under the lock of the queue that holds it, or of the group where no queue does. What follows is for
    /// the caller: `tellEndOfUnbegun`, then the queue, then the group.
    final func endUnbegun(
        in parent: GroupEngine, heldBy host: QueueEngine?, because cause: CancellationCause
    ) -> GroupSeat? {
        guard Self.canEndInOneStep else { return nil }
        return core.withLock { core in
            guard core.parent === parent, core.host === host, !core.hasHandlers, core.extras == nil, core.node == nil,
                core.membership == nil, !core.wasAskedForReadiness,
                // One that stands in for another is not the group's alone.
                core.parentTag != GroupRescue.tag, core.machine.cancelAndEnd()
            else { return nil }
            core.cause = cause
            // Neither is the last that holds it: the caller does.
            core.parent = nil
            core.host = nil
            return GroupSeat(slot: core.parentSlot, tag: core.parentTag, queueSlot: core.slot)
        }
    }

    /// Lets go of the body, and tells Foundation.
    final func tellEndOfUnbegun() {
        releaseBody()
        signalEndOfUnbegun()
    }
}

extension ManagedOperation {
    /// Calls `action` once the operation ended, at once if it has; returns what ``removeEndAction(_:)`` takes back.
    ///
    /// It must be short and is called outside every lock.
    @discardableResult
    package final func whenEnded(_ action: @escaping @Sendable () -> Void) -> UInt64? {
        let id = core.withLock { core -> UInt64? in
            if core.machine.isFinished { return nil }
            let extras = core.need()
            extras.lastObserverID += 1
            extras.endActions.append(action, id: extras.lastObserverID)
            return extras.lastObserverID
        }
        if id == nil { action() }
        return id
    }

    /// Takes an action back that was to be called when the operation ended, unless it is being called.
    package final func removeEndAction(_ id: UInt64) {
        let removed = core.withLock { $0.extras?.endActions.remove(id) }
        withExtendedLifetime(removed) {}
    }

    /// How many actions are stored that wait for the end.
    package final var endActionCount: Int { core.withLock { $0.extras?.endActions.storedCount ?? 0 } }
}
