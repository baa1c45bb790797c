// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The base class of all operations in this package, independent of their result and error types.
///
/// Use this class in code that handles operations of all types. The class provides the state, the dependencies and the
/// timing of an operation.
///
/// You cannot subclass this class directly. Subclass ``AsyncOperation`` or ``SyncOperation`` instead.
///
/// The superclass is `Foundation.Operation`, so an operation from this package can run in any `OperationQueue`. The
/// class has its own implementation of state, dependencies, cancellation, waiting and `completionBlock`.
open class ManagedOperation: Operation, @unchecked Sendable {
    // Sendable: all mutable state is in `storage`, protected by its lock.

    struct Core {
        // The small properties are together, because each gap before a reference adds to the size of every waiting
        // operation.

        var machine = LifecycleMachine()
        /// Whether the typed subclass has or had a handler to call.
        var hasHandlers = false
        /// The source of `callbackQueue`.
        var callbackQueueRank = CallbackQueueRank.none
        /// Whether `cancel` was called after the outcome was decided, so that none of its handlers may begin anymore.
        var isSilent = false
        /// Whether the operation may not begin, because its group is suspended.
        var isHeldByGroup = false
        /// The urgency from the operation's own priority or quality of service.
        var ownLevel = QueueLevel.normal
        /// The urgency from the operations that wait for this one.
        var raisedLevel = QueueLevel.veryLow
        /// Whether a body that occupies a thread waits for the operation.
        var isAwaited = false
        /// Whether the delay before the start is over.
        var isDelayServed = false
        var isDelayBegun = false
        /// Whether `isReady` was read, as a queue does when an operation is added to it.
        var wasAskedForReadiness = false
        /// Whether `isReady` was read after the start, because a queue may hold an operation that was started manually.
        var wasAskedAfterStart = false
        /// The index of the operation's entry in the table of `host`, or -1.
        var slot: Int32 = -1
        /// The index of the operation among the children of `parent`, or -1.
        var parentSlot: Int32 = -1
        /// The number of the operation among the children that its group creates itself.
        var parentTag: Int32 = -1

        /// The result or the error, which is set once, together with the outcome.
        ///
        /// Only the typed subclass can read it. The subclass frees it when the operation is freed.
        var box: OutcomeBox?
        var cause: CancellationCause?
        /// The callback queue that was set or, once the operation has ended, inherited.
        var callbackQueue: DispatchQueue?
        var extras: RareOperationState?
        /// The node in the graph, from the first link to another operation until the end.
        var node: OperationNode?
        /// The queue of this package that holds the operation, from its addition until its end.
        var host: HostQueue?
        /// The group of which the operation is a child, from its addition until its end.
        var parent: ParentGroup?

        /// The membership of the operation in an owner.
        var membership: OwnerLink? {
            get { extras?.membership }
            set {
                if newValue != nil || extras != nil { need().membership = newValue }
            }
        }

        var level: QueueLevel { isAwaited ? .awaited : urgency }
        /// The operation's own urgency or that of its dependents, whichever is greater.
        ///
        /// Its dependencies inherit this urgency.
        var urgency: QueueLevel { max(ownLevel, raisedLevel) }

        var isReady: Bool {
            if let node, !node.isClear { machine.ignoresDependencies } else { true }
        }

        /// Whether a handler may be stored.
        ///
        /// If not, the handler is late and must be called immediately.
        mutating func acceptsHandler(_ isHandler: Bool) -> Bool {
            if machine.isOutcomeReported { return false }
            if isHandler { hasHandlers = true }
            return true
        }
    }

    /// The operation's own state.
    ///
    /// Only the typed parts use it, which are the outcome, the handlers and the observers. Everything else uses
    /// ``core``, so that a mapped operation shares the life of its original.
    let storage = Locked(Core())

    /// The original of a mapped operation, or `nil` for all other operations.
    ///
    /// The original is not stored here, because most operations have none, and a stored property would make each
    /// operation larger.
    var original: ManagedOperation? { nil }

    /// The state of the operation's life, which a mapped operation shares with its original.
    @inline(__always) final var core: Locked<Core> {
        _read {
            if let original { yield original.storage } else { yield storage }
        }
    }

    /// The operation whose life this operation shares.
    ///
    /// For a mapped operation, this is the original. For any other operation, this is the operation itself.
    @inline(__always) final var life: ManagedOperation { if let original { original } else { self } }

