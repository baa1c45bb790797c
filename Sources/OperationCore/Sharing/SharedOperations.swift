// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Operations of which those with an equal key run once for all who ask.
///
/// Five cells of a list want the same picture, and five downloads of it begin. To remember the one that runs and to add
/// handlers to it is soon said, but then who may cancel it, whose callback queue counts, and what does the one get who
/// comes a moment after the end? Here each who asks has an operation of his own, and they share the run:
///
/// ```swift
/// let pictures = SharedOperations<String, Int, any Error>()
///
/// let cell = pictures.operation(for: "cat.png") { ClosureOperation { "cat.png".count } }
/// cell.successHandler = { print($0) }
/// cell.startAndKeepAlive()
/// ```
///
/// - The run begins when the first asker is started, and each asker ends with its outcome.
/// - Cancelling an asker ends its share only. When the last one left, the run is cancelled.
/// - An asker that is started after the end begins a new run, unless the result is kept: see
///   ``SharingOptions/timeToLive``. Errors and cancellations are never kept.
public final class SharedOperations<Key: Hashable & Sendable, ResultType: Sendable, ErrorType: Error>: Sendable {
    typealias Table = FlightTable<Key, SharedOperation<ResultType, ErrorType>, TypedOperation<ResultType, ErrorType>>

    let options: SharingOptions
    private let table = Locked(Table())

    /// Makes a place where nothing runs and nothing is kept.
    public init(_ options: SharingOptions = SharingOptions()) {
        self.options = options
    }

    deinit {
        for timer in table.withLock({ $0.forgetAll() }) { timer.cancel() }
    }

    /// An operation that ends with the outcome of the run of this key, which it begins if there is none.
    ///
    /// - Parameters:
    ///   - key: What makes runs the same. Its `==` and `hash(into:)` are called under a lock, so they must do nothing
    ///     but compare and hash.
    ///   - make: Makes the run, on the thread that starts the operation, if there is no other one then. The run must be
    ///     new, and is not to be started by anybody else.
    public func operation(
        for key: Key, make: @escaping @Sendable () -> TypedOperation<ResultType, ErrorType>
    ) -> SharedOperation<ResultType, ErrorType> {
        SharedOperation(
            SharedOperation.Share(
                join: { [self] asker in join(asker, key, make) },
                leave: { [self] asker in leave(asker, key) }))
    }

    /// Lets go of the result that is kept for a key, so that the next asker begins a new run.
    public func forget(_ key: Key) {
        apply { $0.forget(key) }?.cancel()
    }

    /// Lets go of all results that are kept.
    public func forgetAll() {
        for timer in apply({ $0.forgetAll() }) { timer.cancel() }
    }

    /// Applies an event, and lets go of what fell out of the table where no lock is held.
    func apply<Action>(_ event: (inout Table) -> Action) -> Action {
        let (action, trash) = table.withLock { table in (event(&table), table.takeTrash()) }
        withExtendedLifetime(trash) {}
        return action
    }
}
