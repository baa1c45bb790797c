// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
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

extension QueueManager {
    /// Lets nothing begin while the network is gone, and until it has been back for a while; what runs goes on.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let hold = uploads.hold(whileOffline: .system) { isHeld in print(isHeld ? "No network" : "") }
    /// ```
    ///
    /// `explain(_:)` says so of what waits, and the queue counts as suspended. Your own suspension of
    /// the queue and this one do not know each other: it goes on when both are over. What waits then begins as the
    /// queue's width allows, and not at a pace: give a queue that may hold many a width.
    ///
    /// - Parameters:
    ///   - monitor: What says whether the network is there.
    ///   - settling: How long the network must have been back, and up to twice that by chance: half a second. One that
    ///     comes and goes within that time lets nothing begin, and many machines do not all begin at the same moment.
    ///   - clock: On which that is counted.
    ///   - callbackQueue: Where `offlineHandler` is called. The default is `nil`, which means the callback queue of this queue, or
    ///     else `OperationDefaults.callbackQueue`.
    ///   - offlineHandler: Told true when the queue begins to wait, and false when it goes on: once for each time. Not after
    ///     the token was cancelled.
    ///   - chance: Gives a number from 0 up to 1 for each return of the network.
    /// - Returns: A token, which keeps the queue; when it is cancelled or let go of, the queue takes no more notice of
    ///   the network.
    public func hold(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = OfflineResumePace.standard.settling,
        clock: any OperationClock = .system, callbackQueue: DispatchQueue? = nil,
        offlineHandler: (@Sendable (_ isHeld: Bool) -> Void)? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        let hold = QueueHold(self, because: "the network is gone")
        let switching = HoldSwitch(hold, settling: settling, clock, chance)
        let callbackQueue = callbackQueue ?? self.callbackQueue ?? OperationDefaults.callbackQueue
        if let offlineHandler { switching.listen(on: callbackQueue, offlineHandler) }
        return NetworkHold(self, monitor, switching)
    }

    /// Carries on when the network returns, and repeats what had failed for want of it by then: the preset for a queue that
    /// shall get everything through.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let keeper = uploads.carryOn(whileOffline: .system)
    /// try uploads.add(remaking: { ClosureOperation { try Data(contentsOf: URL(fileURLWithPath: "/tmp/it")) } })
    /// ```
    ///
    /// The queue is held as by ``hold(whileOffline:settling:clock:callbackQueue:offlineHandler:chance:)``. When it goes on,
    /// those of its `failures` are run again that came of a network that is gone (``OfflineRule/standard``, or
    /// the end of a wait for it), a minute before that was noticed or since then, and can be made anew: add them by
    /// `add(remaking:)`. Their errors may be ``NetworkError`` or `URLError`. What failed for another
    /// reason, or long before, stays in the list, for it would fail again; so does what notices the loss only later (a transfer that runs out
    /// of time), until the next return or `runAgain(_:)`. A request that is repeated so is a new one: its server may have
    /// acted upon the first, so give it an ``IdempotencyKey`` that its closure keeps, if that must not happen.
    ///
    /// - Returns: A token, which keeps the queue; when it is cancelled or let go of, that is over.
    public func carryOn(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = OfflineResumePace.standard.settling,
        clock: any OperationClock = .system, callbackQueue: DispatchQueue? = nil,
        offlineHandler: (@Sendable (_ isHeld: Bool) -> Void)? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        // What the closures of the failed ones do is the user's, and may take long: on a queue of its own.
        let since = Locked(Date())
        let callbackQueue = callbackQueue ?? self.callbackQueue ?? OperationDefaults.callbackQueue
        return hold(
            whileOffline: monitor, settling: settling, clock: clock,
            callbackQueue: DispatchQueue(label: "OperationKit.carryOn"),
            offlineHandler: { [weak self] isHeld in
                if let offlineHandler { callbackQueue.async { offlineHandler(isHeld) } }
                if isHeld { return since.withLock { $0 = Date() } }
                self?.runNetworkFailuresAgain(since.withLock { $0 })
            }, chance: chance)
    }

    /// Runs again what failed for want of a network, a minute before that was noticed or since then.
    package func runNetworkFailuresAgain(_ noticed: Date) {
        for failure in failures where failure.canRunAgain && failure.date.timeIntervalSince(noticed) > -60 {
            guard AuthenticationOptions.networkError(in: failure.error)?.isAboutNetwork == true else { continue }
            // Somebody else may have run it again, or the queue is full or shut down: then it stays in the list.
            _ = try? runAgain(failure)
        }
    }
}
