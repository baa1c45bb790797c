// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An object that lets operations with the same key share one execution of their work.
///
/// Suppose that five cells in a list need the same picture, and each cell begins a download. If the cells instead added
/// handlers to one download, it would be unclear which cell may cancel the download, which callback queue applies, and
/// which result a late cell receives. With this class, each cell has its own operation, and the operations share one
/// download:
///
/// ```swift
/// let pictures = SharedOperations<String, Int, any Error>()
///
/// let cell = pictures.operation(for: "cat.png") {
///     ClosureOperation { "cat.png".count }
/// }
/// cell.successHandler = { print($0) }
/// cell.startAndKeepAlive()
/// ```
///
/// The operations for a key follow these rules:
///
/// - The run, which is the operation that does the work, begins when the first operation is started. All operations
///   that share the run end with the outcome of the run.
/// - If you cancel one of the operations, the run continues for the others. If you cancel all of them, OperationKit
///   cancels the run.
/// - An operation that is started after the run has ended begins a new run, unless the result is kept (see `timeToLive`
///   in ``init(timeToLive:clock:)``). Errors and cancellations are never kept.
public final class SharedOperations<Key: Hashable & Sendable, ResultType: Sendable, ErrorType: Error>: Sendable {
    typealias Table = FlightTable<Key, SharedOperation<ResultType, ErrorType>, TypedOperation<ResultType, ErrorType>>

    private let timeToLive: Duration
    private let clock: any OperationClock
    private let place: SharedRunPlace
    private let table = Locked(Table())

    /// Creates an object that executes shared work on the thread that starts the first operation for a key, and thus in
    /// that operation's queue.
    ///
    /// If the work cannot begin immediately, it begins later, outside the queue of the first operation. In this case,
    /// the first operation does not count toward the width of its ``QueueManager`` while it waits. The other operations
    /// that share the work never count toward the width while they wait.
    ///
    /// - Parameters:
    ///   - timeToLive: The duration for which the result of a successful run is kept for later operations. The default
    ///     is zero, which keeps no results.
    ///   - clock: The clock that measures `timeToLive`. The default is the system's monotonic clock.
    public convenience init(timeToLive: Duration = .zero, clock: any OperationClock = .system) {
        self.init(timeToLive: timeToLive, clock: clock, place: .firstAsker)
    }

    /// Creates an object that executes shared work in a queue.
    ///
    /// The operations that share the work may also be in this queue, because they do not count toward its width while
    /// they wait. If the operation that begins the work is in this queue, the queue accepts the work even if the queue
    /// is full, and until the grace period of a shutdown is over.
    ///
    /// - Parameters:
    ///   - queue: The queue in which the work executes.
    ///   - timeToLive: The duration for which the result of a successful run is kept for later operations. The default
    ///     is zero, which keeps no results.
    ///   - clock: The clock that measures `timeToLive`. The default is the system's monotonic clock.
    public convenience init(
        on queue: QueueManager, timeToLive: Duration = .zero, clock: any OperationClock = .system
    ) {
        self.init(timeToLive: timeToLive, clock: clock, place: .queue(queue))
    }

    /// Creates an object that executes shared work in an `OperationQueue`.
    ///
    /// Do not add the operations that share the work to this queue. Otherwise, the waiting operations count toward the
    /// queue's `maxConcurrentOperationCount`, and the work might never begin.
    ///
    /// - Parameters:
    ///   - queue: The queue in which the work executes.
    ///   - timeToLive: The duration for which the result of a successful run is kept for later operations. The default
    ///     is zero, which keeps no results.
    ///   - clock: The clock that measures `timeToLive`. The default is the system's monotonic clock.
    public convenience init(
        on queue: OperationQueue, timeToLive: Duration = .zero, clock: any OperationClock = .system
    ) {
        self.init(timeToLive: timeToLive, clock: clock, place: .operationQueue(queue))
    }

