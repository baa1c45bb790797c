// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

// Applies the events of LifecycleMachine under the lock. ManagedOperation+LifecycleActions performs the actions.
extension ManagedOperation {
    /// Applies an event under the lock, and notifies the readers of the states after the lock is released.
    @inline(__always)
    final func move<Result>(_ event: (inout Core) -> Result) -> Result {
        var wakeUps: [() -> Void] = []
        let result = core.withLock { core in
            guard let extras = core.extras, !extras.feeds.isEmpty else { return event(&core) }
            let before = core.machine.state
            let result = event(&core)
            let after = core.machine.state
            if before != after { wakeUps = extras.feeds.elements.compactMap { $0.add(after) } }
            return result
        }
        for wake in wakeUps { wake() }
        return result
    }

    package final var state: OperationState { stateAndEnding.state }

    /// The state and the kind of the outcome, read together.
    private final var stateAndEnding: (state: OperationState, ending: LifecycleMachine.Ending?) {
        let machine = storage.withLock { $0.machine }
        guard let original, !machine.isOutcomeReported else { return (machine.state, machine.ending) }
        return (original.storage.withLock { $0.machine.stateBeforeConversion }, nil)
    }

    /// A description of the operation's state, such as "succeeded", "failed" or "executing".
    public final var stateDescription: String {
        switch stateAndEnding {
        case (.finished, .success): "succeeded"
        case (.finished, .failure): "failed"
        case (let state, _): state.description
        }
    }

    /// Returns whether the operation is in the state `finished` with the given ending.
    final func hasEnded(as ending: LifecycleMachine.Ending) -> Bool {
        storage.withLock { $0.machine.state == .finished && $0.machine.ending == ending }
    }

    /// A Boolean value that indicates whether the operation has not finished and was not canceled.
    public final var isWorkingOrInProcess: Bool { state.isWorkingOrInProcess }

    /// A Boolean value that indicates whether the operation has finished or was canceled.
    public final var isFinishedOrCancelled: Bool { state.isFinishedOrCancelled }

    /// The cause of the cancellation, or `nil` if the operation was not canceled.
    public final var cancellationCause: CancellationCause? { storage.withLock { $0.cause } }

    /// Cancels the operation with a specific cause.
    ///
    /// If the operation already has a result, an error or a cancellation cause, its outcome does not change.
    ///
    /// If the body has not begun, it never runs. If the body is running, the operation calls `didCancel(because:)` and
    /// ends immediately. However, a ``SyncOperation``, and an operation whose `windsDownAfterCancellation` is `true`,
    /// end only when their work has ended.
    ///
    /// If you call this method on the callback queue and this queue is serial, neither
    /// ``TypedOperation/successHandler`` nor ``TypedOperation/failureHandler`` is called after the method has returned.
    /// This guarantee also applies to a handler that was enqueued before the call.
    ///
    /// - Parameter cause: The reason for the cancellation.
    public final func cancel(because cause: CancellationCause) {
        // A mapped operation may have its own outcome while its original has none.
        if let original, storage.withLock({ $0.machine.ending != nil }) {
            return silenceMap(of: original)
        }
        _ = tryToCancel(because: cause, silences: true)
    }

    /// Cancels the operation if `isWanted` returns `true`, and otherwise has no effect.
    ///
    /// The closure is called under the lock, together with the decision.
    final func cancel(because cause: CancellationCause, onlyIf isWanted: (Core) -> Bool) {
        _ = tryToCancel(because: cause, onlyIf: isWanted)
    }

    /// Cancels the operation, or prevents its handlers from beginning if the outcome is already decided.
    ///
    /// - Returns: Whether this call canceled the operation.
    @discardableResult
    final func cancelAndSilence(because cause: CancellationCause) -> Bool {
        tryToCancel(because: cause, silences: true) == true
    }

