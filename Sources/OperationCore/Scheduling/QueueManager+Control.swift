// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// Controlling the queue.
extension QueueManager {
    /// The maximum number of operations and closures that the queue runs at the same time, or `nil` for no maximum.
    ///
    /// You may change the width at any time. If you reduce the width below the number of running operations, no
    /// operation begins until enough operations have ended. A value below one is treated as one.
    public var width: Int? {
        get { engine.state.withLock { $0.machine.width == .max ? nil : $0.machine.width } }
        set {
            let width = newValue.map { max($0, 1) }
            engine.applyAfterReclaiming { state, _ in
                state.machine.width = width ?? .max
                state.threads.setWidth(width)
                state.machine.journal?.record(.width(width))
            }
        }
    }

    /// The dispatch queue on which the operations in this queue call their handlers.
    ///
    /// The default is `nil`, which uses ``OperationDefaults/callbackQueue``. A callback queue that is set on the
    /// operation, on its `NetworkBase` or on a group that contains the operation takes precedence. See
    /// ``TypedOperation/callbackQueue``.
    public var callbackQueue: DispatchQueue? {
        get { engine.callbackQueue }
        set { engine.callbackQueue = newValue }
    }

    /// A Boolean value that indicates whether the queue is suspended.
    ///
    /// While the queue is suspended, no operation or closure begins. Running operations and closures continue.
    ///
    /// The value is also `true` while another object suspends the queue, such as an object that waits for the network.
    /// If you set the property to `false`, the queue stays suspended until the other object also resumes it. Therefore,
    /// do not save the value and restore it later.
    ///
    /// If you cancel an operation from this package while the queue is suspended, the operation still ends. A canceled
    /// plain `Foundation.Operation` ends only when the queue resumes.
    public var isSuspended: Bool {
        get { engine.state.withLock { $0.machine.isSuspended } }
        set { engine.setSuspended(newValue, because: nil) }
    }

    /// A Boolean value that indicates whether you suspended the queue with ``isSuspended`` or ``suspend(because:)``.
    ///
    /// Other objects that suspend the queue do not affect this value.
    package var isSuspendedByUser: Bool { engine.state.withLock { $0.suspension.isAskedFor } }

    /// Suspends the queue for a reason, which ``explain(_:)`` includes in the explanation.
    ///
    /// To resume the queue, set ``isSuspended`` to `false`.
    ///
    /// - Parameter reason: The reason for the suspension, or the name of the part of the program that suspends the
    ///   queue.
    public func suspend(because reason: String) { engine.setSuspended(true, because: reason) }

    /// The maximum number of operations and closures in the queue that have not ended.
    ///
    /// The default is `nil`, which sets no maximum. If the queue is full, `add` throws an error with the code `full`,
    /// and `addWhenThereIsRoom` waits. A value below one is treated as one.
    public var capacity: Int? {
        get { engine.state.withLock { $0.capacity == .max ? nil : $0.capacity } }
        set { engine.applyAfterReclaiming { state, _ in state.capacity = newValue.map { max($0, 1) } ?? .max } }
    }

    /// The maximum number of more urgent operations and closures that begin while a less urgent one waits for a slot.
    ///
    /// This limit ensures that less urgent operations do not wait forever if many urgent operations are added. If
    /// operations with more than two priorities wait, a few more urgent ones can begin. The default is 32. Set the value
    /// to `nil` to disable the limit. A value below one is treated as one.
    public var ageing: Int? {
        get { engine.state.withLock { $0.machine.lines.ageing } }
        set {
            let ageing = newValue.map { max($0, 1) }
            engine.applyAfterReclaiming { state, _ in state.machine.lines.ageing = ageing }
        }
    }

    /// Cancels all unfinished operations in the queue and drops all closures that have not begun.
    ///
    /// If code on a serial callback queue calls this method, no success or failure handler of the queue's operations
    /// begins on that callback queue after the method has returned. This rule applies to all operations that were added
    /// before the call, including operations that have already ended.
    ///
    /// - Parameter cause: The reason for the cancellation. The default has the code `requested`.
    public func cancelAll(because cause: CancellationCause = .requested) {
        engine.cancelAll(because: cause, silences: true)
    }