    init(timeToLive: Duration, clock: any OperationClock, place: SharedRunPlace) {
        (self.timeToLive, self.clock, self.place) = (timeToLive, clock, place)
    }

    deinit {
        for timer in table.withLock({ $0.forgetAll() }) { timer.cancel() }
    }

    /// Returns an operation that shares one run with the other operations for the same key.
    ///
    /// When the operation starts, it joins the run for the key or uses the result that is kept for the key. If there is
    /// neither a run nor a result, the operation begins a run.
    ///
    /// - Parameters:
    ///   - key: The key of the work. OperationKit holds a lock while it calls the key's `==` and `hash(into:)` methods,
    ///     so these methods must only compare and hash. If the key does not equal itself, as `Double.nan` does not, the
    ///     operation does not share its work.
    ///   - make: A closure that creates the operation that does the work. If no work executes for the key and no result
    ///     is kept, the closure is called on the thread that starts the shared operation. The closure must return a new
    ///     operation that no other code starts.
    public func operation(
        for key: Key, make: @escaping @Sendable () -> TypedOperation<ResultType, ErrorType>
    ) -> AsyncOperation<ResultType, ErrorType> {
        // The table would never find the key again, so the operation gets a table with another key.
        guard key == key else {
            let unshared = SharedOperations<Bool, ResultType, ErrorType>(
                timeToLive: timeToLive, clock: clock, place: place)
            return unshared.operation(for: true, make: make)
        }
        return SharedOperation(
            SharedOperation.Share(
                join: { [self] participant in join(participant, key, make) },
                leave: { [self] participant in leave(participant, key) },
                run: { [self] participant in apply { $0.run(of: participant, key) } }))
    }

    /// Releases the result that is kept for a key.
    ///
    /// The next operation for the key then begins a new run.
    public func forget(_ key: Key) {
        apply { $0.forget(key) }?.cancel()
    }

    /// Releases the results that are kept for all keys.
    public func forgetAll() {
        for timer in apply({ $0.forgetAll() }) { timer.cancel() }
    }

    /// Applies an event, and releases the values that it removed, without holding the lock.
    func apply<Action>(_ event: (inout Table) -> Action) -> Action {
        let (action, trash) = table.withLock { table in (event(&table), table.takeTrash()) }
        extendLifetime(trash)
        return action
    }
}

// The shell of FlightTable, which performs its actions without holding the lock.
extension SharedOperations {
    typealias Run = TypedOperation<ResultType, ErrorType>

    private var keepsResults: Bool { timeToLive > .zero }

    func join(_ participant: SharedOperation<ResultType, ErrorType>, _ key: Key, _ make: @Sendable () -> Run) {
        let now = keepsResults ? clock.now : OperationInstant(offset: .zero)
        let urgency = participant.queuePriority.rawValue
        switch apply({ $0.join(participant, key, urgency: urgency, now: now) }) {
        case .make(let number): begin(make(), for: participant, key, number)
        case .wait:
            participant.restForRun()
            advance(apply { $0.run(of: participant, key) }, for: [participant])
        case .raise(let run, let number):
            participant.restForRun()
            raise(run, key, number)
            advance(run, for: [participant])
        case .take(let run): if let outcome = run.outcome { participant.end(with: outcome, of: run) }
        }
    }

    /// Removes a canceled operation, and cancels the run if no other operation shares it.
    ///
    /// The operation has not left if it shares no run, because it gave up its share before or the run has just ended.
    /// Otherwise, the operation ends after the returned run, if there is one.
    func leave(
        _ participant: SharedOperation<ResultType, ErrorType>, _ key: Key
    ) -> (hasLeft: Bool, run: ManagedOperation?) {
        switch apply({ $0.leave(participant, key) }) {
        case .none: return (false, nil)
        case .left: return (true, nil)
        case .cancel(let run):
            forgetAfterEnd(run, key)
            let cause = CancellationCause.allAskersLeft(participant.cancellationCause)
            ThreadNotes.atBoundedDepth { run.cancelIfUndecided(because: cause) }
            return (true, run)
        }
    }

