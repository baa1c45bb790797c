// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation with a typed result and a typed error: what ``AsyncOperation`` and ``SyncOperation`` have in common.
///
/// It cannot be subclassed directly; subclass one of those two.
///
/// ### How it ends
///
/// Exactly one ``OperationOutcome``, decided by the first of `finish(withResult:)`, `finish(withError:)` and `cancel`;
/// what comes later changes nothing. Then, in this order: the handler is put on ``callbackQueue``, `isFinished` is
/// signalled, dependents are released, and `completionBlock` runs. So handlers on one serial queue run in the order of
/// the graph, and ending never waits for the callback queue.
open class TypedOperation<ResultType: Sendable, ErrorType: Error>: ManagedOperation, @unchecked Sendable {
    // Sendable: the handlers and the queue are only touched under the lock of `storage`.

    // A function has the same size whatever its types, and the result is behind a pointer in `storage`: so nothing that is
    // stored here, or handed to a generic function, depends on the two types. Where it does, each access looks up the
    // type's description in a table of the runtime, which costs more than all else that an operation does.
    private var success: (@Sendable (ResultType) -> Void)?
    private var failure: (@Sendable (ErrorType) -> Void)?
    private var cancellation: (@Sendable (CancellationCause) -> Void)?

    deinit {
        let (ending, box, holdsHandlers) = storage.withLock { core in
            (core.machine.ending, core.box, core.hasHandlers && !core.machine.isTold)
        }
        if holdsHandlers { letGoOfHandlers() }
        guard let box else { return }
        ending == .success ? box.free(as: ResultType.self) : box.free(as: ErrorType.self)
    }

    /// Lets go of handlers that were never told, for an operation that is being freed.
    ///
    /// Each may hold another operation, and that one another: freed in a loop, not in a recursion.
    @inline(never)
    private func letGoOfHandlers() {
        if success != nil { ThreadWorklist.letGo(exchange(&success, with: nil)) }
        if failure != nil { ThreadWorklist.letGo(exchange(&failure, with: nil)) }
        if cancellation != nil { ThreadWorklist.letGo(exchange(&cancellation, with: nil)) }
    }

    /// Gives the operation its result.
    ///
    /// Only the first result, error or cancellation counts.
    ///
    /// Called before the start, it is kept: the body will not run, and the handlers are told when the operation is
    /// started.
    public final func finish(withResult result: ResultType) {
        let box = OutcomeBox(result)
        if !finish(as: .success, keeping: box) { box.free(as: ResultType.self) }
    }

    /// Ends the operation with an error of its type.
    ///
    /// Only the first result, error or cancellation counts.
    ///
    /// Every error is a failure here, a `CancellationError` included. Call `cancel(because:)` to cancel the operation. The
    /// closure of a ``ClosureOperation`` or a ``TaskOperation`` cancels its operation by throwing a `CancellationError`.
    public final func finish(withError error: ErrorType) {
        let box = OutcomeBox(error)
        if !finish(as: .failure, keeping: box) { box.free(as: ErrorType.self) }
    }

    /// Ends the operation with a result or an error, such as one that was caught: `finish(with: Result { try load() })`.
    public final func finish(with result: Result<ResultType, ErrorType>) {
        switch result {
        case .success(let result): finish(withResult: result)
        case .failure(let error): finish(withError: error)
        }
    }

    /// How the operation ended; nil until that is decided.
    ///
    /// It stays readable for as long as the operation lives.
    public final var outcome: OperationOutcome<ResultType, ErrorType>? {
        // What the pointer leads to does not change any more and lives as long as the operation.
        let (ending, box, cause) = storage.withLock { ($0.machine.ending, $0.box, $0.cause) }
        switch ending {
        case .success: return box.map { .success($0.value(as: ResultType.self)) }
        case .failure: return box.map { .failure($0.value(as: ErrorType.self)) }
        case .cancelled: return .cancelled(cause ?? .requested)
        case nil: return nil
        }
    }

