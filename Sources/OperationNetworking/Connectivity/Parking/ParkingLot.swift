// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Where operations wait while the network is gone, and from where they go on, one after another, when it returns.
///
/// All operations that share one go on at its pace together; policies that name no other share ``shared``.
///
/// ```swift
/// let patient = ParkingLot(capacity: 100, pace: ParkingPace(perSecond: 5))
/// var policy = OfflinePolicy(lot: patient)
/// policy.longestWait = .seconds(3600)
/// ```
public final class ParkingLot: Sendable {
    /// How a wait ended.
    package enum End: Sendable, Equatable {
        /// The network is back, and it is one's turn.
        case released
        /// It took too long.
        case limitReached
    }

    package typealias Ticket = ParkingMachine.Ticket
    /// Is told how the wait ended, and how long the network was gone meanwhile.
    package typealias Body = @Sendable (End, Duration) -> Void

    private struct Waiter {
        let body: Body
        /// How long the network had been gone in all when it came.
        let since: OperationInstant
    }

    private struct State {
        var machine: ParkingMachine
        var waiters: [Ticket: Waiter] = [:]
        var observation: ConnectivityObservation?
        var isWatching = false
        var timer: (any OperationTimer)?
        /// The moment for which it is set; nil if none is.
        var armedFor: OperationInstant?
        /// How often it was set.
        var armings = 0
    }

    /// The lot of all policies that name no other.
    public static let shared = ParkingLot()

    /// What says whether the network is there.
    public let monitor: any ConnectivityMonitor
    private let clock: any OperationClock
    private let chance: @Sendable () -> Double
    private let state: Locked<State>

    /// Makes a lot.
    ///
    /// - Parameters:
    ///   - monitor: What says whether the network is there.
    ///   - capacity: How many operations may wait at once; one more fails. 10,000.
    ///   - pace: How they go on.
    ///   - clock: On which the waits are counted.
    ///   - chance: Gives a number from 0 up to 1 for each step of the pace; what is less or more counts as the one or
    ///     the other.
    public init(
        monitor: any ConnectivityMonitor = .system, capacity: Int = 10_000, pace: ParkingPace = .standard,
        clock: any OperationClock = .system, chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.monitor = monitor
        self.clock = clock
        self.chance = chance
        state = Locked(State(machine: ParkingMachine(capacity: max(capacity, 0), pace: pace, now: clock.now)))
    }

    deinit { state.withLock { $0.timer }?.cancel() }

    /// How many operations wait now.
    public var parkedCount: Int { state.withLock { $0.machine.count } }

    /// How often the network went.
    var outage: Int { state.withLock { $0.machine.outages } }

    /// Waits for the network; nil if there is no place.
    ///
    /// `body` is called once, on another thread, unless one leaves before. What is waited counts towards the limit only
    /// while the network is gone.
    package func park(atMost limit: Duration?, _ body: @escaping Body) -> Ticket? {
        watch()
        let (now, chance) = (clock.now, chance())
        let ticket = state.withLock { state in
            let ticket = state.machine.park(atMost: limit, now: now, chance: chance)
            if let ticket { state.waiters[ticket] = Waiter(body: body, since: state.machine.offlineTime(at: now)) }
            return ticket
        }
        arm()
        return ticket
    }

    /// Waits no longer; false if the wait has ended, and its end was told or is about to be.
    @discardableResult
    package func leave(_ ticket: Ticket) -> Bool {
        // What it holds goes here, outside the lock.
        let waiter = state.withLock { state in
            state.machine.leave(ticket) ? state.waiters.removeValue(forKey: ticket) : nil
        }
        if waiter != nil { arm() }
        return waiter != nil
    }

    /// From the first one that waits on, the lot knows whether the network is there.
    private func watch() {
        let isFirst = state.withLock { state in
            defer { state.isWatching = true }
            return !state.isWatching
        }
        guard isFirst else { return }
        let observation = monitor.observe { [weak self] in self?.note($0) }
        state.withLock { $0.observation = observation }
    }

    private func note(_ connectivity: Connectivity) {
        let (now, chance) = (clock.now, chance())
        state.withLock { state in
            state.machine.connectivityChanged(isOffline: connectivity.isOffline, now: now, chance: chance)
        }
        arm()
    }

    /// Sees to it that there is a timer for the moment that matters next, and none if there is no such moment.
    private func arm() {
        let (due, old, number): (OperationInstant?, (any OperationTimer)?, Int) = state.withLock { state in
            let due = state.machine.nextDue
            // One that is set too early finds nothing to do, and sets the next.
            if due == state.armedFor { return (nil, nil, 0) }
            if let due, let armed = state.armedFor, armed < due { return (nil, nil, 0) }
            state.armedFor = due
            state.armings += 1
            return (due, state.timer.take(), state.armings)
        }
        old?.cancel()
        guard let due else { return }
        let timer = clock.schedule(at: due) { [weak self] in self?.timerFired(number) }
        let isStale = state.withLock { state in
            guard state.armings == number, state.armedFor != nil else { return true }
            state.timer = timer
            return false
        }
        if isStale { timer.cancel() }
    }

    private func timerFired(_ number: Int) {
        let (now, chance) = (clock.now, chance())
        var timer: (any OperationTimer)?
        let ended: [(waiter: Waiter, end: End, duration: Duration)] = state.withLock { state in
            guard state.armings == number else { return [] }
            state.armedFor = nil
            timer = state.timer.take()
            return state.machine.timePassed(now: now, chance: chance).compactMap { action in
                let (ticket, end) = action.parts
                guard let waiter = state.waiters.removeValue(forKey: ticket) else { return nil }
                return (waiter, end, waiter.since.duration(to: state.machine.offlineTime(at: now)))
            }
        }
        withExtendedLifetime(timer) {}
        arm()
        for (waiter, end, duration) in ended { waiter.body(end, duration) }
    }
}

extension ParkingMachine.Action {
    fileprivate var parts: (ParkingMachine.Ticket, ParkingLot.End) {
        switch self {
        case .release(let ticket): (ticket, .released)
        case .giveUp(let ticket): (ticket, .limitReached)
        }
    }
}
