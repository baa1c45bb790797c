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
    /// It is called once, on `queue` or else on ``callbackQueue``; at once if the operation has ended. Observers of one
    /// operation are called in the order in which they were added, where they share a serial queue.
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

    /// Sets handlers that run on the main actor, whatever the ``callbackQueue``: for code that shows the result.
    ///
    /// They stand beside ``successHandler``, ``failureHandler`` and ``cancellationHandler`` and keep their promises: one
    /// of them is called, once, and only `cancellation` after a cancellation.
    @discardableResult
    public final func observeOnMainActor(
        success: (@MainActor (ResultType) -> Void)? = nil,
        failure: (@MainActor (ErrorType) -> Void)? = nil,
        cancellation: (@MainActor (CancellationCause) -> Void)? = nil
    ) -> OutcomeObservation {
        observe(on: .main) { outcome in
            MainActor.assumeIsolated {
                switch outcome {
                case .success(let result): success?(result)
                case .failure(let error): failure?(error)
                case .cancelled(let cause): cancellation?(cause)
                }
            }
        }
    }
}