    /// Prevents the handlers of a mapped operation from beginning, and those of its original if the original has an
    /// outcome.
    private func silenceMap(of original: ManagedOperation) {
        storage.withLock { $0.isSilent = true }
        let isSilent = original.storage.withLock { core in
            core.silence()
            return core.isSilent
        }
        if isSilent { original.ownGroup?.silence() }
    }

    /// Cancels the operation if the outcome is undecided.
    ///
    /// - Parameters:
    ///   - record: The record of the mapped operation through which the operation is canceled.
    ///   - silences: Whether a call that comes too late prevents the handlers of a result or an error from beginning.
    ///   - isWanted: A closure that decides, under the lock, whether to cancel.
    /// - Returns: `nil` if the cancellation was not wanted, or `false` if it came too late.
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
        let (action, notifications) = move { core -> (LifecycleMachine.CancelAction?, Notifications) in
            guard isWanted(core) else { return (nil, Notifications()) }
            let action = core.machine.cancel(style: style)
            guard action != .refuse else {
                if silences { core.silence() }
                return (action, Notifications())
            }
            core.cause = cause
            record?.isCancelled = true
            return (action, core.takeNotifications())
        }
        guard let action else { return nil }
        if action == .refuse {
            if silences { ownGroup?.silence() }
            return false
        }
        signalCancelled()
        notify(notifications)
        switch action {
        case .refuse: break
        case .notify: cancellationDidReachAll(cause)
        case .notifyAndEnd: end()
        case .notifyStopAndEnd:
            stopBody(because: cause)
            end()
        }
        return true
    }

    private func cancellationDidReachAll(_ cause: CancellationCause) {
        switch core.withLock({ $0.machine.cancellationNotified() }) {
        case .none: readinessDidChange()
        case .awaitEntry: break
        case .stop: stopBody(because: cause)
        case .end: end()
        }
    }

    /// Suspends an executing operation that supports it, and returns whether it was suspended by this call.
    @discardableResult
    package final func suspendExecution() -> Bool {
        if let original { return original.suspendExecution() }
        guard canBeSuspended, move({ $0.machine.suspend() }) else { return false }
        notifyBodyOfSuspension()
        return true
    }

    /// Resumes a suspended operation, and returns whether it was suspended.
    @discardableResult
    package final func resumeExecution() -> Bool {
        if let original { return original.resumeExecution() }
        guard move({ $0.machine.resume() }) else { return false }
        notifyBodyOfSuspension()
        return true
    }

    /// Starts the operation, unless it was started before or a queue will start it, without reporting a notice.
    package final func startIfNeeded() { begin(onlyIfNeeded: true) }

    final func begin(onlyIfNeeded: Bool) {
        if let original, let mapRecord {
            return original.begin(through: self, mapRecord, onlyIfNeeded: onlyIfNeeded)
        }
        // Most operations have only a body and start in one step. The others need more checks.
        var needsCare = false
        let action = move { core -> LifecycleMachine.StartAction? in
            if onlyIfNeeded, core.machine.isStartUnderWay { return nil }
            if core.extras == nil, core.node == nil, core.host == nil, core.parent == nil, !core.wasAskedForReadiness {
                return core.machine.start(isReady: true, hasDelay: false)
            }
            needsCare = true
            return nil
        }
        if let action {
            perform(action)
        } else if needsCare {
            beginWithCare(onlyIfNeeded: onlyIfNeeded)
        }
    }

    /// Starts a child for its group on the calling thread.
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
            // A queue may have added the operation in the meantime.
            isTaken = core.host != nil || !isForGroup && core.parent != nil
            if isTaken || onlyIfNeeded && core.machine.isStartUnderWay { return nil }
            return core.machine.start(
                isReady: core.isReady, isAdmitted: core.isAdmitted, hasDelay: core.hasDelay, prepares: true)
        }
        if isTaken, !onlyIfNeeded { reportStartBesideQueue() }
        guard let action else { return }
        perform(action)
        if action == .awaitDependencies, nodeIfAny?.listen(self) ?? true { dependenciesDidEnd() }
    }

    /// Cancels an operation that is about to begin if its owner is gone.
    final func cancelIfOwnerIsGone() {
        let membership = core.withLock { $0.machine.ending == nil ? $0.membership : nil }
        if let cause = membership?.causeIfOwnerIsGone { cancelIfUndecided(because: cause) }
    }

    /// Starts the operation and keeps it alive until it has ended.
    public final func startAndKeepAlive() {
        let old = core.withLock { core in
            core.machine.isFinished ? nil : exchange(&core.need().selfReference, with: self)
        }
        // The old value may be another operation that is mapped from the same original. The old value may be freed
        // here.
        extendLifetime(old)
        start()
    }

    // Events from the typed subclasses.

    /// Decides a result or an error, which is in `box`, and returns whether the operation keeps it.
    ///
    /// If `isOfBody` is `true`, the value comes from a closure, which need not know that the operation was canceled. In
    /// this case, no notice is reported after a cancellation.
    final func finish(as ending: LifecycleMachine.Ending, keeping box: OutcomeBox, isOfBody: Bool = false) -> Bool {
        if original != nil { return finishMap(as: ending, keeping: box) }
        let style = endStyle
        let (action, notifications, isEarly) = move { core in
            let action = core.machine.finish(ending, style: style)
            switch action {
            case .notifyAndEnd, .keep:
                core.box = box
                return (action, core.takeNotifications(), !core.machine.isStarted)
            case .awaitNotification, .end, .refuseSecond, .refuseCancelled:
                return (action, Notifications(), false)
            }
        }
        switch action {
        case .notifyAndEnd:
            notify(notifications)
            end()
            return true
        case .keep:
            notify(notifications)
            releaseBody()
            if isEarly { bodyIsNoLongerNeeded() }
            return true
        case .awaitNotification: break
        case .end: end()
        case .refuseSecond: reportSecondFinish()
        case .refuseCancelled: if !isOfBody { reportFinishAfterCancellation() }
        }
        return false
    }

    /// Withdraws the operation's request to begin, because a result arrived before the start.
    private func bodyIsNoLongerNeeded() {
        let (gate, host) = core.withLock { ($0.extras?.gate, $0.host) }
        _ = gate?.giveBackIfOutdated(self)
        host?.reconsider(self)
    }

    /// Decides the error from the rule of a dependency, which is in `box`, and returns whether the operation keeps it.
    ///
    /// No notice is reported if the error comes too late, because the rule could not know that.
    final func failByRule(keeping box: OutcomeBox) -> Bool {
        if original != nil { return failMapByRule(keeping: box) }
        let (action, notifications) = move { core in
            let action = core.machine.failByRule()
            guard action != nil else { return (action, Notifications()) }
            core.box = box
            return (action, core.takeNotifications())
        }
        guard let action else { return false }
        notify(notifications)
        switch action {
        case .notifyAndEnd: end()
        case .keep:
            releaseBody()
            // A queue still waits for the other dependencies, which no longer matter.
            readinessDidChange()
        }
        return true
    }

    /// Handles the return of the body in an operation that ends when its body returns.
    package final func bodyDidReturn() {
        ThreadNotes.current.worker?.bodyDidReturn(of: self)
        let (action, notifications) = move { core in
            let action = core.machine.bodyReturned()
            switch action {
            case nil, .end: return (action, Notifications())
            case .notifyMissingResultAndEnd: core.cause = .noResult
            case .notifyAndEnd: break
            }
            return (action, core.takeNotifications())
        }
        guard let action else { return }
        if action == .notifyMissingResultAndEnd {
            OperationDiagnostics.report(.noResult, by: self, CancellationCause.noResult.message)
            signalCancelled()
        }
        notify(notifications)
        end()
    }

    /// Handles the end or the removal of the last dependency, or a change after which dependencies no longer matter.
    final func dependenciesDidEnd() {
        if let action = move({ $0.isReady ? $0.machine.dependenciesEnded() : nil }) {
            perform(action)
        } else {
            // A queue that holds the operation must check it again.
            readinessDidChange()
        }
    }

    /// Makes the queue or the group that holds the operation check it again.
    private func readinessDidChange() {
        let (host, parent, slot) = core.withLock { ($0.host, $0.parent, $0.parentSlot) }
        if let host { return host.reconsider(self) }
        if let parent { return parent.childDidChange(self, slot) }
        signalReadyIfLinked()
    }

    final func turnDidCome() {
        expireIfOutOfTime()
        cancelIfOwnerIsGone()
        let action = move { core in
            let gate = core.gateState
            return core.machine.turnCame(
                isAdmitted: gate == .open || gate == .delayed, hasDelay: core.hasDelayLeft)
        }
        guard let action else { return }
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
    /// Prevents the handlers of the decided outcome from beginning.
    ///
    /// A canceled operation has no such handlers. Operations that are mapped from it may have some, because they
    /// convert the cancellation.
    fileprivate mutating func silence() {
        if let ending = machine.ending, ending != .cancelled { isSilent = true }
    }
}