    package override init() {
        super.init()
        #if DEBUG
            LifetimeProbe.note?(self)
        #endif
    }

    deinit {
        let (extras, node, isUnfinished, membership) = storage.withLock { core in
            let isUnfinished = core.machine.isExecuting && core.machine.ending == nil
            return (core.extras, core.node, isUnfinished, core.machine.isFinished ? nil : core.membership)
        }
        membership?.withdraw()
        if isUnfinished { reportReleaseUnfinished() }
        // Links and closures are released outside the stack of this deinit. See ThreadWorklist.
        if let extras {
            extras.releaseClosures()
            ManagedOperation.abandon(extras)
        }
        node?.tearDown()
    }

    // Members that a mapped operation overrides.

    /// The record that the original keeps of this operation, if it is mapped.
    var mapRecord: MapRecord? { nil }

    /// Converts the outcome of the original, which is decided, and calls the handlers.
    ///
    /// This method is called once, without holding a lock.
    func convertOutcome() {}

    /// The operation whose outcome is converted, which is the original or another operation mapped from it.
    var mapSource: ManagedOperation? { nil }

    #if DEBUG
        /// An operation that is mapped from this one and converts nothing, for the test mode of `held`.
        var identityMap: ManagedOperation { self }
    #endif

    // Members that subclasses in the package override.

    /// The moment at which the operation counts as ended after its outcome is decided.
    package var endStyle: LifecycleMachine.Style { .atOnce }

    /// Runs the body on the calling thread.
    package func runBody() { main() }

    /// A Boolean value that indicates whether the body takes only a moment and calls no hooks.
    ///
    /// The body may still call closures of the user, such as those of policies. The queue holds its lock when it reads
    /// this value.
    @_spi(Subclassing) open var isBodyBrief: Bool { false }

    /// A Boolean value that indicates whether a task can run the body.
    ///
    /// A task can run a body that takes only a moment, does not block, and calls no hooks.
    ///
    /// The body may still call closures of the user, such as those of policies.
    @_spi(Subclassing) open var beginsInTask: Bool { false }

    /// An object of a subclass that protocol extensions can read without knowing the type of the subclass.
    @_spi(Subclassing) open var attachment: AnyObject? { nil }

    /// Stops the body of an operation that was canceled while it ran.
    package func stopBody(because cause: CancellationCause) {}

    /// Whether the body is done when the start returns.
    ///
    /// If so, a group may run the body on the thread that waits for it.
    package var runsInPlace: Bool { false }

    /// The children, if the operation is a group.
    package var ownGroup: ParentGroup? { nil }
    /// The run that this operation shares, or `nil` if it shares none.
    var sharedRun: ManagedOperation? { nil }

    /// Sets the outcome of a group without a body, whose children have ended.
    package func concludeGroup(_ verdict: LifecycleMachine.Ending) {}

    /// Whether the operation can be suspended.
    package var canBeSuspended: Bool { false }

    /// Suspends or resumes the body.
    package func setBodySuspended(_ isSuspended: Bool) {}

    /// Enqueues each handler on its queue.
    ///
    /// This method is called once, without holding a lock.
    package func callHandlers() {}

    /// Releases the closures of the body or ends the attempts of a network operation, because the outcome is decided.
    ///
    /// This method is called without holding a lock, after the outcome is decided and waiters were notified. If the
    /// handlers are called later, the method is called again at that time.
    package func releaseBody() {}

    /// Returns whether the results of the operation have a type.
    func givesResult(of type: Any.Type) -> Bool { false }

    /// Lets the operation fail because of a dependency, if the error is of the type of its errors.
    func failByRule(with error: any Error) {}

    /// The error of the user, if the operation failed.
    package var failureAsError: (any Error)? { nil }

    #if canImport(ObjectiveC)
        /// Sets the flag of Foundation too, so that a queue ignores the dependencies that it knows.
        final func cancelInFoundation() { super.cancel() }
    #endif

    // Overrides of `Foundation.Operation`.

    /// Starts the operation on the calling thread.
    ///
    /// An `OperationQueue` calls this method automatically, and a ``QueueManager`` or a group starts its operations
    /// without it. So do not call this method for an operation that you added to a queue or a group.
    ///
    /// - If some dependencies have not ended, the operation begins on a global queue after all of them have ended.
    /// - If the operation is suspended, this method resumes it.
    /// - If the operation has already been started and is not suspended, this method has no effect, and OperationKit
    ///   reports a notice of the kind `startedTwice`.
    ///
    /// This method does not keep the operation alive, even while the operation waits to begin. To keep the operation
    /// alive, call ``startAndKeepAlive()``. An operation from `mapResult(_:)` or a similar method always stays alive
    /// from its start until its end.
    public final override func start() {
        begin(onlyIfNeeded: false)
    }

