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
    // Sendable: all mutable state is in `core`, behind its lock.

    struct Core {
        var machine = LifecycleMachine()
        /// Whether the typed side has, or had, a handler to call.
        var hasHandlers = false
        /// The result or the error, which only the typed side can read. Set once, together with the outcome.
        // Freed by the typed side when the operation is.
        var box: OutcomeBox?
        var cause: CancellationCause?
        var extras: OperationExtras?
        /// That it belongs to an owner.
        var membership: OwnerMembership?
        /// The queue of this package that holds the operation, from the moment it was added until it ended.
        var host: QueueEngine?
        /// Its place there.
        var slot: QueueMachine.Slot = -1
        /// How urgent it is there.
        var level = QueueLevel.normal

        /// Whether somebody asked if the operation is ready, as a queue does that takes it in.
        var wasAskedForReadiness = false
        /// Whether that was after the start: a queue may have taken in an operation that was started by hand.
        var wasAskedAfterStart = false

        var isStartUnderWay: Bool { machine.isStarted || machine.isStartAwaited }

        var isReady: Bool {
            machine.ignoresDependencies || (extras?.links.unended ?? 0) == 0
        }

        /// Whether a handler may be stored; if not, it is late and to be called at once.
        mutating func acceptsHandler(_ isHandler: Bool) -> Bool {
            if machine.isTold { return false }
            if isHandler { hasHandlers = true }
            return true
        }

        /// The extras, made now if they were not there.
        mutating func need() -> OperationExtras {
            if let extras { return extras }
            let made = OperationExtras()
            extras = made
            return made
        }
    }

    let core = Locked(Core())

    package override init() {
        super.init()
    }

    deinit {
        let (extras, isUnfinished, membership) = core.withLock { core in
            let isUnfinished = core.machine.isExecuting && core.machine.ending == nil
            return (core.extras, isUnfinished, core.machine.isFinished ? nil : core.membership)
        }
        if let membership { OwnerRegistry.shared.withdraw(membership) }
        if isUnfinished { reportReleaseUnfinished() }
        // Links and observers go outside the stack of this deinit: see ThreadWorklist.
        if let extras { abandon(extras) }
    }

    // What subclasses of the package fill in.

    /// When the operation counts as ended once its outcome is decided.
    package var endStyle: LifecycleMachine.Style { .atOnce }

    /// Runs the body on the calling thread.
    package func runBody() { main() }

    /// Stops the body of an operation that was cancelled in flight.
    package func stopBody(because cause: CancellationCause) {}

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
    /// Called once the outcome is told, outside every lock.
    package func releaseBody() {}

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
    /// Starting does not keep the operation alive, not even while it waits to begin: see ``startAndKeepAlive()``.
    public final override func start() {
        begin(onlyIfNeeded: false)
    }

    /// Cancels the operation because somebody asked for it.
    ///
    /// To stop the work of your own operation, override `didCancel(because:)`.
    public final override func cancel() {
        cancel(because: .requested)
    }

    /// Whether the operation was cancelled before anything else had been decided.
    public final override var isCancelled: Bool { core.withLock { $0.machine.isCancelled } }

    /// Whether the operation began and has not ended.
    public final override var isExecuting: Bool { core.withLock { $0.machine.isExecuting } }

    /// Whether the operation ended and its queue and dependents were told.
    ///
    /// Never true before it was started.
    public final override var isFinished: Bool { core.withLock { $0.machine.isFinished } }

    /// Whether the operation may begin: its dependencies ended, or it was cancelled.
    public final override var isReady: Bool {
        // Foundation's own part stays in play for the barriers of its queues.
        reportReadiness() && super.isReady
    }

    /// Called once on a global queue after the operation ended, then let go of.
    ///
    /// Set after the end, it is called at once.
    public final override var completionBlock: (@Sendable () -> Void)? {
        get { core.withLock { $0.extras?.completionBlock } }
        set {
            var block = newValue
            let isLate = core.withLock { core in
                if core.machine.isFinished { return true }
                if block != nil || core.extras != nil { swap(&core.need().completionBlock, &block) }
                return false
            }
            if isLate { runCompletion(block) }
        }
    }

    /// Blocks the calling thread until the operation ended.
    ///
    /// Closures meant for the main thread (``MainQueueOperation``) go on while the main thread waits here.
    @available(*, noasync, message: "Await `value` instead: this blocks the thread.")
    public final override func waitUntilFinished() {
        let waiter = BlockingWaiter()
        whenEnded { waiter.wake() }
        waiter.wait()
    }

    /// The operations that this one waits for, ended ones included, until it ended itself.
    public final override var dependencies: [Operation] {
        core.withLock { $0.extras?.links.upstreamOperations ?? [] }
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
