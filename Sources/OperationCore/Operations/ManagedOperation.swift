// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The side of an operation that needs no types: its life, its dependencies, its time.
///
/// It is the common superclass of ``AsyncOperation`` and ``SyncOperation``, for code that handles operations of all
/// types at once. It cannot be subclassed directly.
///
/// Beneath it is `Foundation.Operation`, of which it keeps the outside (it runs in any `OperationQueue`) and replaces
/// the inside: state, dependencies, cancellation, waiting and `completionBlock` are its own.
open class ManagedOperation: Operation, @unchecked Sendable {
    // Sendable: all mutable state is in `storage`, behind its lock.

    struct Core {
        // The small ones stand together: each gap before a reference is in every operation that waits.

        var machine = LifecycleMachine()
        /// Whether the typed side has, or had, a handler to call.
        var hasHandlers = false
        /// Where `callbackQueue` comes from.
        var callbackQueueRank = CallbackQueueRank.none
        /// Whether `cancel` was called after the outcome was decided, so that no handler of it may begin any more.
        var isSilent = false
        /// Whether it may not begin because its group is suspended.
        var isHeldByGroup = false
        /// How urgent it is by its own priority or quality of service.
        var ownLevel = QueueLevel.normal
        /// How urgent it is because of those that wait for it.
        var raisedLevel = QueueLevel.veryLow
        /// Whether a body that holds a thread waits for it.
        var isAwaited = false
        /// Whether the delay before the start is over.
        var isDelayServed = false
        var isDelayBegun = false
        /// Whether somebody asked if the operation is ready, as a queue does that takes it in.
        var wasAskedForReadiness = false
        /// Whether that was after the start: a queue may have taken in an operation that was started by hand.
        var wasAskedAfterStart = false
        /// Its place in `host`.
        var slot: QueueMachine.Slot = -1
        /// Its place in `parent`.
        var parentSlot: GroupMachine.Slot = -1
        /// Which one of those it is that its group makes itself.
        var parentTag: Int32 = -1

        /// The result or the error, which only the typed side can read. Set once, together with the outcome.
        // Freed by the typed side when the operation is.
        var box: OutcomeBox?
        var cause: CancellationCause?
        /// The callback queue that was set or, once the operation has ended, inherited.
        var callbackQueue: DispatchQueue?
        var extras: OperationExtras?
        /// The place in the graph, from the first link to another operation until the end.
        var node: DependencyNode?
        /// The queue of this package that holds the operation, from the moment it was added until it ended.
        var host: QueueEngine?
        /// The group whose child it is, from the moment it was added until it ended.
        var parent: GroupEngine?

        /// That it belongs to an owner.
        var membership: OwnerMembership? {
            get { extras?.membership }
            set {
                if newValue != nil || extras != nil { need().membership = newValue }
            }
        }

        var level: QueueLevel { isAwaited ? .awaited : urgency }
        /// How urgent it is by itself and for those that wait for it in the graph: so urgent is what it waits for.
        var urgency: QueueLevel { max(ownLevel, raisedLevel) }

        var isStartUnderWay: Bool { machine.isStarted || machine.isStartAwaited }

        var isReady: Bool {
            machine.ignoresDependencies || node?.isClear ?? true
        }

        /// Whether a handler may be stored; if not, it is late and to be called at once.
        mutating func acceptsHandler(_ isHandler: Bool) -> Bool {
            if machine.isTold { return false }
            if isHandler { hasHandlers = true }
            return true
        }
    }

    /// The operation's own state.
    ///
    /// Only the typed parts use it: the outcome, the handlers and the observers. Everything else uses ``core``, so that
    /// a mapped operation has the life of its original.
    let storage = Locked(Core())

    /// The original of a mapped operation; nil for all other operations.
    ///
    /// It is not stored here, because most operations have no original, and a stored property would make each of them
    /// larger.
    var original: ManagedOperation? { nil }

    /// The state of the operation's life, which a mapped operation shares with its original.
    @inline(__always) final var core: Locked<Core> {
        _read {
            if let original { yield original.storage } else { yield storage }
        }
    }

