// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// Performs the actions of LifecycleMachine after the lock is released.
extension ManagedOperation {
    func perform(_ action: LifecycleMachine.StartAction) {
        switch action {
        case .run:
            signalExecuting()
            runBody()
        case .prepareBody:
            signalExecuting()
            if let timeout { armTimeout(timeout) }
            feedInputs()
            // An input, or the clock of the timeout, may have ended the operation.
            let (begins, context) = core.withLock { ($0.recordBodyBegins(), $0.extras?.takeTaskContext()) }
            if !begins {
                bodyDidReturn()
            } else if let context {
                context.perform { [self] in runBody() }
            } else {
                runBody()
            }
        case .takeTurn: DispatchQueue.global().async { [self] in turnDidCome() }
        case .awaitDependencies, .awaitNotification: break
        case .seekAdmission: core.withLock { $0.extras?.gate }?.seek(atStartOf: self)
        case .delay: beginDelay()
        case .notifyAndEnd:
            notify(core.withLock { $0.takeNotifications() })
            end()
        case .end: end()
        case .resume: notifyBodyOfSuspension()
        case .refuse: reportSecondStart()
        }
    }

    /// Suspends or resumes the timeout and the body until both match the state.
    func notifyBodyOfSuspension() {
        while let step = core.withLock({ $0.nextStepOfSuspension() }) {
            step.isSuspended ? pauseTimeout() : resumeTimeout()
            if step.notifiesBody { setBodySuspended(step.isSuspended) }
            core.withLock { $0.extras?.suspension.finishNotifying() }
        }
    }

    private func feedInputs() {
        let inputs = core.withLock { core in
            core.extras?.inputs.takeAll() ?? []
        }
        for input in inputs {
            guard !input.isBroken else {
                cancelIfUndecided(because: .inputMissing)
                continue
            }
            BodyWait.within(self) { input.feed(self) }
        }
    }

    /// Notifies waiters, handlers and observers of the outcome.
    func notify(_ notifications: Notifications) {
        if let recipients = notifications.recipients {
            recipients.timers.cancel()
            for waiter in recipients.waiters { waiter.notify(self) }
        }
        guard notifications.isOutcomeReported else { return }
        if notifications.hasHandlers { callHandlers() }
        if let recipients = notifications.recipients {
            for observer in recipients.observers { observer.notify(self) }
            notifyLateObservers()
        }
        if notifications.hasMaps { notifyMaps() }
        releaseBody()
    }

    /// Notifies the observers that were added during the notification, so that all are notified in order.
    private func notifyLateObservers() {
        while true {
            let late = storage.withLock { core -> [OutcomeObserver] in
                guard let extras = core.extras else { return [] }
                if extras.observers.isEmpty { extras.notifying.stop() }
                return extras.observers.takeAll()
            }
            if late.isEmpty { return }
            for observer in late { observer.notify(self) }
        }
    }

    /// Signals the end to Foundation, and then to the queue, the dependents, the waiting threads and the completion
    /// block.
    func end() {
        if OperationDefaults.mayInherit { keepCallbackQueue() }
        signalBeforeEnd()
        // Only one variable holds the state, so that `settle` can release it.
        var (retained, wasAskedAfterStart) = core.withLock { core in
            (core.machine.end() ? core.takeRetainedState() : nil, core.wasAskedAfterStart)
        }
        signalEnd(didEnd: retained != nil, wasAskedAfterStart: wasAskedAfterStart)
        if let maps = retained?.extras?.maps { signalEnd(of: maps) }
        retained?.membership?.withdraw()
        if let host = retained?.host, let slot = retained?.slot, let ending = retained?.ending {
            host.didEnd(slot, ending)
        }
        if retained?.extras == nil, retained?.node == nil, retained?.parent == nil { return }
        if ThreadWorklist.begin() {
            Self.settle(&retained, of: self)
            ThreadWorklist.finish()
        } else {
            // The operation may be in its own `deinit`, where it must not be retained. Only the following need it.
            let isNeeded =
                retained?.parent != nil || retained?.extras?.completionBlock != nil
                || retained?.node?.hasLiveDownstream == true
            ThreadWorklist.later { [operation = isNeeded ? self : nil, retained] in
                var retained = retained
                Self.settle(&retained, of: operation)
            }
        }
    }

