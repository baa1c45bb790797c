// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// The operations that wait at a gate, as a value that receives the time and random numbers.
///
/// A gate is closed or open. Its owner decides when to close and open it. The owner also decides when an operation must
/// enter, and what an operation does after its wait.
///
/// ```text
///           open, and operations wait
/// closed ────────────────────────────────▶ open, settling ──▶ open, releasing ──▶ open, empty
///   ▲ ▲                                         │                   │  ▲ │            │
///   │ └─────────────────────────────────────────┴───────────────────┘  └─┘ interval   │
///   └─────────────────────────── close ───────────────────────────────────────────────┘
/// ```
///
/// - **One end.** Each wait ends once. The gate releases the operation, the wait reaches its limit, or the owner
///   removes the operation. A ticket has no effect after the end of its wait, because no two waits have the same ticket.
/// - **Order.** The gate releases operations in the order in which they entered. An operation that enters while others
///   are being released waits behind them.
/// - **Pace.** When the gate has been open for the settling time, it releases a batch of operations, and another batch
///   after each interval. A late timer does not make the next batch follow earlier.
/// - **Closing.** A closed gate releases no operation. If the gate closes during the settling time or between two
///   batches, the remaining operations keep their positions, and the settling time begins again when the gate opens.
/// - **Opening on time.** A gate that was closed until a time opens at this time. A later call to close the gate
///   replaces this time, even if the gate was already releasing operations.
/// - **Limit.** Only the time while the gate is closed counts toward the limit of a wait. The settling time and the wait
///   for other operations do not count.
/// - **An open gate.** An operation can enter an open gate, because the gate may have opened since the owner looked. The
///   operation is then released after the settling time.
/// - **Time.** The owner calls ``timePassed(now:chance:)`` at ``nextDue``. A call that is too early has no effect. Two
///   threads may pass their times in the wrong order.
package struct GateMachine<Waiter> {
    package typealias Ended = (waiter: Waiter, end: GateEnd, timeClosed: Duration)

    private struct Wait {
        let waiter: Waiter
        /// The total time for which the gate had been closed when the operation entered.
        let since: OperationInstant
        /// The identifier of the limit in the heap, or `nil` if the wait has no limit.
        var limit: UInt64?
    }

    private let pace: PostponementPace
    private let capacity: Int
    private var waits = ForgettingList<Wait>()
    /// The tickets of the waits with limits, ordered by the time for which the gate is closed.
    private var limits: TimerHeap<UInt64>?
    /// The total time for which the gate was closed, before it was closed last.
    private var closedBefore = OperationInstant(offset: .zero)
    /// The time at which the gate was closed, or `nil` while it is open.
    private var closedSince: OperationInstant?
    /// The time at which the closed gate opens, or at which the open gate releases operations.
    private var next: OperationInstant?
    package private(set) var lastTicket: UInt64
    /// The number of times that the gate was closed.
    package private(set) var closings: Int

    /// Creates a gate, which is closed by default.
    ///
    /// - Parameters:
    ///   - pace: The pace at which the open gate releases operations.
    ///   - capacity: The maximum number of operations that can wait.
    ///   - lastTicket: The number before the first ticket.
    ///   - isClosed: Whether the gate is closed.
    ///   - now: The current time.
    package init(
        pace: PostponementPace, capacity: Int = .max, after lastTicket: UInt64 = 0, isClosed: Bool = true,
        now: OperationInstant
    ) {
        (self.pace, self.capacity, self.lastTicket) = (pace, capacity, lastTicket)
        (closedSince, closings) = isClosed ? (now, 1) : (nil, 0)
    }

    package var count: Int { waits.count }
    /// The waiting operations, in the order in which they entered.
    package var waiters: [Waiter] { waits.elements.map(\.waiter) }

    /// Returns the total time for which the gate was closed until now.
    package func timeClosed(at now: OperationInstant) -> OperationInstant {
        let end = next.map { min($0, now) } ?? now
        guard let closedSince, closedSince < end else { return closedBefore }
        return closedBefore.advanced(by: closedSince.duration(to: end))
    }

    /// The next time at which a wait may end, or `nil` if there is none.
    package var nextDue: OperationInstant? {
        guard !waits.isEmpty else { return nil }
        guard let closedSince, let limit = limits?.nextDue else { return next }
        let end = closedSince.advanced(by: closedBefore.duration(to: limit))
        return next.map { min($0, end) } ?? end
    }

    /// Adds an operation and returns its ticket, or returns `nil` if the capacity is exhausted.
    ///
    /// - Parameter limit: The maximum time to wait while the gate is closed, or `nil` for no limit.
    package mutating func enter(
        _ waiter: Waiter, atMost limit: Duration? = nil, now: OperationInstant, chance: Double = 0
    ) -> UInt64? {
        guard waits.count < capacity else { return nil }
        lastTicket += 1
        let since = timeClosed(at: now)
        if limit != nil, limits == nil { limits = TimerHeap() }
        let entry = limit.flatMap { limits?.insert(lastTicket, due: since.advanced(by: $0)) }
        waits.append(Wait(waiter: waiter, since: since, limit: entry), id: lastTicket)
        if closedSince == nil, next == nil { next = now.advanced(by: pace.delay(chance)) }
        return lastTicket
    }

    /// Removes and returns an operation, or returns `nil` if it does not wait.
    package mutating func leave(_ ticket: UInt64) -> Waiter? { ended(waits.remove(ticket)) }

    /// Removes and returns the first operation for which the closure returns `true`.
    package mutating func leave(where isWanted: (Waiter) -> Bool) -> Waiter? {
        ended(waits.removeFirst { isWanted($0.waiter) })
    }

    /// Removes and returns all operations, in the order in which they entered.
    package mutating func takeAll() -> [Waiter] { waits.takeAll().compactMap { ended($0) } }

    private mutating func ended(_ wait: Wait?) -> Waiter? {
        if let limit = wait?.limit { _ = limits?.remove(limit) }
        if waits.isEmpty, closedSince == nil { next = nil }
        return wait?.waiter
    }

    /// Closes the gate, or changes the time at which the closed gate opens.
    ///
    /// - Parameter end: The time at which the gate opens, or `nil` if it opens only when ``open(now:chance:)`` is
    ///   called.
    package mutating func close(until end: OperationInstant? = nil, now: OperationInstant) {
        next = end
        guard closedSince == nil else { return }
        closedSince = now
        closings += 1
    }

    /// Opens the gate.
    package mutating func open(now: OperationInstant, chance: Double = 0) {
        guard closedSince != nil else { return }
        closedBefore = timeClosed(at: now)
        closedSince = nil
        next = waits.isEmpty ? nil : now.advanced(by: pace.delay(chance))
    }

    /// Returns the waits that end now, in the order in which the operations entered, or in the order of their limits.
    package mutating func timePassed(now: OperationInstant, chance: Double = 0) -> [Ended] {
        if closedSince != nil, let end = next, end <= now { open(now: now, chance: chance) }
        let time = timeClosed(at: now)
        var ended: [Ended] = []
        if closedSince != nil {
            while let ticket = limits?.popDue(at: time), let wait = waits.remove(ticket) {
                ended.append((wait.waiter, .limitReached, wait.since.duration(to: time)))
            }
        } else if let due = next, due <= now {
            for wait in waits.take(pace.count) {
                if let limit = wait.limit { _ = limits?.remove(limit) }
                ended.append((wait.waiter, .released, wait.since.duration(to: time)))
            }
            next = waits.isEmpty ? nil : now.advanced(by: pace.step(chance))
        }
        return ended
    }
}