    /// Blocks the calling thread until all operations and closures in the queue have ended.
    ///
    /// - Throws: An ``OperationSetupError`` if the caller is a body that the queue runs. The wait would never end,
    ///   because the body would wait for itself.
    @available(*, noasync, message: "This method blocks the thread. Await drained() instead.")
    public func waitUntilAllFinished() throws(OperationSetupError) {
        if engine.isRunningCaller { throw .waitsForQueue(name) }
        let waiter = BlockingWaiter()
        engine.whenDrained(QueueWait { waiter.wake() })
        if !waiter.wait() { waiter.waitInPlace() }
    }

    /// Waits until all operations and closures in the queue have ended, or until the waiting task is canceled.
    ///
    /// Do not await this method in an operation that the queue runs. The operation would wait for itself until you
    /// cancel the operation. If an operation in the queue awaits this method, OperationKit reports a notice of the kind
    /// `waitsForItself`.
    public func drained() async {
        if engine.isRunningCaller {
            OperationDiagnostics.report(.waitsForItself, by: name, OperationSetupError.waitsForQueue(name).message)
        }
        await QueueWait.run { wait in engine.whenDrained(wait) }
    }

    /// Closes the queue, waits for its operations, and cancels the operations that have not ended after a grace period.
    ///
    /// A closed queue accepts no more operations or closures.
    ///
    /// A graceful shutdown usually runs in a canceled task. Therefore, if the calling task is canceled, the method
    /// still waits until all operations have ended or the grace period is over. With a grace period of zero, the method
    /// does not wait.
    ///
    /// - Parameters:
    ///   - grace: The duration for which running and waiting operations may continue before they are canceled.
    ///   - clock: The clock that measures the grace period. The default is the system clock.
    /// - Returns: The operations that were canceled because they had not ended within the grace period, including plain
    ///   `Foundation.Operation` objects.
    @discardableResult
    public func shutDown(grace: Duration, clock: any OperationClock = .system) async -> [Operation] {
        engine.apply { state, _ in
            guard !state.isClosed else { return }
            state.isClosed = true
            state.machine.journal?.record(.closing)
        }
        var timer: (any OperationTimer)?
        // The wait has no task to watch, so it does not end if the task is canceled.
        await withCheckedContinuation { continuation in
            let wait = QueueWait { continuation.resume() }
            engine.whenDrained(wait)
            // A clock of a test may call even this closure only when the test advances the clock.
            if grace > .zero { timer = clock.schedule(after: grace) { wait.end() } } else { wait.end() }
        }
        timer?.cancel()
        // Another thread may be about to add operations that the queue accepted before it was shut down.
        await withCheckedContinuation { continuation in
            engine.apply { state, _ in
                state.isGraceOver = true
                state.acceptanceWaiters.append { continuation.resume() }
            }
        }
        let abandoned = engine.operations
        // The handlers of operations that ended in time are still called.
        engine.cancelAll(because: .shutDown(name))
        // A suspended queue would hold operations of other kinds forever.
        engine.endSuspension()
        // An operation may have ended successfully just before its cancellation.
        return abandoned.filter(\.isCancelled)
    }
}

extension QueueEngine {
    /// A Boolean value that indicates whether the caller is a body that this queue runs, on a thread or in a task.
    var isRunningCaller: Bool {
        var worker = WorkerContext.of(.current)
        while let present = worker {
            if present.engine === self, present.key != nil { return true }
            worker = present.outer
        }
        return BodyWait.callers.contains { isRunning($0.operation) }
    }

    /// Whether the queue runs an operation that has begun, or an operation around it.
    func isRunning(_ operation: ManagedOperation) -> Bool { runner(of: operation) != nil }

    /// Returns the operation that the queue runs, which is an operation that has begun or one around it, such as its
    /// group, the holder of its slot, or an operation that shares it.
    func runner(of operation: ManagedOperation) -> ManagedOperation? {
        operation.slot(in: self) != nil ? operation : runners(around: operation.operationsAround, atMost: 1).first
    }