    /// Processes the rest of the state, and releases it.
    private static func settle(_ retained: inout RetainedState?, of operation: ManagedOperation?) {
        retained?.extras?.closeGate()
        if let operation { retained?.node?.releaseDownstream(of: operation) }
        if let extras = retained?.extras {
            for action in extras.endActions.takeAll() { action() }
            operation?.runCompletion(exchange(&extras.completionBlock, with: nil))
            if let maps = extras.maps { runCompletions(of: maps) }
            abandon(extras)
        }
        // The teardown runs inside the worklist, so that a long chain is freed in a loop and not by recursion.
        retained?.node?.tearDown()
        if let operation, let parent = retained?.parent, let retained {
            let child = retained.extras?.maps?.added?.mapped ?? operation
            parent.childDidEnd(child, retained.parentSlot, retained.parentTag, retained.ending)
        }
        retained = nil
    }

    final func runCompletion(_ block: (@Sendable () -> Void)?) {
        guard let block else { return }
        // As in Foundation, the operation lives until its completion block has run.
        DispatchQueue.global().async { [self] in
            withExtendedLifetime(self) { block() }
        }
    }

    /// Releases the state of an operation that ended, or that is freed before its end.
    static func abandon(_ extras: RareOperationState) {
        extras.closeGate()
        extras.timing?.takeTimers().cancel()
        for feed in extras.feeds.elements { feed.end() }
    }
}

/// The parts of an ended operation that are still to be processed.
struct RetainedState {
    let extras: RareOperationState?
    let node: OperationNode?
    let membership: OwnerLink?
    let host: HostQueue?
    let slot: Int32
    let ending: LifecycleMachine.Ending
    let parent: ParentGroup?
    let parentSlot: Int32
    let parentTag: Int32
}

extension ManagedOperation.Core {
    fileprivate mutating func nextStepOfSuspension() -> (isSuspended: Bool, notifiesBody: Bool)? {
        switch machine.state {
        case .suspended:
            let isTimeoutOutOfStep = extras?.timing?.timeoutEnd != nil
            return need().suspension.next(isSuspended: true, isTimeoutOutOfStep: isTimeoutOutOfStep)
        case .executing:
            // If the remainder was set in a suspension whose hook was not called, only this step resumes the timeout.
            let isTimeoutOutOfStep = extras?.timing?.timeoutRemainder != nil
            return extras?.suspension.next(isSuspended: false, isTimeoutOutOfStep: isTimeoutOutOfStep)
        default: return nil
        }
    }

    mutating func takeRetainedState() -> RetainedState {
        node?.recordEndOfOperation()
        // The queue and the group need the ending of the operation that was added to them, which may be a mapped one.
        let ending = if let added = extras?.maps?.added { added.ending } else { machine.ending }
        return RetainedState(
            extras: exchange(&extras, with: extras?.retained), node: exchange(&node, with: nil), membership: membership,
            host: exchange(&host, with: nil), slot: slot, ending: ending ?? .cancelled,
            parent: exchange(&parent, with: nil), parentSlot: parentSlot, parentTag: parentTag)
    }
}

/// A value that orders the calls that suspend and resume a body, one at a time.
///
/// One thread may suspend an operation and not have notified the body yet, while another thread, or the hook itself,
/// resumes it. If both threads notified the body, the resumption could come first, and the body would stay suspended
/// indefinitely. So only one thread notifies the body, and it then checks whether the state has changed.
struct SuspensionHooks {
    private var isBodyOnHold = false
    private var notifying = RepeatFlag()

    /// Returns the next step for the calling thread, or `nil` if there is none or another thread is performing it.
    ///
    /// A step makes the timeout and the body match `isSuspended`. If `notifiesBody` is `false`, only the timeout
    /// changes.
    ///
    /// - Parameter isTimeoutOutOfStep: Whether the timeout runs although the operation is suspended, or the reverse.
    mutating func next(isSuspended: Bool, isTimeoutOutOfStep: Bool) -> (isSuspended: Bool, notifiesBody: Bool)? {
        let notifiesBody = isBodyOnHold != isSuspended
        guard notifiesBody || isTimeoutOutOfStep, notifying.request() else { return nil }
        isBodyOnHold = isSuspended
        return (isSuspended, notifiesBody)
    }

    /// Records that the step is done.
    ///
    /// The thread that performed the step must then ask for the next one.
    mutating func finishNotifying() { notifying.stop() }
}

