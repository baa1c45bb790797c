// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation with a typed result and a typed error.
///
/// This class is the common superclass of ``AsyncOperation`` and ``SyncOperation``. You cannot subclass
/// ``TypedOperation`` directly. Subclass ``AsyncOperation`` or ``SyncOperation`` instead.
///
/// To write a function that accepts operations of either class, declare its parameter as ``TypedOperation``:
///
/// ```swift
/// func printOutcome<Value, Failure>(
///     of operation: TypedOperation<Value, Failure>
/// ) {
///     operation.successHandler = { value in print(value) }
///     operation.failureHandler = { error in print(error) }
/// }
/// ```
///
/// ### The end of an operation
///
/// An operation ends with exactly one ``OperationOutcome``. The first call to `finish(withResult:)`,
/// `finish(withError:)` or `cancel` decides the outcome. Later calls do not change the outcome.
///
/// After the decision, these events happen in this order:
///
/// 1. The handler for the outcome is enqueued on ``callbackQueue``.
/// 2. `isFinished` becomes `true`.
/// 3. The operations that depend on this operation can begin.
/// 4. The `completionBlock` runs.
///
/// Therefore, handlers on one serial queue run in the order of the dependency graph, and an operation ends without
/// waiting for its callback queue.
///
/// Guide: `Docs/Guides/Operations.md`
open class TypedOperation<ResultType: Sendable, ErrorType: Error>: ManagedOperation, @unchecked Sendable {
    // Sendable: the handlers and the queue are only touched under the lock of `storage`.

    // A function has the same size for all types, and the result is behind a pointer in `storage`. So neither the
    // stored properties here nor the arguments of generic functions depend on the two types. Otherwise, each access
    // would look up the description of the type in a table of the runtime. This search costs more than all the other
    // work of an operation.
    private var success: (@Sendable (ResultType) -> Void)?
    private var failure: (@Sendable (ErrorType) -> Void)?
    private var cancellation: (@Sendable (CancellationCause) -> Void)?

    deinit {
        let (ending, box, holdsHandlers) = storage.withLock { core in
            (core.machine.ending, core.box, core.hasHandlers && !core.machine.isOutcomeReported)
        }
        if holdsHandlers { releaseHandlers() }
        guard let box else { return }
        ending == .success ? box.free(as: ResultType.self) : box.free(as: ErrorType.self)
    }

    /// Releases the handlers that were never called, for an operation that is being freed.
    ///
    /// Each handler may hold another operation, and so on. The loop frees them without recursion.
    @inline(never)
    private func releaseHandlers() {
        if success != nil { ThreadWorklist.release(exchange(&success, with: nil)) }
        if failure != nil { ThreadWorklist.release(exchange(&failure, with: nil)) }
        if cancellation != nil { ThreadWorklist.release(exchange(&cancellation, with: nil)) }
    }

    /// Finishes the operation with a result.
    ///
    /// If the operation already has a result or an error, or was canceled, the call does not change the outcome, and
    /// OperationKit reports an ``OperationNotice``. However, if ``AsyncOperation/windsDownAfterCancellation`` is
    /// `true`, the first call after a cancellation ends an operation whose body has begun, without a notice.
    ///
    /// You may call this method before the operation starts. The operation then keeps the result and does not run its
    /// body. Its handlers are called after the operation has started and its dependencies have ended.
    ///
    /// - Parameter result: The result of the operation.
    public final func finish(withResult result: ResultType) {
        let box = OutcomeBox(result)
        if !finish(as: .success, keeping: box) { box.free(as: ResultType.self) }
    }

    /// Finishes the operation with an error.
    ///
    /// If the operation already has a result or an error, or was canceled, the call does not change the outcome, and
    /// OperationKit reports an ``OperationNotice``. However, if ``AsyncOperation/windsDownAfterCancellation`` is
    /// `true`, the first call after a cancellation ends an operation whose body has begun, without a notice.
    ///
    /// Any error makes the operation fail, including a `CancellationError`. To cancel the operation, call
    /// `cancel(because:)` instead.
    ///
    /// - Parameter error: The error of the operation.
    public final func finish(withError error: ErrorType) {
        let box = OutcomeBox(error)
        if !finish(as: .failure, keeping: box) { box.free(as: ErrorType.self) }
    }

