// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