/// A reason for the end of a wait at a gate.
package enum GateEnd: Sendable, Equatable {
    /// The gate is open, and it is the operation's turn.
    case released
    /// The wait reached its limit.
    case limitReached
}

/// The pace at which operations resume after a pause.
package struct PostponementPace: Sendable, Hashable {
    /// The number of operations that resume together, which is at least 1.
    let count: Int
    /// The interval after which the next ``count`` operations resume.
    let interval: Duration
    /// The time for which a gate must be open before the first operations resume.
    let settling: Duration
    /// Whether the interval and the settling time vary, so that many devices do not send requests at the same moment.
    let isRandom: Bool

    package init(_ count: Int, every interval: Duration) {
        self.init(count, every: interval, settling: .zero, isRandom: false)
    }

    init(_ count: Int, every interval: Duration, settling: Duration, isRandom: Bool) {
        self.count = max(count, 1)
        self.interval = max(interval, .zero)
        (self.settling, self.isRandom) = (max(settling, .zero).clamped, isRandom)
    }

    /// Returns a random pace with an average number of operations per second, which is at least 0.001.
    ///
    /// Several operations resume together if the interval would otherwise be shorter than the resolution of timers.
    package static func perSecond(_ perSecond: Double, settling: Duration) -> PostponementPace {
        let rate = perSecond > 0.001 ? min(perSecond, 1e6) : 0.001
        let count = max(Int(rate / 100), 1)
        return PostponementPace(
            count, every: .nanoseconds(Int64(Double(count) / rate * 1e9)), settling: settling, isRandom: true)
    }

    /// A pace at which 50 operations resume immediately, and 50 more resume every 50 milliseconds.
    package static let standard = PostponementPace(50, every: .milliseconds(50))
    /// A pace at which all operations resume immediately.
    package static let atOnce = PostponementPace(.max, every: .zero)

    /// Returns the time between two batches, which the random number (0 to 1) shortens or extends by up to a half.
    func step(_ chance: Double) -> Duration { isRandom ? interval * (0.5 + chance.asChance) : interval }

    /// Returns the time between the opening of the gate and the first batch, which is at most twice the settling time.
    func delay(_ chance: Double) -> Duration { isRandom ? settling * (1 + chance.asChance) : settling }
}

