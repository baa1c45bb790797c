// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A clock that stands still until a test moves it.
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
/// Actions that are due are called on the thread that moves the clock, one after another in the order of their moments,
/// and with ``now`` at just that moment.
public final class ManualClock: OperationClock {
    private struct State {
        var now: OperationInstant
        var heap = TimerHeap<@Sendable () -> Void>()
        var awaited: [Waiter] = []
    }

    private let state: Locked<State>

    /// Makes a clock that shows `start`.
    public init(start: OperationInstant = OperationInstant(offset: .zero)) {
        state = Locked(State(now: start))
    }

    /// The moment which the clock shows.
    public var now: OperationInstant { state.withLock { $0.now } }

    /// How many actions wait: none, where no timer was left behind.
    public var pendingCount: Int { state.withLock { $0.heap.count } }

    /// When the next action is due.
    public var nextDue: OperationInstant? { state.withLock { $0.heap.nextDue } }

    /// Moves the clock, and calls what falls due on the way, what that schedules included.
    public func advance(by duration: Duration) {
        advance(to: now.advanced(by: duration))
    }

    /// Moves the clock to a moment, and calls what falls due on the way; never moves it back.
    public func advance(to goal: OperationInstant) {
        while let action = nextAction(until: goal) { action() }
        state.withLock { $0.now = max($0.now, goal) }
    }

    /// Moves the clock to the next moment at which something is due; returns false if there is none.
    @discardableResult
    public func advanceToNext() -> Bool {
        guard let nextDue else { return false }
        advance(to: nextDue)
        return true
    }

    /// Waits with `action` until the clock is moved to `instant`; calls it at the next move if that has passed.
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

    /// Waits until at least so many actions wait for their moment: until the code under test has come to its pause.
    ///
    /// Where its task is cancelled, as by the time limit of a test, it returns.
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
    /// A timeout or a deadline is an action, too, from the start of its operation on.
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

    /// How many wait for actions.
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
            // What the action holds goes here, after the lock was given back.
            _ = clock.state.withLock { $0.heap.remove(id) }
        }
    }
}
