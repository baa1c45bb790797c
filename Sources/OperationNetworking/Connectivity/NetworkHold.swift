// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// That a queue is held while the network is gone: to be kept for as long as that shall be so.
///
/// It keeps the queue, so that what a queue holds that nobody else has any more runs when the network is back.
public final class NetworkHold: Sendable {
    private let observation: ConnectivityObservation
    private let switching: HoldSwitch
    private let queue: QueueManager

    init(_ queue: QueueManager, _ monitor: any ConnectivityMonitor, _ switching: HoldSwitch) {
        self.queue = queue
        self.switching = switching
        observation = monitor.observe { switching.note(isOffline: $0.isOffline) }
    }

    deinit { cancel() }

    /// Ends it: the queue goes on, unless it is suspended for other reasons.
    public func cancel() {
        observation.cancel()
        switching.end()
    }
}

/// Holds the queue at once, and lets it go on when the network has been back for a while.
final class HoldSwitch: Sendable {
    private struct State {
        /// What was noted last; nil at first.
        var isOffline: Bool?
        var isHeld = false
        /// Whether a thread is notifying the hold.
        var telling = RepeatFlag()
        var timer: (any OperationTimer)?
        /// How often the network went, came or was let go of: a timer of the past is not heard.
        var number = 0
        /// Who is told, where, and what of last.
        var listener: (@Sendable (Bool) -> Void)?
        var callbacks: DispatchQueue?
        var wasTold = false
    }

    private let hold: QueueHold
    private let settling: Duration
    private let clock: any OperationClock
    private let chance: @Sendable () -> Double
    private let state = Locked(State())

    init(
        _ hold: QueueHold, settling: Duration, _ clock: any OperationClock, _ chance: @escaping @Sendable () -> Double
    ) {
        self.hold = hold
        self.settling = max(settling, .zero).clamped
        self.clock = clock
        self.chance = chance
    }

    /// Has somebody told, before the first note.
    func listen(on queue: DispatchQueue, _ listener: @escaping @Sendable (Bool) -> Void) {
        state.withLock { ($0.callbacks, $0.listener) = (queue, listener) }
    }

    /// Called by one thread at a time: that of the monitor.
    func note(isOffline: Bool) {
        let pause = isOffline ? .zero : settling * (1 + chance().asChance)
        let (old, number): ((any OperationTimer)?, Int?) = state.withLock { state in
            // Another interface is no other network that has to settle.
            guard state.isOffline != isOffline else { return (nil, nil) }
            state.isOffline = isOffline
            state.number += 1
            if isOffline { state.isHeld = true }
            if !isOffline, pause == .zero { state.isHeld = false }
            return (state.timer.take(), state.isHeld && !isOffline ? state.number : nil)
        }
        old?.cancel()
        tell()
        if let number { keep(clock.schedule(after: pause) { [weak self] in self?.settled(number) }, number) }
    }

    private func keep(_ timer: any OperationTimer, _ number: Int) {
        let isPresent = state.withLock { state in
            guard state.number == number, state.isHeld else { return false }
            state.timer = timer
            return true
        }
        if !isPresent { timer.cancel() }
    }

    private func settled(_ number: Int) {
        let timer: (any OperationTimer)? = state.withLock { state in
            guard state.number == number else { return nil }
            state.isHeld = false
            return state.timer.take()
        }
        withExtendedLifetime(timer) {}
        tell()
    }

    /// The queue's hold is told by one thread at a time, which looks again whether it told the last.
    private func tell() {
        state.runRounds(of: \.telling) {
            let isHeld = state.withLock { $0.isHeld }
            hold.set(isHeld)
            tellListener(isHeld)
        }
    }

    private func tellListener(_ isHeld: Bool) {
        let queue = state.withLock { state in
            exchange(&state.wasTold, with: isHeld) != isHeld && state.listener != nil ? state.callbacks : nil
        }
        queue?.async { [self] in state.withLock { $0.listener }?(isHeld) }
    }

    func end() {
        let (timer, listener) = state.withLock { state in
            state.number += 1
            return (state.timer.take(), state.listener.take())
        }
        timer?.cancel()
        withExtendedLifetime(listener) {}
        hold.end()
    }
}
