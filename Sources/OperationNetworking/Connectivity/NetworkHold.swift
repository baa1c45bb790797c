// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// A token that holds a queue while the network is unavailable, until you cancel or release the token.
///
/// The token keeps a strong reference to the queue. As a result, the operations run when the network returns, even if
/// nothing else references the queue.
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

    /// Ends the hold, so that the queue continues unless it is suspended for another reason.
    public func cancel() {
        observation.cancel()
        switching.end()
    }
}

/// Holds the queue immediately, and releases it when the network has been available for a while.
final class HoldSwitch: Sendable {
    private struct State {
        /// The last reported state, or nil before the first report.
        var isOffline: Bool?
        var isHeld = false
        /// Whether a thread is notifying the hold.
        var telling = RepeatFlag()
        var timer: (any OperationTimer)?
        /// The number of state changes, by which an outdated timer is ignored.
        var number = 0
        /// The listener, its queue, and the value of its last call.
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

    /// Sets the listener, before the first report.
    func listen(on queue: DispatchQueue, _ listener: @escaping @Sendable (Bool) -> Void) {
        state.withLock { ($0.callbacks, $0.listener) = (queue, listener) }
    }

    /// Handles a report of the monitor, which comes from one thread at a time.
    func note(isOffline: Bool) {
        let pause = isOffline ? .zero : settling * (1 + chance().asChance)
        let (old, number): ((any OperationTimer)?, Int?) = state.withLock { state in
            // A change of the interface is not a return of the network, which would have to settle.
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

    /// Updates the hold and the listener.
    ///
    /// Only one thread does this at a time, and repeats it after a change.
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
    /// Holds the queue while the network is unavailable, and until the network has been available again for a short
    /// time.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let hold = uploads.hold(whileOffline: .system) { isHeld in print(isHeld ? "No network" : "") }
    /// ```
    ///
    /// Running operations continue. During the hold, the queue counts as suspended, and `explain(_:)` names the missing
    /// network as the reason. If you also suspend the queue, it continues when both the hold and the suspension have
    /// ended. Then, only the width of the queue limits how many operations start together. So set a width for a queue
    /// that may hold many operations.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that reports whether the network is available.
    ///   - settling: The minimum time for which the network must be available before operations start. The default is
    ///     half a second. The actual time is a random value between this value and twice this value. The
    ///     randomization prevents many machines from starting at the same moment.
    ///   - clock: The clock that measures this time. The default is the system clock.
    ///   - callbackQueue: The queue on which `offlineHandler` is called. The default is `nil`, which uses the
    ///     callback queue of this queue, or else `OperationDefaults.callbackQueue`.
    ///   - offlineHandler: A closure that is called with `true` when the queue begins to wait, and with `false` when
    ///     it continues. It is not called after you cancel the token. The default is `nil`.
    ///   - chance: A closure that returns a random number from 0 to 1 each time the network returns.
    /// - Returns: A token, which keeps a strong reference to the queue. When you cancel or release the token, the
    ///   queue ignores the state of the network.
    public func hold(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = OfflineResumePace.standard.settling,
        clock: any OperationClock = .system, callbackQueue: DispatchQueue? = nil,
        offlineHandler: (@Sendable (_ isHeld: Bool) -> Void)? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        let hold = QueueHold(self, because: "the network is unavailable")
        let switching = HoldSwitch(hold, settling: settling, clock, chance)
        let callbackQueue = callbackQueue ?? self.callbackQueue ?? OperationDefaults.callbackQueue
        if let offlineHandler { switching.listen(on: callbackQueue, offlineHandler) }
        return NetworkHold(self, monitor, switching)
    }

    /// Holds the queue while the network is unavailable, and then repeats the operations that failed because of the
    /// outage.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let keeper = uploads.carryOn(whileOffline: .system)
    /// try uploads.add(remaking: { ClosureOperation { try Data(contentsOf: URL(fileURLWithPath: "/tmp/it")) } })
    /// ```
    ///
    /// Use this method for a queue whose operations must all succeed eventually. The queue is held as by
    /// ``hold(whileOffline:settling:clock:callbackQueue:offlineHandler:chance:)``. When the queue continues, it repeats
    /// the operations in its `failures` that meet these conditions:
    ///
    /// - The error is a ``NetworkError`` or a `URLError` that an unavailable network can cause. These are the errors
    ///   of ``OfflineRule/standard`` and the end of a wait for the network.
    /// - The operation failed after the monitor reported the loss of the network, or at most one minute before.
    /// - The operation can be created again, because it was added by `add(remaking:)`.
    ///
    /// The other failures stay in the list. An operation that notices the loss of the network later, for example by a
    /// timeout, also stays in the list until the next return of the network or until `runAgain(_:)`.
    ///
    /// A repeated request is a new request, and the server may have processed the first one. If the server must not
    /// process it twice, give the request an ``IdempotencyKey`` that the closure captures.
    ///
    /// The parameters are the same as for the `hold` method.
    ///
    /// - Returns: A token, which keeps a strong reference to the queue. When you cancel or release the token, the
    ///   queue ignores the state of the network.
    public func carryOn(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = OfflineResumePace.standard.settling,
        clock: any OperationClock = .system, callbackQueue: DispatchQueue? = nil,
        offlineHandler: (@Sendable (_ isHeld: Bool) -> Void)? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        // The closures that create the operations are user code and may take long, so they run on a separate queue.
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

    /// Repeats the operations that failed because of the network, after the loss was noticed or at most a minute
    /// before.
    package func runNetworkFailuresAgain(_ noticed: Date) {
        for failure in failures where failure.canRunAgain && failure.date.timeIntervalSince(noticed) > -60 {
            guard AuthenticationOptions.networkError(in: failure.error)?.isAboutNetwork == true else { continue }
            // The failure stays in the list if other code has repeated it, or if the queue is full or shut down.
            _ = try? runAgain(failure)
        }
    }
}