    /// Returns the operations that the queue runs among operations that have begun and those around them.
    func runners(around operations: [ManagedOperation], atMost most: Int = .max) -> [ManagedOperation] {
        var (found, next) = ([ManagedOperation](), operations)
        var seen: Set<ObjectIdentifier> = []
        while found.count < most, let operation = next.popLast() {
            guard seen.insert(ObjectIdentifier(operation)).inserted else { continue }
            if operation.slot(in: self) != nil { found.append(operation) }
            next += operation.operationsAround
        }
        return found
    }

    /// The operations that have not ended, in no particular order.
    package var operations: [Operation] {
        applyAfterReclaiming { state, _ in
            state.machine.entries.compactMap { entry in
                switch entry.work {
                case .operation(let operation): operation
                case .plain(let entry): entry.operation
                case .closure, .none: nil
                }
            }
        }
    }

    /// The number of tickets in the lines, including stale tickets.
    package var ticketCount: Int { state.withLock { $0.machine.ticketCount } }

    /// The number of slots for entries, including free slots, for tests.
    package var slotCount: Int { state.withLock { $0.machine.entries.count } }

    /// Whether an entry could begin and another thread was available but not requested, for tests.
    package var isUnderused: Bool {
        state.withLock { $0.machine.couldStart && $0.returning.isEmpty && !$0.threads.isFull }
    }

    /// Cancels all operations that have not ended.
    ///
    /// - Parameter silences: Whether to prevent handlers from beginning if their operations already have an outcome.
    func cancelAll(because cause: CancellationCause, silences: Bool = false) {
        var operations: [ManagedOperation] = []
        var plainEntries: [PlainOperationEntry] = []
        applyAfterReclaiming { state, after in
            state.machine.holds += 1
            // This call is under the lock. An operation that is not collected below has left the queue, and its handler
            // was enqueued before.
            if silences { cancellations.set() }
            operations.reserveCapacity(state.machine.live)
            // This loop uses slots, because a copy of the table would hold all of its contents. Entries that end here
            // may make the table shorter.
            var index = 0
            while index < state.machine.entries.count {
                defer { index += 1 }
                switch state.machine.entries[index].work {
                case .operation(let operation): operations.append(operation)
                case .plain(let plain): plainEntries.append(plain)
                case .closure where state.machine.entries[index].stage == .ready:
                    end(QueueMachine.Slot(index), .cancelled, &state, &after)
                case .closure, .none: break
                }
            }
        }
        for operation in operations {
            if silences {
                operation.cancelAndSilence(because: cause)
            } else {
                operation.cancelIfUndecided(because: cause)
            }
        }
        for plain in plainEntries {
            plain.operation.cancel()
            // On Linux, Foundation does not report the cancellation.
            plain.reconsider()
        }
        release()
    }

    /// Ends the wait when the queue is empty, or immediately if the queue is already empty.
    package func whenDrained(_ wait: QueueWait) {
        apply { state, _ in state.drainWaiters.append(wait) }
    }

    /// The number of waits for an empty queue, including abandoned waits that are still stored, for tests.
    package var drainWaiterCount: Int { state.withLock { $0.drainWaiters.count } }
}

// Canceling the operations of an owner.
extension QueueManager {
    /// Cancels the operations in this queue that belong to an object.
    ///
    /// - Parameters:
    ///   - object: The owner, which is compared by identity.
    ///   - cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///     `ownerCancelled`.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
    @discardableResult
    public func cancelOperations(ownedBy object: AnyObject, because cause: CancellationCause? = nil) -> Int {
        engine.cancel(OwnedOperations(of: object), because: cause)
    }

    /// Cancels the operations in this queue that belong to an owner.
    ///
    /// - Parameters:
    ///   - owner: The owner, for example a string literal, `.named(_:)` or the `owner` of an operation.
    ///   - cause: The cause of the cancellations. The default is `nil`, which uses a cause with the code
    ///     `ownerCancelled`, or `ownerGone` if the owner is an object that was freed.
    /// - Returns: The number of operations that were canceled, excluding operations that already had an outcome.
    @discardableResult
    public func cancelOperations(ownedBy owner: OperationOwner, because cause: CancellationCause? = nil) -> Int {
        engine.cancel(OwnedOperations(of: owner), because: cause)
    }
}

