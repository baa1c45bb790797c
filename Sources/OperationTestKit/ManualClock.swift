// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A clock that advances only when a test advances it.
///
/// ```swift
/// let clock = ManualClock()
/// let operation = TaskOperation { try await Task.sleep(for: .seconds(3600)) }
/// operation.clock = clock
/// operation.timeout = .seconds(30)
/// operation.start()
/// clock.advance(by: .seconds(30))
/// print(operation.state)  // cancelled
/// ```
///
/// The clock calls the due actions on the thread that advances the clock, one after another in the order of their
/// times. During a call, ``now`` is the time at which the action was due.
public final class ManualClock: OperationClock {
    private struct State {
        var now: OperationInstant
        var heap = TimerHeap<@Sendable () -> Void>()
        var awaited: [Waiter] = []
    }

    private let state: Locked<State>

    /// Creates a clock with a start time.
    public init(start: OperationInstant = OperationInstant(offset: .zero)) {
        state = Locked(State(now: start))
    }

    /// The current time of the clock.
    public var now: OperationInstant { state.withLock { $0.now } }

    /// The number of pending actions, which is 0 if no timer is left.
    public var pendingCount: Int { state.withLock { $0.heap.count } }

    /// The time at which the next action is due, or `nil` if there is none.
    public var nextDue: OperationInstant? { state.withLock { $0.heap.nextDue } }

    /// Advances the clock by a duration, and calls the actions that become due, including actions that are scheduled
    /// during the calls.
    public func advance(by duration: Duration) {
        advance(to: now.advanced(by: duration))
    }

    /// Advances the clock to a time, and calls the actions that become due.
    ///
    /// If the time has already passed, the clock does not change.
    public func advance(to goal: OperationInstant) {
        while let action = nextAction(until: goal) { action() }
        state.withLock { $0.now = max($0.now, goal) }
    }

    /// Advances the clock to the next time at which an action is due.
    ///
    /// - Returns: A Boolean value that indicates whether there was an action.
    @discardableResult
    public func advanceToNext() -> Bool {
        guard let nextDue else { return false }
        advance(to: nextDue)
        return true
    }

    /// Schedules an action for a time.
    ///
    /// If the time has already passed, the clock calls the action when it is next advanced.
    public func schedule(
        at instant: OperationInstant, _ action: @escaping @Sendable () -> Void
    ) -> any OperationTimer {
        let (id, passing) = state.withLock { state in
            let id = state.heap.insert(action, due: instant)
            return (id, state.awaited.takeAll(at: state.heap.count))
        }
        for waiter in passing { waiter.pass() }
        return Timer(clock: self, id: id)
    }

    /// Waits until at least a number of actions are pending, so that the code under test has reached its pause.
    ///
    /// If the task is canceled, for example by the time limit of a test, the method returns.
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func letItTryAgain(_ operation: NetworkDataOperation<Int>, by clock: ManualClock) async {
    ///     operation.start()
    ///     await clock.pending(atLeast: 1)
    ///     clock.advanceToNext()
    /// }
    /// ```
    ///
    /// The timeout and the deadline of an operation are also actions, which are pending from its start.
    public func pending(atLeast count: Int) async {
        let waiter = Waiter(until: count)
        let isNow = state.withLock { state in
            if state.heap.count >= count { return true }
            state.awaited.append(waiter)
            return false
        }
        guard !isNow else { return }
        await waiter.passage()
        state.withLock { state in state.awaited.removeAll { $0 === waiter } }
    }

    /// The number of tasks that wait for actions.
    package var waitingCount: Int { state.withLock { $0.awaited.count } }

    private func nextAction(until goal: OperationInstant) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard let due = state.heap.nextDue, due <= goal else { return nil }
            state.now = max(state.now, due)
            return state.heap.popDue(at: state.now)
        }
    }

    private struct Timer: OperationTimer {
        let clock: ManualClock
        let id: UInt64

        func cancel() {
            // The contents of the action are released here, after the lock.
            _ = clock.state.withLock { $0.heap.remove(id) }
        }
    }
}
