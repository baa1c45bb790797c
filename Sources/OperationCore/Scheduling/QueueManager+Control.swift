// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Steering.
extension QueueManager {
    /// How many operations may run at once; nil for as many as are ready.
    ///
    /// May be changed at any time. Made smaller, nothing begins until enough have ended. Below one, it is one; for a number
    /// that comes from outside of the program there is ``setWidth(_:)``.
    public var width: Int? {
        get { engine.state.withLock { $0.machine.width == .max ? nil : $0.machine.width } }
        set {
            let width = newValue.map { max($0, 1) }
            engine.applySettled { state, _ in
                state.machine.width = width ?? .max
                state.crew.setWidth(width)
                state.machine.journal?.note(.width(width))
            }
        }
    }

    /// Sets how many operations may run at once; nil for as many as are ready.
    ///
    /// - Throws: If the number is below one, with the code `badSetting`; the width stays as it was then.
    public func setWidth(_ width: Int?) throws(QueueError) {
        if let width, width < 1 { throw .badWidth(width, queue: name) }
        self.width = width
    }

    /// The queue on which the handlers of the operations are called that this queue runs.
    ///
    /// The default is `nil`, which means ``OperationDefaults/callbackQueue``. A callback queue of the operation itself, of its
    /// base or of a group around it comes first: see ``TypedOperation/callbackQueue``.
    public var callbackQueue: DispatchQueue? {
        get { engine.callbackQueue }
        set { engine.callbackQueue = newValue }
    }

    /// Whether nothing begins until it is set to false again; what runs goes on.
    ///
    /// It is true, too, while somebody else holds the queue, such as one that waits for the network; to set it is only about
    /// your own wish. So do not set it to what it was: ``isSuspendedByUser`` says what you set.
    ///
    /// Operations of this package that are cancelled meanwhile end all the same; those of other kinds end when the queue
    /// goes on.
    public var isSuspended: Bool {
        get { engine.state.withLock { $0.machine.isSuspended } }
        set { engine.setSuspended(newValue, because: nil) }
    }

    /// Whether you suspended the queue, by ``isSuspended`` or ``suspend(because:)``, whoever else holds it.
    public var isSuspendedByUser: Bool { engine.state.withLock { $0.suspension.isAskedFor } }

    /// Suspends the queue, and notes why or by whom, for ``explain(_:)`` to say.
    ///
    /// `isSuspended = false` lets it go on.
    public func suspend(because reason: String) { engine.setSuspended(true, because: reason) }

    /// How many entries there may be that have not ended; nil, as from the start, for any number.
    ///
    /// A queue that has as many refuses more; `addWhenThereIsRoom` waits. Below one, it is one.
    public var capacity: Int? {
        get { engine.state.withLock { $0.capacity == .max ? nil : $0.capacity } }
        set { engine.applySettled { state, _ in state.capacity = newValue.map { max($0, 1) } ?? .max } }
    }

    /// After how many starts of more urgent entries one that is less urgent has its turn; nil for never.
    ///
    /// So that none waits for ever, however many urgent ones come. From the start it is 32.
    public var ageing: Int? {
        get { engine.state.withLock { $0.machine.ageing } }
        set { engine.applySettled { state, _ in state.machine.ageing = newValue.map { max($0, 1) } } }
    }

    /// Cancels all that has not ended; closures that have not begun are dropped.
    public func cancelAll() { cancelAll(because: .requested) }

    /// Cancels all that has not ended, and says why; closures that have not begun are dropped.
    ///
    /// If you call this method on a serial callback queue, no success or failure handler of the operations that were added
    /// before begins on that queue after the method has returned. This also holds for operations that have already ended.
    public func cancelAll(because cause: CancellationCause) { engine.cancelAll(because: cause, silences: true) }

    /// Blocks the calling thread until nothing is left in the queue.
    ///
    /// - Throws: If it is called by a body that the queue runs, which would wait for itself.
    @available(*, noasync, message: "Await drained() instead: this blocks the thread.")
    public func waitUntilAllFinished() throws(QueueError) {
        if engine.isRunningOnThisThread {
            throw QueueError(
                .waitsForItself, queue: name,
                "A body that queue \(name) runs cannot wait for the queue to run empty: it would wait for itself. Wait for "
                    + "the operations that you mean.")
        }
        let waiter = BlockingWaiter()
        engine.whenDrained(QueueWait { waiter.wake() })
        if !waiter.wait() { waiter.waitInPlace() }
    }

    /// Goes on when nothing is left in the queue, or when the task that awaits is cancelled.
    ///
    /// Not for operations of the queue itself: one that awaits this never ends, and so nor does the wait.
    public func drained() async {
        await QueueWait.run { wait in engine.whenDrained(wait) }
    }