    /// Cancels the operation with the cause ``CancellationCause/requested``.
    ///
    /// To stop the work of your own operation, override `didCancel(because:)`.
    ///
    /// If an operation is freed before it ends, its handlers are not called. To have the cancellation handler called in
    /// this case, call this method in the `deinit` of your subclass. However, do not call the method in the `deinit` if
    /// the operation was started and has a `completionBlock`, because the block needs the operation, which is being
    /// freed.
    public final override func cancel() {
        cancel(because: .requested)
    }

    /// A Boolean value that indicates whether the operation was canceled before another outcome was decided.
    public final override var isCancelled: Bool { storage.withLock { $0.machine.isCancelled } }

    /// A Boolean value that indicates whether the operation has begun and has not ended.
    public final override var isExecuting: Bool { core.withLock { $0.machine.isExecuting } }

    /// A Boolean value that indicates whether the operation has ended.
    ///
    /// When the operation has ended, its queue and its dependents can continue.
    ///
    /// Only two kinds of operations can end without a start: a child that is canceled with its group, and an operation
    /// from `mapResult(_:)` or a similar method whose original has ended.
    public final override var isFinished: Bool { core.withLock { $0.machine.isFinished } }

    /// A Boolean value that indicates whether the operation may begin, because its dependencies have ended or because
    /// the operation was canceled.
    public final override var isReady: Bool {
        // The property of Foundation stays in use for the barriers of its queues.
        reportReadiness() && super.isReady
    }

    /// The priority of the operation in its queue.
    ///
    /// In a ``QueueManager``, you may change the priority while the operation waits. The queue also raises less urgent
    /// dependencies of the operation to this priority. If the priority is `normal`, the queue uses the quality of
    /// service instead.
    open override var queuePriority: Operation.QueuePriority {
        get { super.queuePriority }
        set {
            super.queuePriority = newValue
            levelDidChange()
            for mapped in maps { mapped.copyFoundationLevel() }
        }
    }

    /// The importance of the operation's work to the user.
    open override var qualityOfService: QualityOfService {
        get { super.qualityOfService }
        set {
            super.qualityOfService = newValue
            levelDidChange()
            for mapped in maps { mapped.copyFoundationLevel() }
        }
    }

    /// Copies the priority and the quality of service of the original into the properties that Foundation reads.
    final func copyFoundationLevel() {
        guard let original else { return }
        // Another thread may set one of them at the same time, so the latest value is applied.
        applyLatest({ original.queuePriority }) { super.queuePriority = $0 }
        applyLatest({ original.qualityOfService }) { super.qualityOfService = $0 }
    }

    /// A closure that is called once on a global queue after the operation has ended.
    ///
    /// The default is `nil`. The operation releases the closure after the call. If you set the closure after the
    /// operation has ended, the closure is enqueued immediately.
    public final override var completionBlock: (@Sendable () -> Void)? {
        get { storage.withLock { $0.extras?.completionBlock } }
        set {
            var block = newValue
            let isLate = core.withLock { core in
                if core.machine.isFinished { return true }
                // Each mapped operation has its own block, which runs after the original has ended.
                if original == nil {
                    core.setCompletion(&block)
                } else {
                    storage.withLock { $0.setCompletion(&block) }
                }
                return false
            }
            if isLate { runCompletion(block) }
        }
    }

    /// Blocks the calling thread until the operation has ended.
    ///
    /// If a body waits for its own operation, or for another operation that cannot end before the body does, the wait
    /// never ends. OperationKit reports a notice of the kind `waitsForItself` when the wait begins. If this situation
    /// arises only after the body has begun to wait, for example because you add a dependency, OperationKit reports the
    /// notice within about a minute.
    ///
    /// While the main thread waits in this method, the main queue and the main actor are blocked. Therefore, the wait
    /// never ends if the operation needs them, for example to `await` code that is isolated to the main actor. During
    /// the wait, the main thread runs no code except the closure of a ``MainQueueOperation`` that is not in
    /// `OperationQueue.main`.
    @available(*, noasync, message: "This method blocks the thread. Await `ended()` instead.")
    public final override func waitUntilFinished() {
        let wait = BodyWait.begin(for: self, until: .end)
        defer { wait?.end() }
        if let cycle = wait?.cycle { reportCycle(cycle) }
        wait?.lookAgain { [self] cycle in reportCycle(cycle) }
        let waiter = BlockingWaiter()
        whenEnded { waiter.wake() }
        if !waiter.wait(for: self) {
            OperationDiagnostics.report(.tooManyWaits, by: self, CancellationCause.tooManyWaits.message)
            waiter.waitInPlace()
        }
    }