    /// The queue on which handlers are called.
    ///
    /// If you set none, the first of these that has a callback queue gives it:
    ///
    /// 1. the original, if the operation is mapped from another one
    /// 2. the base of a network operation
    /// 3. the group that contains the operation, then the group around that one, and so on
    /// 4. the ``QueueManager`` that runs the operation
    /// 5. the process: ``OperationDefaults/callbackQueue``, which is the main queue unless you set another one
    ///
    /// The queue is chosen when a handler is enqueued. The callback queue of a group is also that of the operations in it.
    ///
    /// Use a serial queue. On a concurrent queue, handlers and reports of progress have no order: a report may still run when a
    /// later one, or the handler of the result, is called.
    ///
    /// If no thread serves the main queue, as in a service on Linux, handlers wait there and keep their operation alive. Set
    /// another queue in such a program. Everything else works without a main loop.
    public final var callbackQueue: DispatchQueue {
        get { nearestCallbackQueue }
        set { setCallbackQueue(newValue, as: .own) }
    }

    /// The closure that is called with the result, once, on ``callbackQueue``.
    ///
    /// It is not called if the operation is canceled. If the operation is canceled after it succeeded, the closure is still not
    /// called, unless it has already begun: see ``ManagedOperation/cancel(because:)``. The operation releases the closure before
    /// it is called.
    ///
    /// A closure that is set after the operation succeeded is called immediately.
    public final var successHandler: (@Sendable (ResultType) -> Void)? {
        get {
            var handler: (@Sendable (ResultType) -> Void)?
            storage.withLock { _ in handler = success }
            return handler
        }
        set {
            // The handler that was there goes when this returns, outside the lock.
            var old: (@Sendable (ResultType) -> Void)?
            let isLate = storage.withLock { core in
                guard core.acceptsHandler(newValue != nil) else { return true }
                old = success
                success = newValue
                return false
            }
            letGo(success: old)
            if isLate { deliverLate(success: newValue) }
        }
    }

    /// The closure that is called with the error, once, on ``callbackQueue``.
    ///
    /// It is not called if the operation is canceled. If the operation is canceled after it failed, the closure is still not
    /// called, unless it has already begun: see ``ManagedOperation/cancel(because:)``. The operation releases the closure before
    /// it is called.
    ///
    /// A closure that is set after the operation failed is called immediately.
    public final var failureHandler: (@Sendable (ErrorType) -> Void)? {
        get {
            var handler: (@Sendable (ErrorType) -> Void)?
            storage.withLock { _ in handler = failure }
            return handler
        }
        set {
            var old: (@Sendable (ErrorType) -> Void)?
            let isLate = storage.withLock { core in
                guard core.acceptsHandler(newValue != nil) else { return true }
                old = failure
                failure = newValue
                return false
            }
            letGo(failure: old)
            if isLate { deliverLate(failure: newValue) }
        }
    }

    /// Called with the cause, once, on ``callbackQueue``, as soon as the operation is cancelled.
    ///
    /// Unlike the two others it does not keep the operation alive until it is called.
    ///
    /// Set after the operation was cancelled, it is called at once.
    public final var cancellationHandler: (@Sendable (CancellationCause) -> Void)? {
        get {
            var handler: (@Sendable (CancellationCause) -> Void)?
            storage.withLock { _ in handler = cancellation }
            return handler
        }
        set {
            var old: (@Sendable (CancellationCause) -> Void)?
            let isLate = storage.withLock { core in
                guard core.acceptsHandler(newValue != nil) else { return true }
                old = cancellation
                cancellation = newValue
                return false
            }
            letGo(cancellation: old)
            if isLate { deliverLate(cancellation: newValue) }
        }
    }