    /// Takes nothing more, waits for what there is, and cancels after a while what has not ended by then.
    ///
    /// A task that is cancelled gives the same grace: to be shut down gracefully is what such a task is there for, as a rule.
    /// With a grace of zero nothing is waited for.
    ///
    /// - Parameters:
    ///   - grace: How long to wait.
    ///   - clock: The clock on which that is counted.
    /// - Returns: The operations that were cancelled because they had not ended in time, those of other kinds included.
    @discardableResult
    public func shutDown(grace: Duration, clock: any OperationClock = .system) async -> [Operation] {
        engine.apply { state, _ in
            guard !state.isClosed else { return }
            state.isClosed = true
            state.machine.journal?.note(.closing)
        }
        var timer: (any OperationTimer)?
        await QueueWait.runWhateverBecomesOfTheTask { wait in
            engine.whenDrained(wait)
            timer = clock.schedule(after: max(grace, .zero)) { wait.end() }
        }
        timer?.cancel()
        // Another thread may be about to add what was accepted before the queue was shut down.
        await withCheckedContinuation { continuation in engine.whenAllAccepted { continuation.resume() } }
        let abandoned = engine.operations
        // The handlers of what ended in time still come.
        engine.cancelAll(because: .shutDown(name))
        // A suspended queue would hold operations of other kinds for ever.
        engine.endSuspension()
        // One may have ended well just before it was to be cancelled.
        return abandoned.filter(\.isCancelled)
    }
}

extension QueueEngine {
    /// Whether the calling thread runs a body of this queue.
    var isRunningOnThisThread: Bool {
        var seat = ThreadNotes.current.seat
        while let present = seat {
            if present.engine === self, present.slot >= 0 { return true }
            seat = present.outer
        }
        return false
    }

    /// The operations that have not ended, in no order.
    package var operations: [Operation] {
        applySettled { state, _ in
            state.machine.entries.compactMap { entry in
                switch entry.work {
                case .operation(let operation): operation
                case .foreign(let entry): entry.operation
                case .closure, .none: nil
                }
            }
        }
    }

    /// How many tickets the lines hold, those included that are stale.
    package var ticketCount: Int { state.withLock { $0.machine.ticketCount } }

    /// How many slots there are for entries, those included that are free; for tests.
    package var slotCount: Int { state.withLock { $0.machine.entries.count } }

    /// Whether something could begin, and no thread was asked for that may still be had; for tests.
    package var isUnderused: Bool {
        state.withLock { $0.machine.couldStart && $0.returning.isEmpty && !$0.crew.isFull }
    }

    /// Cancels all that has not ended.
    ///
    /// - Parameter silences: Whether the handlers of operations that have their outcome do not begin any more.
    func cancelAll(because cause: CancellationCause, silences: Bool = false) {
        var operations: [ManagedOperation] = []
        var foreigns: [ForeignEntry] = []
        applySettled { state, after in
            state.machine.holds += 1
            // Under the lock: what is not among those below has left the queue, and its handler was enqueued before.
            if silences { cancellations.set() }
            operations.reserveCapacity(state.machine.live)
            // By their places: a copy of the table would hold on to all that it holds. Those that end here may make the
            // table shorter.
            var index = 0
            while index < state.machine.entries.count {
                defer { index += 1 }
                switch state.machine.entries[index].work {
                case .operation(let operation): operations.append(operation)
                case .foreign(let foreign): foreigns.append(foreign)
                case .closure where state.machine.entries[index].stage == .ready:
                    end(QueueMachine.Slot(index), .cancelled, &state, &after)
                case .closure, .none: break
                }
            }
        }
        for operation in operations {
            if silences {
                operation.cancelWithoutNotice(because: cause)
            } else {
                operation.cancelIfUndecided(because: cause)
            }
        }
        for foreign in foreigns {
            foreign.operation.cancel()
            // On Linux nobody else would tell.
            foreign.reconsider()
        }
        release()
    }

    /// Nothing begins until it is released: somebody cancels several, and none of them is to begin because another was.
    func hold() { applySettled { state, _ in state.machine.holds += 1 } }

    /// Goes on, unless somebody else holds it.
    func release() { apply { state, _ in state.machine.holds -= 1 } }

    /// Ends the wait when nothing is left, at once if nothing is.
    package func whenDrained(_ wait: QueueWait) {
        apply { state, _ in state.drainers.append(wait) }
    }

    /// How many wait for the end, given up waits included that are still held; for tests.
    package var drainerCount: Int { state.withLock { $0.drainers.count } }

    /// Calls `tell` once when nobody is about to add what the queue has accepted, at once if nobody is.
    func whenAllAccepted(_ tell: @escaping @Sendable () -> Void) {
        apply { state, _ in state.acceptanceWaiters.append(tell) }
    }
}