/// The state that only some operations need.
///
/// The state is created when it is first needed, and is removed as a whole when the operation ends.
///
/// The state is deliberately not `Sendable`. The state is used only under the lock of its operation, and later by the
/// one thread that ended the operation.
final class RareOperationState {
    /// The observers of the outcome, in the order in which they were added.
    var observers = ForgettingList<OutcomeObserver>()
    /// Whether a thread is notifying the observers.
    ///
    /// That thread also notifies the observers that are added in the meantime.
    var notifying = RepeatFlag()
    /// Consumers of the operation's states.
    var feeds = ForgettingList<StateFeed>()
    /// The inputs that pass the results of dependencies to the operation just before its body.
    var inputs = ForgettingList<DependencyInput>()
    /// The closures that are called when the operation has ended, after its dependents were notified.
    var endActions = ForgettingList<@Sendable () -> Void>()
    var completionBlock: (@Sendable () -> Void)?
    var timing: OperationTiming?
    var gate: StartGate?
    var suspension = SuspensionHooks()
    /// The waits of the body's threads and task for other operations.
    var bodyWaits: [NotedWait] = []
    /// The event that the operation waits for in the middle of its work.
    var wait: WaitReason?
    /// The number of the last wait that is over.
    var lastWait: UInt32 = 0
    /// The operation whose queue slot this operation uses, if it is in no queue itself.
    weak var slotHolder: ManagedOperation?
    /// Returns the operations that share this one, if it is the run of shared operations.
    var sharers: (@Sendable () -> [ManagedOperation])?
    /// The membership of the operation in an owner.
    var membership: OwnerLink?
    /// A reference that keeps the operation alive until it has ended.
    var selfReference: ManagedOperation?
    /// The result that the group uses as its own if its body provided none.
    var replacementResult: (any AnyObject & Sendable)?
    /// The context of the task that called `run()`, until the body begins.
    var taskContext: TaskContext?
    /// The wait of the task that called `run()`.
    var taskWait: TaskWait?
    var lastObserverID: UInt64 = 0
    /// The operations that are mapped from this one.
    var maps: MapRecords?
    /// Whether the start only has to run the body.
    var isPlainAtStart: Bool { timing == nil && gate == nil && inputs.isEmpty }
    var readiness = ReadinessReports()
}

extension RareOperationState {
    func takeTaskContext() -> TaskContext? { exchange(&taskContext, with: nil) }

    /// Gives back the grants of an operation that ended or is being freed.
    func closeGate() { exchange(&gate, with: nil)?.close() }

    /// The part that can still be read after the operation has ended, or `nil` for most operations.
    var retained: RareOperationState? {
        let kept = gate?.retained
        guard kept != nil || membership != nil else { return nil }
        let retained = RareOperationState()
        (retained.gate, retained.membership) = (kept, membership)
        return retained
    }

    /// Releases the closures that will not be called, for an operation that is being freed.
    ///
    /// Each closure may hold another operation, which may hold yet another.
    func releaseClosures() {
        if !observers.isEmpty { ThreadWorklist.release(exchange(&observers, with: ForgettingList())) }
        if !inputs.isEmpty { ThreadWorklist.release(exchange(&inputs, with: ForgettingList())) }
        if !endActions.isEmpty { ThreadWorklist.release(exchange(&endActions, with: ForgettingList())) }
        if completionBlock != nil { ThreadWorklist.release(exchange(&completionBlock, with: nil)) }
        if replacementResult != nil { ThreadWorklist.release(exchange(&replacementResult, with: nil)) }
    }
}

extension ManagedOperation.Core {
    mutating func setCompletion(_ block: inout (@Sendable () -> Void)?) {
        if block != nil || extras != nil { swap(&need().completionBlock, &block) }
    }

    /// Returns the extras, and creates them if there are none.
    mutating func need() -> RareOperationState {
        if let extras { return extras }
        let made = RareOperationState()
        extras = made
        return made
    }
}

/// An observer of the outcome.
struct OutcomeObserver {
    /// Whether the observer is notified when the outcome is decided, and not later, when the handlers are called.
    let isWaiter: Bool
    /// A closure that is called without holding a lock with the operation whose outcome it reads.
    ///
    /// The closure immediately hands the work over to a queue or a task.
    let notify: @Sendable (ManagedOperation) -> Void
}