    private func begin(
        _ run: Run, for participant: SharedOperation<ResultType, ErrorType>, _ key: Key, _ number: UInt64
    ) {
        guard let predecessors = apply({ $0.didMake(run, key, number) }) else {
            // All operations were canceled while the run was created. No other code has a reference to the run, so it
            // ends here.
            run.cancelIfUndecided(because: .allAskersLeft(nil))
            return run.startIfNeeded()
        }
        run.core.withLock { core in
            core.need().sharers = { [weak self] in self?.apply { $0.participants(key, number) } ?? [] }
        }
        raise(run, key, number)
        for predecessor in predecessors { run.addDependency(predecessor) }
        run.addObserver(isWaiter: false) { [self] run in
            guard let run = run as? Run, let outcome = run.outcome else { return }
            ThreadNotes.atBoundedDepth { self.runDidEnd(run, outcome, key, number) }
        }
        start(run, for: participant)
        // Any of the operations that share the run may be in the queue of the run, before a barrier.
        advance(run, for: apply { $0.participants(key, number) })
    }

    /// Lets the run overtake barriers in its queue that wait for one of the operations that share the run.
    ///
    /// The same applies to a run that this run itself shares, which may be in another queue.
    private func advance(_ run: Run?, for participants: [ManagedOperation]) {
        var seen: Set<ObjectIdentifier> = []
        var next = run?.life
        while let run = next, seen.insert(ObjectIdentifier(run)).inserted {
            run.core.withLock { $0.hostEngine }?.advance(run, awaitedBy: participants)
            next = run.sharedRun?.life
        }
    }

    private func start(_ run: Run, for participant: SharedOperation<ResultType, ErrorType>) {
        switch place {
        case .firstAsker: break
        // The slot is given up before the run needs a slot, because the run may need this very slot.
        case .queue, .operationQueue: participant.restForRun()
        }
        switch place {
        case .firstAsker:
            // The keeper is set before the run can wait, because a run that waits gives up the slot of the operation
            // that started it.
            run.core.withLock { $0.need().slotHolder = participant }
            ThreadNotes.atBoundedDepth {
                run.startIfNeeded()
                participant.runDidStart(run)
            }
        case .operationQueue(let queue): if run.isUnused { queue.addOperation(run) }
        case .queue(let queue):
            guard run.isUnused else { return }
            do {
                try queue.engine.add(run, awaitedBy: participant)
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
        let isKept = keepsResults && outcome.result != nil
        let end = isKept ? clock.now.advanced(by: timeToLive) : nil
        let participants = apply { $0.runEnded(run, key, number, isCancelled: isCancelled, keepUntil: end) }
        if isCancelled { forgetAfterEnd(run, key) }
        if let end { forget(key, number, at: end) }
        for participant in participants { participant.end(with: outcome, of: run) }
    }

    /// Lets the next run begin when the body of this canceled run has wound down.
    private func forgetAfterEnd(_ run: Run, _ key: Key) {
        run.whenEnded { [weak self, weak run] in
            guard let self, let run else { return }
            self.apply { $0.runFinished(run, key) }
        }
    }

    private func forget(_ key: Key, _ number: UInt64, at end: OperationInstant) {
        guard end < .distantFuture else { return }
        let timer = clock.schedule(at: end) { [weak self] in self?.apply { $0.expire(key, number) } }
        // Before the timer is stored, it may have fired, or the result may have been forgotten.
        if !apply({ $0.keep(timer, key, number) }) { timer.cancel() }
    }

    /// Gives the run the highest priority of the operations that share it.
    private func raise(_ run: Run, _ key: Key, _ number: UInt64) {
        // Two operations may join at the same time, so the latest value is applied.
        applyLatest({ apply { $0.urgency(key, number) } }) { urgency in
            guard urgency > run.queuePriority.rawValue, let priority = Operation.QueuePriority(rawValue: urgency)
            else { return }
            run.queuePriority = priority
        }
    }
}