    /// The operation whose life this one has: the original of a mapped operation, else the operation itself.
    @inline(__always) final var life: ManagedOperation { original ?? self }

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
        if let membership { OwnerRegistry.shared.withdraw(membership) }
        if isUnfinished { reportReleaseUnfinished() }
        // Links and closures go outside the stack of this deinit: see ThreadWorklist.
        if let extras {
            extras.letGoOfClosures()
            ManagedOperation.abandon(extras)
        }
        node?.tearDown()
    }

    // What a mapped operation overrides.

    /// The record that the original keeps of this operation, if it is mapped.
    var mapRecord: MapRecord? { nil }

    /// Converts the outcome of the original, which is decided, and calls the handlers.
    ///
    /// It is called once, outside every lock.
    func convertOutcome() {}

    /// The operation whose outcome is converted: the original, or another operation mapped from it.
    var mapSource: ManagedOperation? { nil }

    #if DEBUG
        /// An operation that is mapped from this one and converts nothing: see `IdentityMaps`.
        var identityMap: ManagedOperation { self }
    #endif

    // What subclasses of the package fill in.

    /// When the operation counts as ended once its outcome is decided.
    package var endStyle: LifecycleMachine.Style { .atOnce }

    /// Runs the body on the calling thread.
    package func runBody() { main() }

    /// Whether the body takes but a moment and runs nothing of a user's.
    ///
    /// Asked under the lock of the queue.
    @_spi(Subclassing) open var isBodyBrief: Bool { false }

    /// Stops the body of an operation that was cancelled in flight.
    package func stopBody(because cause: CancellationCause) {}

    /// Whether its body is done when its start returns, so that a group may run it on the thread that waits for it.
    package var runsInPlace: Bool { false }

    /// What runs its children, if it is a group.
    package var groupEngine: GroupEngine? { nil }

    /// Its children have ended, if it is a group, and there was no body to say what its outcome is.
    package func concludeGroup(_ verdict: GroupMachine.Verdict) {}

    /// Whether the operation can be put on hold.
    package var canBeSuspended: Bool { false }

    /// Puts the body on hold, or lets it go on.
    package func setBodySuspended(_ isSuspended: Bool) {}

    /// Calls the handlers, each on its queue.
    ///
    /// Called once, outside every lock.
    package func callHandlers() {}

    /// Lets go of a body that will not run any more.
    ///
    /// Called outside every lock once the outcome is decided and waiters were told; again when handlers are told, if
    /// that is later.
    package func releaseBody() {}

    /// Whether its results are of that type.
    func givesResult(of type: Any.Type) -> Bool { false }

    /// The user's error, if the outcome is one.
    package var failureAsError: (any Error)? { nil }

    #if canImport(ObjectiveC)
        /// Raises the flag of Foundation too, so that a queue disregards the dependencies that it knows of.
        final func cancelInFoundation() { super.cancel() }
    #endif

    // The outside of Foundation.Operation.

    /// Starts the operation on the calling thread; a queue calls this by itself.
    ///
    /// Started before its dependencies have ended, it begins when the last of them has, on a global queue. Started while
    /// it is suspended, it is resumed. Started twice, it runs once. Do not start by hand what you gave to a queue.
    ///
    /// Starting does not keep the operation alive, not even while it waits to begin: see ``startAndKeepAlive()``. The
    /// exception is a ``MappedOperation``, which stays alive from its start until its end.
    public final override func start() {
        begin(onlyIfNeeded: false)
    }

    /// Cancels the operation because somebody asked for it.
    ///
    /// To stop the work of your own operation, override `didCancel(because:)`.
    ///
    /// It may be called in the `deinit` of a subclass, so that handlers learn of the end. Only if the operation was
    /// started and has a `completionBlock` it must not: that block would need the operation that is being freed.
    public final override func cancel() {
        cancel(because: .requested)
    }

    /// Whether the operation was cancelled before anything else had been decided.
    public final override var isCancelled: Bool { storage.withLock { $0.machine.isCancelled } }

    /// Whether the operation began and has not ended.
    public final override var isExecuting: Bool { core.withLock { $0.machine.isExecuting } }

    /// Whether the operation ended and its queue and dependents were told.
    ///
    /// Never true before it was started, but for a child of a group that is cancelled with it before it begins.
    public final override var isFinished: Bool { core.withLock { $0.machine.isFinished } }

    /// Whether the operation may begin: its dependencies ended, or it was cancelled.
    public final override var isReady: Bool {
        // Foundation's own part stays in play for the barriers of its queues.
        reportReadiness() && super.isReady
    }

    /// How urgent the operation is among those of its queue.
    ///
    /// In a ``QueueManager`` it may be changed while the operation waits, and it is passed on to what the operation waits
    /// for. Left at `normal`, the quality of service takes its place.
    open override var queuePriority: Operation.QueuePriority {
        get { super.queuePriority }
        set {
            super.queuePriority = newValue
            levelDidChange()
            for mapped in maps { mapped.copyFoundationLevel() }
        }
    }

    /// How much the operation's work matters to the person who uses the program.
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

    /// Called once on a global queue after the operation ended, then let go of.
    ///
    /// Set after the end, it is called at once.
    public final override var completionBlock: (@Sendable () -> Void)? {
        get { storage.withLock { $0.extras?.completionBlock } }
        set {
            var block = newValue
            let isLate = core.withLock { core in
                if core.machine.isFinished { return true }
                // Each mapped operation has a block of its own, which is taken when the original has ended.
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

    /// Blocks the calling thread until the operation ended.
    ///
    /// A body that waits for its own operation, or for another one that needs its end, waits forever. OperationKit
    /// reports a notice then: immediately, or within about a minute if the circle is closed while the body waits.
    ///
    /// While the main thread waits here, the main queue and the main actor do nothing else. So the wait never ends if the
    /// operation needs them, for example for an `await` of code that is isolated to the main actor. Only a
    /// ``MainQueueOperation`` that is not in `OperationQueue.main` runs while the main thread waits.
    @available(*, noasync, message: "Await `ended()` instead: this blocks the thread.")
    public final override func waitUntilFinished() {
        let wait = core.withLock({ $0.machine.isFinished }) ? nil : BodyWait.begin(for: self)
        defer { wait?.end() }
        if let circle = wait?.circle { reportCircle(circle) }
        wait?.lookAgain { [self] circle in reportCircle(circle) }
        let waiter = BlockingWaiter()
        whenEnded { waiter.wake() }
        if !waiter.wait(for: self) {
            reportRefusedWait()
            waiter.waitInPlace()
        }
    }

    /// The operations that this one waits for, ended ones included, until it ended itself.
    public final override var dependencies: [Operation] {
        nodeIfAny?.upstreamOperations ?? []
    }

    /// Makes this operation wait for another, which may be of any kind; however that one ends, this one runs.
    ///
    /// An edge that comes after the start, or that would close a cycle, is left out and reported to
    /// ``OperationDiagnostics``; `depend(on:otherwise:)` throws an error instead.
    public final override func addDependency(_ operation: Operation) {
        addReportedDependency(on: operation)
    }

    /// Takes a dependency back.
    ///
    /// Does nothing if there is none on that operation.
    public final override func removeDependency(_ operation: Operation) {
        removeEdges(to: operation)
    }
}
