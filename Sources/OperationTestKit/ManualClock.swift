// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A clock whose time changes only when a test advances the clock.
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
/// When a test advances the clock, the clock calls the scheduled closures that become due. The clock calls these
/// closures on the thread that advances the clock, in the order in which the closures are due.
public final class ManualClock: OperationClock {
    private struct State {
        var now: OperationInstant
        var heap = TimerHeap<@Sendable () -> Void>()
        var awaited: [Waiter] = []
    }

    private let state: Locked<State>

    /// Creates a clock that starts at a given time.
    ///
    /// - Parameter start: The initial time of the clock. The default is the instant with the offset zero.
    public init(start: OperationInstant = OperationInstant(offset: .zero)) {
        state = Locked(State(now: start))
    }

    /// The current time of the clock.
    public var now: OperationInstant { state.withLock { $0.now } }

    /// The number of scheduled actions that have been neither called nor canceled.
    public var pendingCount: Int { state.withLock { $0.heap.count } }

    /// The time at which the next action is due, or `nil` if no action is pending.
    package var nextDue: OperationInstant? { state.withLock { $0.heap.nextDue } }

    /// Advances the clock by a duration and calls all actions that become due.
    ///
    /// If an action schedules another action that becomes due during the call, the method also calls that action.
    ///
    /// - Parameter duration: The duration to add to the current time. A negative duration does not change the time.
    public func advance(by duration: Duration) {
        advance(to: now.advanced(by: duration))
    }

    /// Advances the clock to a time and calls all actions that become due.
    ///
    /// If the time is in the past, the clock keeps its current time.
    package func advance(to goal: OperationInstant) {
        while let action = nextAction(until: goal) { action() }
        state.withLock { $0.now = max($0.now, goal) }
    }

    /// Advances the clock to the time of the next pending action and calls the actions that are due at this time.
    ///
    /// - Returns: A Boolean value that indicates whether an action was pending.
    @discardableResult
    public func advanceToNext() -> Bool {
        guard let nextDue else { return false }
        advance(to: nextDue)
        return true
    }

    /// Schedules an action that the clock calls when the current time reaches the given instant.
    ///
    /// If the instant is in the past, the clock calls the action when a test next advances the clock.
    ///
    /// - Parameters:
    ///   - instant: The time at which the action is due.
    ///   - action: A closure that the clock calls on the thread that advances the clock.
    /// - Returns: A timer that you can use to cancel the action.
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

    /// Waits until at least `count` actions are pending.
    ///
    /// Use this method to wait until the code under test has scheduled an action. If the current task is canceled, for
    /// example by a time limit of the test, the method returns immediately.
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func letItTryAgain(
    ///     _ operation: NetworkDataOperation<Int>, by clock: ManualClock
    /// ) async {
    ///     operation.start()
    ///     await clock.pending(atLeast: 1)
    ///     clock.advanceToNext()
    /// }
    /// ```
    ///
    /// The timers for the timeout and the deadline of an operation also count as pending actions.
    ///
    /// - Parameter count: The number of pending actions to wait for.
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