    /// The dependencies of the operation, including dependencies that have ended.
    ///
    /// The array is empty after the operation itself has ended.
    public final override var dependencies: [Operation] {
        nodeIfAny?.upstreamOperations ?? []
    }

    /// Makes this operation wait until another operation of any kind has ended.
    ///
    /// This operation runs regardless of the outcome of the other operation.
    ///
    /// If this operation was already started, or if the dependency would create a cycle, the method has no effect and
    /// reports a notice to ``OperationDiagnostics``. To get an error instead, call `depend(on:otherwise:)`.
    ///
    /// - Parameter operation: The operation that must end first.
    public final override func addDependency(_ operation: Operation) {
        addReportedDependency(on: operation)
    }

    /// Removes this operation's dependency on another operation.
    ///
    /// This method has no effect if the operation does not depend on the other operation.
    public final override func removeDependency(_ operation: Operation) {
        removeEdges(to: operation)
    }
}

// Notices about calls that have no effect.
extension ManagedOperation {
    func reportStartBesideQueue() {
        OperationDiagnostics.report(
            .startedTwice, by: self,
            "The operation is in a queue, which starts it, so this call of start() had no effect. Either start an "
                + "operation yourself, or add it to a queue.")
    }

    func reportSecondStart() {
        OperationDiagnostics.report(
            .startedTwice, by: self, "The operation was already started, so this call of start() had no effect.")
    }

    func reportReleaseUnfinished() {
        OperationDiagnostics.report(
            .releasedUnfinished, by: self,
            "The operation was deallocated while it executed, so it has no outcome and calls no handler. Finish it on "
                + "each path of its body. Until then, keep it in a queue, or start it with startAndKeepAlive().")
    }

    func reportSecondFinish() {
        OperationDiagnostics.report(
            .finishedTwice, by: self,
            "The operation already has a result or an error, so finishing it again had no effect. Call "
                + "finish(withResult:) or finish(withError:) once on each path.")
    }

    func reportFinishAfterCancellation() {
        OperationDiagnostics.report(
            .finishedAfterCancellation, by: self,
            "The operation had been canceled, so its result or error was discarded.")
    }
}

/// The parties to notify after the lock is released.
struct Notifications {
    var isOutcomeReported = false
    var hasHandlers = false
    /// Whether there are mapped operations that convert the outcome.
    var hasMaps = false
    var recipients: Recipients?

    /// The parties to notify besides the handlers.
    ///
    /// Most operations have none.
    final class Recipients {
        var waiters: [OutcomeObserver] = []
        var observers: [OutcomeObserver] = []
        var timers = OperationTimers()
        /// The inputs of a body that will not run, to be released.
        var inputs: [DependencyInput] = []
    }
}

extension ManagedOperation.Core {
    /// Takes out the parties to notify of the outcome.
    ///
    /// Only the code that decided the outcome may call this method.
    func takeNotifications() -> Notifications {
        let isOutcomeReported = machine.isOutcomeReported
        var notifications = Notifications(
            isOutcomeReported: isOutcomeReported, hasHandlers: hasHandlers, hasMaps: false)
        guard let extras, machine.ending != nil else { return notifications }
        if isOutcomeReported, let maps = extras.maps, maps.hasUnconverted {
            notifications.hasMaps = true
            _ = maps.notifying.request()
        }
        if extras.timing == nil, extras.observers.isEmpty, extras.inputs.isEmpty { return notifications }
        let recipients = Notifications.Recipients()
        recipients.inputs = extras.inputs.takeAll()
        if extras.timing != nil { recipients.timers = extras.timed { $0.takeTimers() } }
        recipients.waiters = extras.observers.takeAll(where: \.isWaiter)
        if isOutcomeReported {
            recipients.observers = extras.observers.takeAll()
            _ = extras.notifying.request()
        }
        notifications.recipients = recipients
        return notifications
    }
}