extension Double {
    /// The random number of a user's closure, limited to the range from 0 to 1.
    package var asChance: Double { self >= 0 ? min(self, 1) : 0 }
}

/// A state with gates, one timer for its next due time, and the calls that follow from its events.
///
/// - **Timer.** The clock may be user code, so a thread schedules the timer without the lock. The timer may fire before
///   the thread has stored it, or another thread may change the due time in the meantime. A number identifies the timer
///   that is in use. The shell ignores every other timer and cancels it. The shell moves a timer only to an earlier
///   time, because a timer that is too early finds nothing to do.
/// - **Order.** One thread at a time makes the calls, in the order of the events, without the lock. An event within a
///   call adds its own calls at the end. Other operations wait for this thread, so a call must run no code of the user,
///   with one exception. The calls of a ``NetworkHold`` suspend and resume its queue, which may evaluate the conditions
///   of operations. Only this queue waits for them.
/// - **The clock.** The clock and the source of random numbers may be user code. A thread calls them for its own event,
///   but a thread that is about to make the calls sets the timer first. A slow clock therefore delays the calls.
package final class GateShell<State>: Sendable {
    package typealias Call = @Sendable () -> Void

    private struct Content {
        var state: State
        var calls = DeliveryQueue<Call>()
        var timer: (any OperationTimer)?
        /// The time for which the timer is set, or `nil` if there is no timer.
        var armedFor: OperationInstant?
        /// The number of times that the timer was set or canceled.
        var armings = 0

        /// Returns whether the timer must change to a due time, and the old timer, which the caller must cancel.
        mutating func rearm(_ due: OperationInstant?) -> (mustChange: Bool, old: (any OperationTimer)?, number: Int) {
            if due == armedFor { return (false, nil, 0) }
            if let due, let armedFor, armedFor < due { return (false, nil, 0) }
            armedFor = due
            armings += 1
            return (true, timer.take(), armings)
        }
    }

    private let content: Locked<Content>
    private let clock: any OperationClock
    private let chance: @Sendable () -> Double
    private let queue: DispatchQueue?
    private let nextDue: @Sendable (State) -> OperationInstant?
    private let timePassed: @Sendable (inout State, OperationInstant, Double) -> [Call]

    /// Creates a shell.
    ///
    /// - Parameters:
    ///   - state: The initial state.
    ///   - clock: The clock of the timer and the events.
    ///   - chance: A closure that returns a random number from 0 to 1. The shell calls this closure before each event,
    ///     even if the event needs no random number, because user code must not run under the lock.
    ///   - queue: The queue for the calls, or `nil` to make them on the thread of the event.
    ///   - nextDue: A closure that returns the next due time of the state.
    ///   - timePassed: A closure that is called at each due time, with the time and a random number.
    package init(
        _ state: State, clock: any OperationClock, chance: @escaping @Sendable () -> Double = { 0 },
        callingOn queue: DispatchQueue? = nil, nextDue: @escaping @Sendable (State) -> OperationInstant?,
        timePassed: @escaping @Sendable (inout State, OperationInstant, Double) -> [Call]
    ) {
        content = Locked(Content(state: state))
        (self.clock, self.chance, self.queue) = (clock, chance, queue)
        (self.nextDue, self.timePassed) = (nextDue, timePassed)
    }

    deinit { content.withLock { $0.timer.take() }?.cancel() }

    /// Reads the state, or changes it without an effect on the due time.
    package func withLock<Result>(_ body: (inout State) -> Result) -> Result { content.withLock { body(&$0.state) } }

    /// Applies an event under the lock, and then sets the timer and makes the calls that follow from the event.
    ///
    /// The event returns every object that it removes from the state, because the release of an object may run the
    /// user's code.
    @discardableResult
    package func apply<Result>(
        _ event: (inout State, OperationInstant, Double) -> (Result, [Call])
    ) -> Result {
        change { event(&$0.state, $1, $2) }
    }

    private func change<Result>(_ event: (inout Content, OperationInstant, Double) -> (Result, [Call])) -> Result {
        let (now, chance) = (clock.now, chance())
        let (result, mustCall, due, setting) = content.withLock { content in
            let (result, calls) = event(&content, now, chance)
            var mustCall = false
            for call in calls where content.calls.append(call) { mustCall = true }
            let due = nextDue(content.state)
            return (result, mustCall, due, content.rearm(due))
        }
        setting.old?.cancel()
        if setting.mustChange, let due {
            let timer = clock.schedule(at: due) { [weak self] in self?.timerFired(setting.number) }
            content.keep(timer, in: \.timer) { $0.armings == setting.number && $0.armedFor != nil }
        }
        if mustCall { makeCalls() }
        return result
    }

    private func timerFired(_ number: Int) {
        let timer: (any OperationTimer)? = change { [timePassed] content, now, chance in
            guard content.armings == number else { return (nil, []) }
            content.armedFor = nil
            return (content.timer.take(), timePassed(&content.state, now, chance))
        }
        extendLifetime(timer)
    }

    private func makeCalls() {
        let makeAll: Call = { [self] in while let call = content.withLock({ $0.calls.next() }) { call() } }
        if let queue { queue.async(execute: makeAll) } else { makeAll() }
    }
}

