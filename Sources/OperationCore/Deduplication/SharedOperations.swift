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
                leave: { [self] asker in leave(asker, key) },
                run: { [self] asker in apply { $0.run(of: asker, key) } }))
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

// The shell of FlightTable: what its events ask for, performed when the lock was given back.
extension SharedOperations {
    typealias Run = TypedOperation<ResultType, ErrorType>

    func join(_ asker: SharedOperation<ResultType, ErrorType>, _ key: Key, _ make: @Sendable () -> Run) {
        let now = options.keepsResults ? options.clock.now : OperationInstant(offset: .zero)
        let urgency = asker.queuePriority.rawValue
        switch apply({ $0.join(asker, key, urgency: urgency, now: now) }) {
        case .make(let number): begin(make(), for: asker, key, number)
        case .wait: asker.restForRun()
        case .raise(let run, let number):
            asker.restForRun()
            raise(run, key, number)
        case .take(let run): if let outcome = run.outcome { asker.end(with: outcome, of: run) }
        }
    }

    /// Lets a canceled asker leave.
    ///
    /// If it was the last one, cancels the run.
    func leave(_ asker: SharedOperation<ResultType, ErrorType>, _ key: Key) -> ShareDeparture {
        switch apply({ $0.leave(asker, key) }) {
        case .none: return .notSharing
        case .left: return .left(after: nil)
        case .cancel(let run):
            forgetAfterEnd(run, key)
            let cause = CancellationCause.allAskersLeft(asker.cancellationCause)
            ThreadNotes.atBoundedDepth { run.cancelIfUndecided(because: cause) }
            return .left(after: run)
        }
    }

    private func begin(
        _ run: Run, for asker: SharedOperation<ResultType, ErrorType>, _ key: Key, _ number: UInt64
    ) {
        guard let predecessors = apply({ $0.didMake(run, key, number) }) else {
            // All left while it was made. Nobody knows it but its maker, for whom it ends.
            run.cancelIfUndecided(because: .allAskersLeft(nil))
            return run.startIfNeeded()
        }
        raise(run, key, number)
        for predecessor in predecessors { run.addDependency(predecessor) }
        run.addObserver(isWaiter: false) { [self] run in
            guard let run = run as? Run, let outcome = run.outcome else { return }
            ThreadNotes.atBoundedDepth { self.runDidEnd(run, outcome, key, number) }
        }
        start(run, for: asker)
    }

    private func start(_ run: Run, for asker: SharedOperation<ResultType, ErrorType>) {
        switch options.place.kind {
        case .firstAsker: break
        // This comes before the run asks for a slot, because the run may need this very slot.
        case .manager, .foundation: asker.restForRun()
        }
        switch options.place.kind {
        case .firstAsker:
            // This comes before the run may wait, since it gives up the slot of the asker meanwhile.
            run.core.withLock { $0.need().placeKeeper = asker }
            ThreadNotes.atBoundedDepth {
                run.startIfNeeded()
                asker.runDidStart(run)
            }
        case .foundation(let queue): if run.isUnused { queue.addOperation(run) }
        case .manager(let queue):
            guard run.isUnused else { return }
            do {
                try queue.add(run)
            } catch {
                run.cancelIfUndecided(because: .runRefused(error))
                run.startIfNeeded()
            }
        }
    }

    private func runDidEnd(
        _ run: Run, _ outcome: OperationOutcome<ResultType, ErrorType>, _ key: Key, _ number: UInt64
    ) {
        let isCancelled = outcome.cancellationCause != nil
        let isKept = options.keepsResults && outcome.result != nil
        let end = isKept ? options.clock.now.advanced(by: options.timeToLive) : nil
        let askers = apply { $0.runEnded(run, key, number, isCancelled: isCancelled, keepUntil: end) }
        if isCancelled { forgetAfterEnd(run, key) }
        if let end { forget(key, number, at: end) }
        for asker in askers { asker.end(with: outcome, of: run) }
    }

    /// Lets the next run begin although this one was cancelled, once its body has wound down.
    private func forgetAfterEnd(_ run: Run, _ key: Key) {
        run.whenEnded { [weak self, weak run] in
            guard let self, let run else { return }
            self.apply { $0.runFinished(run, key) }
        }
    }

    private func forget(_ key: Key, _ number: UInt64, at end: OperationInstant) {
        guard end < .distantFuture else { return }
        let timer = options.clock.schedule(at: end) { [weak self] in self?.apply { $0.expire(key, number) } }
        // It may have fired, or the result may be forgotten, before it could be stored.
        if !apply({ $0.keep(timer, key, number) }) { timer.cancel() }
    }

    /// Gives the run the highest priority of its askers.
    private func raise(_ run: Run, _ key: Key, _ number: UInt64) {
        // Two askers may come at the same time, so the latest value is applied.
        applyLatest({ apply { $0.urgency(key, number) } }) { urgency in
            guard urgency > run.queuePriority.rawValue, let priority = Operation.QueuePriority(rawValue: urgency)
            else { return }
            run.queuePriority = priority
        }
    }
}