    /// Finishes the operation with the value or the error of a `Result`, as in `finish(with: Result { try load() })`.
    ///
    /// - Parameter result: The value that becomes the result of the operation, or the error that becomes its error.
    public final func finish(with result: Result<ResultType, ErrorType>) {
        switch result {
        case .success(let result): finish(withResult: result)
        case .failure(let error): finish(withError: error)
        }
    }

    /// The outcome of the operation, or `nil` if the outcome is not decided yet.
    ///
    /// The outcome stays readable for as long as the operation exists.
    public final var outcome: OperationOutcome<ResultType, ErrorType>? {
        // The value behind the pointer no longer changes and exists as long as the operation.
        let (ending, box, cause) = storage.withLock { ($0.machine.ending, $0.box, $0.cause) }
        switch ending {
        case .success: return box.map { .success($0.value(as: ResultType.self)) }
        case .failure: return box.map { .failure($0.value(as: ErrorType.self)) }
        case .cancelled: return .cancelled(cause ?? .requested)
        case nil: return nil
        }
    }

    /// The queue on which the operation calls its handlers.
    ///
    /// If you do not set this property, the operation uses the first callback queue in this list that is set:
    ///
    /// 1. the callback queue of the original, if the operation is mapped from another operation
    /// 2. the callback queue of the `NetworkBase`, if the operation is a network operation
    /// 3. the callback queue of the group that contains the operation, or of an outer group, beginning with the
    ///    innermost group
    /// 4. the callback queue of the ``QueueManager`` that runs the operation
    /// 5. the callback queue of the process, ``OperationDefaults/callbackQueue``, which is the main queue unless you
    ///    set another one
    ///
    /// The operation chooses the queue when it enqueues a handler.
    ///
    /// Use a serial queue. On a concurrent queue, handlers and progress reports have no order, and a progress closure
    /// may still be running when the next progress report arrives or a handler is called.
    ///
    /// If your program has no main run loop, like a service on Linux, handlers on the main queue are never called and
    /// keep their operations alive. In this case, set another queue.
    public final var callbackQueue: DispatchQueue {
        get { nearestCallbackQueue }
        set { setCallbackQueue(newValue, as: .own) }
    }

    /// A closure that the operation calls once, on ``callbackQueue``, with its result after it succeeds.
    ///
    /// The closure is not called if the operation is canceled. A cancellation after the success also prevents the call,
    /// unless the closure has already begun. See ``ManagedOperation/cancel(because:)``. The operation removes its
    /// reference to the closure before the call.
    ///
    /// If you set the closure after the operation has succeeded, the closure is enqueued immediately. The default is
    /// `nil`.
    public final var successHandler: (@Sendable (ResultType) -> Void)? {
        get {
            var handler: (@Sendable (ResultType) -> Void)?
            storage.withLock { _ in handler = success }
            return handler
        }
        set {
            // The previous handler is released without holding the lock, when this setter returns.
            var old: (@Sendable (ResultType) -> Void)?
            let isLate = storage.withLock { core in
                guard core.acceptsHandler(newValue != nil) else { return true }
                old = success
                success = newValue
                return false
            }
            releaseHandler(success: old)
            if isLate { deliverLate(success: newValue) }
        }
    }