/// The wait of one operation at a gate.
///
/// A thread enters the gate and then calls ``begin(_:leave:held:)``. In the meantime, another thread may end the wait or
/// the operation:
///
/// - The gate may release the operation before the operation knows that it is held. Therefore, the end of the wait is
///   the second notification of a ``NotificationOrder``.
/// - The operation may end before its ticket is stored. It then leaves the gate as soon as the ticket is known.
package struct GateWait: ~Copyable, Sendable {
    private let state = Locked((leave: Optional<@Sendable () -> Void>.none, hasEnded: false))

    package init() {}

    /// Stores the way out of the gate, and notifies the operation that it is held.
    ///
    /// - Parameters:
    ///   - order: The order whose second notification is the end of the wait.
    ///   - leave: A closure that removes the operation from the gate if it still waits.
    ///   - held: A closure that notifies the operation that it is held.
    package func begin(_ order: NotificationOrder, leave: @escaping @Sendable () -> Void, held: () -> Void) {
        // If the operation has ended, it leaves this gate. Otherwise, the closure of the previous wait is only released.
        let (old, hasEnded) = state.withLock { state in
            (state.hasEnded ? leave : exchange(&state.leave, with: leave), state.hasEnded)
        }
        if hasEnded { old?() }
        order.first(held)
    }

    /// Leaves the gate, because the operation has ended.
    package func end() {
        let leave = state.withLock { state in
            state.hasEnded = true
            return exchange(&state.leave, with: nil)
        }
        leave?()
    }
}

/// Delivers the second of two notifications after the first, even if another thread has the second one ready earlier.
package final class NotificationOrder: Sendable {
    private enum State {
        case open
        case waiting(@Sendable () -> Void)
        case firstIsNotified
    }

    private let state = Locked(State.open)

    package init() {}

    package func first(_ notify: () -> Void) {
        notify()
        if case .waiting(let notifySecond) = state.withLock({ exchange(&$0, with: .firstIsNotified) }) {
            notifySecond()
        }
    }

    package func second(_ notify: @escaping @Sendable () -> Void) {
        let mayNotify = state.withLock { state in
            if case .firstIsNotified = state { return true }
            state = .waiting(notify)
            return false
        }
        if mayNotify { notify() }
    }
}