// The fast path for the many operations that are canceled before they begin and have only their group to notify.
extension ManagedOperation {
    /// A child that was ended in one step, its slot in the group, and its number among the children that the group
    /// creates itself.
    typealias EndedChild = (operation: ManagedOperation, slot: Int32, tag: Int32)

    /// Cancels and ends a child in one step if it has not begun and has no dependencies, dependents or handlers.
    ///
    /// Call this method under the lock of the queue that holds the child, or of the group if no queue does. The caller
    /// removes the child from the queue under this lock. Without the lock, the caller then releases the body, calls
    /// `signalEndBeforeStart`, and notifies the group, in this order.
    ///
    /// - Returns: `nil`, without any effect, if the child does not meet these conditions.
    final func endBeforeStart(
        in parent: ParentGroup, heldBy host: HostQueue?, because cause: CancellationCause
    ) -> EndedChild? {
        guard Self.canEndInOneStep else { return nil }
        return core.withLock { core in
            guard core.parent === parent, core.host === host, !core.hasHandlers, core.extras == nil, core.node == nil,
                core.membership == nil, !core.wasAskedForReadiness,
                // A replacement for a failed child does not belong to the group alone.
                core.parentTag != ParentGroup.replacementTag, core.machine.cancelAndEnd()
            else { return nil }
            core.cause = cause
            // The caller holds both, so neither is freed under the lock.
            core.parent = nil
            core.host = nil
            return (self, core.parentSlot, core.parentTag)
        }
    }
}

extension ManagedOperation {
    /// Calls a closure when the operation has ended, or immediately if it already has.
    ///
    /// - Parameter action: A closure that returns quickly and is called without holding a lock.
    /// - Returns: A number for ``removeEndAction(_:)``, or `nil` if the closure was called.
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

    /// Removes an action that is to be called at the end, unless the call has begun.
    package final func removeEndAction(_ id: UInt64) {
        core.release { $0.extras?.endActions.remove(id) }
    }

    /// The number of stored actions that wait for the end.
    package final var endActionCount: Int { core.withLock { $0.extras?.endActions.storedCount ?? 0 } }
}

// Conditions, throttles and categories.
extension ManagedOperation.Core {
    /// The state of the gate, which is open if the body will never run.
    var gateState: StartGate.State {
        if let gate = extras?.gate, machine.ending == nil { gate.state(epoch: node?.additions ?? 0) } else { .open }
    }

    /// Whether only its dependencies keep the body from beginning, or the body will never run.
    var isAdmitted: Bool { gateState == .open }

    /// Returns whether the body may begin now, and notes that it begins.
    mutating func recordBodyBegins() -> Bool {
        guard machine.enterBody() else { return false }
        extras?.gate?.recordBodyBegins()
        return true
    }
}
