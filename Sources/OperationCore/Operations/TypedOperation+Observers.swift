// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension ManagedOperation {
    /// Adds somebody to be told of the outcome, or tells him at once if there is one to tell.
    ///
    /// Returns what removes him.
    @discardableResult
    package final func addObserver(
        isWaiter: Bool, _ tell: @escaping @Sendable (ManagedOperation) -> Void
    ) -> OutcomeObservation {
        let id = storage.withLock { core -> UInt64? in
            if isWaiter ? core.machine.ending != nil : core.machine.isTold && core.extras?.telling.isRunning != true {
                return nil
            }
            let extras = core.need()
            extras.lastObserverID += 1
            extras.observers.append(OutcomeObserver(isWaiter: isWaiter, tell: tell), id: extras.lastObserverID)
            return extras.lastObserverID
        }
        if id == nil { tell(self) }
        return OutcomeObservation(operation: self, id: id)
    }

    fileprivate func removeObserver(_ id: UInt64) {
        let removed = storage.withLock { $0.extras?.observers.remove(id) }
        withExtendedLifetime(removed) {}
    }
}

/// What takes an observer back; letting go of it does not.
public struct OutcomeObservation: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var operation: ManagedOperation?
    private let id: UInt64?

    init(operation: ManagedOperation, id: UInt64?) {
        self.operation = operation
        self.id = id
    }

    /// Removes the observer, unless it was told already.
    public func cancel() {
        if let id { operation?.removeObserver(id) }
    }
}

extension TypedOperation {
    /// Calls `observer` with the outcome, however the operation ends, beside its handlers and other observers.
    ///
    /// It is called once, on `queue` or else on ``callbackQueue``; immediately if the operation has ended. Observers of one
    /// operation are called in the order in which they were added, where they share a serial queue. Unlike a handler, an observer
    /// is also called if the operation is canceled after its outcome was decided.
    @discardableResult
    public final func observe(
        on queue: DispatchQueue? = nil,
        _ observer: @escaping @Sendable (OperationOutcome<ResultType, ErrorType>) -> Void
    ) -> OutcomeObservation {
        addObserver(isWaiter: false) { operation in
            guard let operation = operation as? TypedOperation, let outcome = operation.outcome else { return }
            // As for handlers: a cancellation may come from the operation's own `deinit`.
            let kept = outcome.cancellationCause == nil ? operation : nil
            (queue ?? operation.callbackQueue).async { withExtendedLifetime(kept) { observer(outcome) } }
        }
    }
}

// In the protocol and not in the class, so that each method returns the type of the subclass.
extension ResultOperation {
    /// Adds handlers that are called on the main actor, whatever the `callbackQueue` is.
    ///
    /// In a class of the main actor they use its properties directly:
    ///
    /// ```swift
    /// @MainActor
    /// final class StatusLine {
    ///     private(set) var text = ""
    ///
    ///     func count(_ words: [String]) {
    ///         ClosureOperation { words.count }
    ///             .onMainActor(
    ///                 success: { [weak self] count in self?.text = "\(count) words" },
    ///                 cancellation: { [weak self] cause in self?.text = cause.message }
    ///             )
    ///             .startAndKeepAlive()
    ///     }
    /// }
    /// ```
    ///
    /// They are called beside the handlers of the operation, with the same promises: at most one of the three is called, once,
    /// and after a cancellation only `cancellation` is. The timeout and the deadline of an operation cancel it, too. If you call
    /// `cancel()` on the main actor, neither `success` nor `failure` begins after it has returned. Each call of this method adds
    /// handlers and replaces none. If the operation has ended, the one that fits is enqueued immediately.
    ///
    /// - Parameters:
    ///   - success: Called with the result.
    ///   - failure: Called with the error.
    ///   - cancellation: Called with the cause of a cancellation.
    @discardableResult
    public func onMainActor(
        success: (@MainActor (ResultType) -> Void)? = nil,
        failure: (@MainActor (ErrorType) -> Void)? = nil,
        cancellation: (@MainActor (CancellationCause) -> Void)? = nil
    ) -> Self {
        addObserver(isWaiter: false) { operation in
            guard let outcome = (operation as? TypedOperation<ResultType, ErrorType>)?.outcome else { return }
            switch outcome {
            case .success(let result):
                guard let success else { return }
                operation.enqueueHandler(on: .main) { MainActor.assumeIsolated { success(result) } }
            case .failure(let error):
                guard let failure else { return }
                operation.enqueueHandler(on: .main) { MainActor.assumeIsolated { failure(error) } }
            case .cancelled(let cause):
                guard let cancellation else { return }
                // The operation is not kept, because the cancellation may come from its own `deinit`.
                DispatchQueue.main.async { MainActor.assumeIsolated { cancellation(cause) } }
            }
        }
        return self
    }

    /// Adds a handler that is called on the main actor with the outcome, however the operation ends.
    ///
    /// A timeout, a deadline and a failed dependency are cancellations, so a screen that shows progress hides it here:
    ///
    /// ```swift
    /// @MainActor
    /// final class Counter {
    ///     private(set) var isLoading = false
    ///
    ///     func count(_ words: [String]) {
    ///         isLoading = true
    ///         ClosureOperation { words.count }
    ///             .onMainActor(outcome: { [weak self] _ in self?.isLoading = false })
    ///             .startAndKeepAlive()
    ///     }
    /// }
    /// ```
    ///
    /// It has the promises of ``onMainActor(success:failure:cancellation:)``. If you call `cancel()` on the main actor after a
    /// success or a failure was decided, it does not begin after `cancel()` has returned.
    @discardableResult
    public func onMainActor(
        outcome body: @escaping @MainActor (OperationOutcome<ResultType, ErrorType>) -> Void
    ) -> Self {
        onMainActor(
            success: { body(.success($0)) }, failure: { body(.failure($0)) }, cancellation: { body(.cancelled($0)) })
    }
}