extension QueueEngine {
    /// Cancels the given operations that are in this queue, and returns how many had no outcome.
    func cancel(_ owned: OwnedOperations, because cause: CancellationCause?) -> Int {
        // Only plain operations must be searched for among all operations of the queue, which is done at most once.
        var others: Set<ObjectIdentifier>?
        return owned.cancel(because: cause) { operation in
            if let own = operation as? ManagedOperation { return own.core.withLock { $0.host } === self }
            let known = others ?? Set(operations.map { ObjectIdentifier($0) })
            others = known
            return known.contains(ObjectIdentifier(operation))
        }
    }
}

/// A reason for which a queue is suspended, independently of other reasons and of the user.
package final class QueueHold: Sendable {
    private let engine: QueueEngine
    private let reason: String
    /// Whether the hold is active, or has ended for good.
    ///
    /// The lock of the engine is not taken while this lock is held.
    private let phase = Locked(Phase.off)

    private enum Phase { case off, on, ended }

    /// Creates a hold that is not active yet.
    package init(_ queue: QueueManager, because reason: String) {
        engine = queue.engine
        self.reason = reason
    }

    deinit { end() }

    /// Suspends the queue for this reason, or removes this reason.
    package func set(_ isHeld: Bool) {
        let hasChanged = phase.withLock { phase in
            guard phase != .ended, (phase == .on) != isHeld else { return false }
            phase = isHeld ? .on : .off
            return true
        }
        if hasChanged { activate() }
    }

    /// Removes this reason permanently.
    package func end() {
        phase.withLock { $0 = .ended }
        activate()
    }

    private func activate() {
        applyLatest({ phase.withLock { $0 } }) { phase in
            engine.changeSuspension { phase == .on ? $0.hold(self, because: reason) : $0.endHold(self) }
        }
    }
}

extension QueueEngine {
    func setSuspended(_ isSuspended: Bool, because reason: String?) {
        changeSuspension { $0.set(isSuspended, because: reason) }
    }

    /// Ends the suspension of the queue for all reasons.
    func endSuspension() { changeSuspension { $0.endAll() } }

    fileprivate func changeSuspension(_ change: (inout QueueSuspension) -> Void) {
        applyAfterReclaiming { state, _ in
            change(&state.suspension)
            let isSuspended = state.suspension.isSuspended
            guard state.machine.isSuspended != isSuspended else { return }
            state.machine.isSuspended = isSuspended
            state.machine.journal?.record(.suspension(isSuspended))
        }
    }
}

/// The reasons for the suspension of a queue, which come from the user or from other parts of the program.
struct QueueSuspension: Sendable {
    /// A Boolean value that indicates whether the user suspended the queue.
    private(set) var isAskedFor = false
    /// The reason that the user gave, or the name of the part of the program that suspended the queue.
    private var reason: String?
    private var holds: [ObjectIdentifier: String] = [:]
    /// A Boolean value that indicates whether only the user can still suspend the queue.
    private var isOver = false

    var isSuspended: Bool { isAskedFor || !holds.isEmpty }

    /// All reasons for the suspension.
    var reasons: String? {
        let parts = (reason.map { [$0] } ?? []) + Set(holds.values).sorted()
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    mutating func set(_ isAskedFor: Bool, because reason: String?) {
        self.isAskedFor = isAskedFor
        self.reason = isAskedFor ? reason : nil
    }

    mutating func hold(_ hold: QueueHold, because reason: String) {
        if !isOver { holds[ObjectIdentifier(hold)] = reason }
    }

    mutating func endHold(_ hold: QueueHold) { holds[ObjectIdentifier(hold)] = nil }

    /// Ends the suspension for all reasons, because the queue was shut down and its remaining operations must be able
    /// to end.
    mutating func endAll() {
        self = QueueSuspension()
        isOver = true
    }
}