    package override func callHandlers() {
        var success: (@Sendable (ResultType) -> Void)?
        var failure: (@Sendable (ErrorType) -> Void)?
        var cancellation: (@Sendable (CancellationCause) -> Void)?
        let (ending, box, queue, recorded, isAlone) = storage.withLock { core in
            // All are let go of, and the one that is called only after it was.
            success = self.success
            failure = self.failure
            cancellation = self.cancellation
            self.success = nil
            self.failure = nil
            self.cancellation = nil
            let isAlone = core.host == nil && core.parent == nil && core.extras == nil
            return (core.machine.ending, core.box, core.callbackQueue, core.recordedPlace, isAlone)
        }
        // The queue holds the original.
        let place = original == nil ? recorded : core.withLock { $0.recordedPlace }
        let stamp = place?.stamp()
        switch ending {
        case .success: deliver(success: success, box, on: queue, isAlone: isAlone, stamp)
        case .failure: deliver(failure: failure, box, on: queue, isAlone: isAlone, stamp)
        case .cancelled: deliver(cancellation: cancellation, on: queue, stamp)
        case nil: break
        }
    }

    override func givesResult(of type: Any.Type) -> Bool { ResultType.self == type }

    #if DEBUG
        final override var identityMap: ManagedOperation { mapOutcome { $0 } }
    #endif

    package override var failureAsError: (any Error)? { outcome?.error }

    /// Calls a handler that was set after the end, if the outcome is the one for it.
    private func deliverLate(
        success: (@Sendable (ResultType) -> Void)? = nil,
        failure: (@Sendable (ErrorType) -> Void)? = nil,
        cancellation: (@Sendable (CancellationCause) -> Void)? = nil
    ) {
        let (ending, box, queue) = storage.withLock { ($0.machine.ending, $0.box, $0.callbackQueue) }
        switch ending {
        case .success: deliver(success: success, box, on: queue, isAlone: false)
        case .failure: deliver(failure: failure, box, on: queue, isAlone: false)
        case .cancelled: deliver(cancellation: cancellation, on: queue)
        case nil: break
        }
    }

    // These only keep a handler alive up to here. `extendLifetime` would, but at the price described at the top.
    @inline(never) private func letGo(success handler: (@Sendable (ResultType) -> Void)?) {}
    @inline(never) private func letGo(failure handler: (@Sendable (ErrorType) -> Void)?) {}
    @inline(never) private func letGo(cancellation handler: (@Sendable (CancellationCause) -> Void)?) {}

    // Each puts a handler on a queue. The operation, and with it what is in the box, lives until it was called; but not
    // for a cancellation, which may come from its own `deinit`. An operation is alone if it has no group, queue or owner.

    private func deliver(
        success: (@Sendable (ResultType) -> Void)?, _ box: OutcomeBox?, on queue: DispatchQueue?,
        isAlone: Bool, _ stamp: HandlerStamp? = nil
    ) {
        guard let success, let box else { return }
        let permit = isAlone && original == nil ? HandlerPermit() : handlerPermit()
        (queue ?? defaultCallbackQueue).async { [self] in
            guard permit.allowsHandler(of: self) else { return }
            stamp?.handlerBegins()
            success(box.value(as: ResultType.self))
            extendLifetime(self)
        }
    }

    private func deliver(
        failure: (@Sendable (ErrorType) -> Void)?, _ box: OutcomeBox?, on queue: DispatchQueue?,
        isAlone: Bool, _ stamp: HandlerStamp? = nil
    ) {
        guard let failure, let box else { return }
        let permit = isAlone && original == nil ? HandlerPermit() : handlerPermit()
        (queue ?? defaultCallbackQueue).async { [self] in
            guard permit.allowsHandler(of: self) else { return }
            stamp?.handlerBegins()
            failure(box.value(as: ErrorType.self))
            extendLifetime(self)
        }
    }

    private func deliver(
        cancellation: (@Sendable (CancellationCause) -> Void)?, on queue: DispatchQueue?, _ stamp: HandlerStamp? = nil
    ) {
        guard let cancellation, let cause = cancellationCause else { return }
        (queue ?? defaultCallbackQueue).async {
            stamp?.handlerBegins()
            cancellation(cause)
        }
    }
}