    /// A closure that the operation calls once, on ``callbackQueue``, with its error after it fails.
    ///
    /// The closure is not called if the operation is canceled. A cancellation after the failure also prevents the call,
    /// unless the closure has already begun. See ``ManagedOperation/cancel(because:)``. The operation removes its
    /// reference to the closure before the call.
    ///
    /// If you set the closure after the operation has failed, the closure is enqueued immediately. The default is
    /// `nil`.
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
            releaseHandler(failure: old)
            if isLate { deliverLate(failure: newValue) }
        }
    }

    /// A closure that is called once with the cause, on ``callbackQueue``, as soon as the operation is canceled.
    ///
    /// Unlike an enqueued ``successHandler`` or ``failureHandler``, this closure does not keep the operation alive
    /// until the call.
    ///
    /// If you set the closure after the operation was canceled, the closure is enqueued immediately. The default is
    /// `nil`.
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
            releaseHandler(cancellation: old)
            if isLate { deliverLate(cancellation: newValue) }
        }
    }

    package override func callHandlers() {
        var success: (@Sendable (ResultType) -> Void)?
        var failure: (@Sendable (ErrorType) -> Void)?
        var cancellation: (@Sendable (CancellationCause) -> Void)?
        let (ending, box, queue) = storage.withLock { core in
            // The operation releases all handlers, and calls one of them only after that.
            success = self.success
            failure = self.failure
            cancellation = self.cancellation
            self.success = nil
            self.failure = nil
            self.cancellation = nil
            return (core.machine.ending, core.box, core.callbackQueue)
        }
        switch ending {
        case .success: deliver(success: success, box, on: queue)
        case .failure: deliver(failure: failure, box, on: queue)
        case .cancelled: deliver(cancellation: cancellation, on: queue)
        case nil: break
        }
    }

    override func givesResult(of type: Any.Type) -> Bool { ResultType.self == type }

    override func failByRule(with error: any Error) {
        guard let error = error as? ErrorType else { return }
        let box = OutcomeBox(error)
        if !failByRule(keeping: box) { box.free(as: ErrorType.self) }
    }

    #if DEBUG
        final override var identityMap: ManagedOperation { mapOutcome { $0 } }
    #endif

    package override var failureAsError: (any Error)? { outcome?.error }

    /// Calls a handler that was set after the end, if the handler matches the outcome.
    private func deliverLate(
        success: (@Sendable (ResultType) -> Void)? = nil,
        failure: (@Sendable (ErrorType) -> Void)? = nil,
        cancellation: (@Sendable (CancellationCause) -> Void)? = nil
    ) {
        let (ending, box, queue) = storage.withLock { ($0.machine.ending, $0.box, $0.callbackQueue) }
        switch ending {
        case .success: deliver(success: success, box, on: queue, isLate: true)
        case .failure: deliver(failure: failure, box, on: queue, isLate: true)
        case .cancelled: deliver(cancellation: cancellation, on: queue, isLate: true)
        case nil: break
        }
    }

    // These functions only keep a handler alive up to this point. `extendLifetime` would do the same, but at the cost
    // that is described at the top of the class.
    @inline(never) private func releaseHandler(success handler: (@Sendable (ResultType) -> Void)?) {}
    @inline(never) private func releaseHandler(failure handler: (@Sendable (ErrorType) -> Void)?) {}
    @inline(never) private func releaseHandler(cancellation handler: (@Sendable (CancellationCause) -> Void)?) {}

    // Each function enqueues a handler on a queue. The operation, and with it the value in the box, stays alive until
    // the handler was called. The exception is a cancellation, which may come from the operation's own `deinit`.

    // The handler is recorded unless it is late, because another operation may have the slot by then.
    private func deliver(
        success: (@Sendable (ResultType) -> Void)?, _ box: OutcomeBox?, on queue: DispatchQueue?, isLate: Bool = false
    ) {
        guard let success, let box else { return }
        let permit = handlerPermit(isOfOutcome: !isLate)
        (queue ?? defaultCallbackQueue).async { [self] in
            guard permit.allowsHandler(of: self) else { return }
            success(box.value(as: ResultType.self))
            extendLifetime(self)
        }
    }

    private func deliver(
        failure: (@Sendable (ErrorType) -> Void)?, _ box: OutcomeBox?, on queue: DispatchQueue?, isLate: Bool = false
    ) {
        guard let failure, let box else { return }
        let permit = handlerPermit(isOfOutcome: !isLate)
        (queue ?? defaultCallbackQueue).async { [self] in
            guard permit.allowsHandler(of: self) else { return }
            failure(box.value(as: ErrorType.self))
            extendLifetime(self)
        }
    }

    private func deliver(
        cancellation: (@Sendable (CancellationCause) -> Void)?, on queue: DispatchQueue?, isLate: Bool = false
    ) {
        guard let cancellation, let cause = cancellationCause else { return }
        let (host, slot) = core.withLock { ($0.host, $0.slot) }
        let recordBeginning = isLate ? nil : host?.recordHandler(at: slot)
        (queue ?? defaultCallbackQueue).async {
            recordBeginning?()
            cancellation(cause)
        }
    }
}

/// A protocol for operations that have a result type and an error type.
///
/// Use this protocol in generic code that handles operations with any result type and error type, or that refers to the
/// operation's own type. ``AsyncOperation`` and ``SyncOperation`` conform to the protocol, so your subclass has nothing
/// to implement.
public protocol ResultOperation: ManagedOperation {
    /// The type of the operation's result.
    associatedtype ResultType: Sendable
    /// The type of the operation's error.
    associatedtype ErrorType: Error

    /// The outcome of the operation.
    ///
    /// Reading this property waits until the outcome is decided.
    var finalOutcome: OperationOutcome<ResultType, ErrorType> { get async }
}

extension TypedOperation: ResultOperation {}
