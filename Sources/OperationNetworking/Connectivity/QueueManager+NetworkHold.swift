// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// A token for a queue that is suspended while the network is unavailable.
///
/// To make the queue independent of the network again, cancel or release the token.
///
/// The token keeps a strong reference to the queue, so the queue's operations run when the network returns, even if you
/// release the queue.
public final class NetworkHold: Sendable {
    private let observation: ConnectivityObservation
    private let switching: HoldSwitch
    private let queue: QueueManager

    init(_ queue: QueueManager, _ monitor: any ConnectivityMonitor, _ switching: HoldSwitch) {
        self.queue = queue
        self.switching = switching
        observation = monitor.observe { switching.record(isOffline: $0.isOffline) }
    }

    deinit { cancel() }

    /// Stops observing the network and resumes the queue, unless the queue is suspended for another reason.
    public func cancel() {
        observation.cancel()
        switching.end()
    }
}

/// Holds the queue immediately, and releases it when the network has been available for a while.
final class HoldSwitch: Sendable {
    typealias Listener = (queue: DispatchQueue, call: @Sendable (Bool) -> Void)

    private let hold: QueueHold
    /// The gate at which the end of the hold waits while the queue is held.
    private let gate: GateShell<GateMachine<@Sendable () -> Void>>
    /// The listeners, which are removed at the end.
    private let listeners: Locked<[Listener]>

    init(
        _ hold: QueueHold, settling: Duration, _ clock: any OperationClock, _ chance: @escaping @Sendable () -> Double,
        notifying listeners: [Listener]
    ) {
        self.hold = hold
        self.listeners = Locked(listeners)
        let pace = PostponementPace(1, every: .zero, settling: settling, isRandom: true)
        gate = GateShell(
            GateMachine(pace: pace, isClosed: false, now: clock.now), clock: clock, chance: chance, nextDue: \.nextDue
        ) { gate, now, chance in gate.timePassed(now: now, chance: chance).map(\.waiter) }
    }

    /// Handles a report of the monitor, which comes from one thread at a time.
    func record(isOffline: Bool) {
        gate.apply { gate, now, chance in
            guard isOffline else {
                gate.open(now: now, chance: chance)
                return ((), gate.timePassed(now: now, chance: chance).map(\.waiter))
            }
            gate.close(now: now)
            guard gate.count == 0 else { return ((), []) }
            _ = gate.enter({ [weak self] in self?.set(false) }, now: now)
            return ((), [{ [self] in set(true) }])
        }
    }

    /// Updates the hold and notifies the listeners, on one thread at a time.
    private func set(_ isHeld: Bool) {
        hold.set(isHeld)
        let queues = listeners.withLock { listeners in listeners.map { $0.queue } }
        for (index, queue) in queues.enumerated() {
            queue.async { [self] in listeners.withLock { index < $0.count ? $0[index].call : nil }?(isHeld) }
        }
    }

    func end() {
        let left = (gate.apply { gate, _, _ in (gate.takeAll(), []) }, listeners.withLock { exchange(&$0, with: []) })
        extendLifetime(left)
        hold.end()
    }
}

extension QueueManager {
    /// Suspends the queue while the network is unavailable and resumes it shortly after the network returns.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let hold = uploads.hold(whileOffline: .system) { isHeld in
    ///     print(isHeld ? "No network" : "")
    /// }
    /// ```
    ///
    /// Operations that are already running continue. The queue's `explain(_:)` method names the missing network as the
    /// reason for the suspension. If you also suspend the queue yourself, operations start only after you resume the
    /// queue and the network returns.
    ///
    /// When the queue resumes, only its width limits how many operations start together.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that reports whether the network is available.
    ///   - settling: The minimum time for which the network must be available before operations start. The default is
    ///     half a second. The actual time is a random value between `settling` and twice `settling`, so that many
    ///     devices do not start their operations at the same moment.
    ///   - clock: The clock that measures the settling time. The default is the system clock.
    ///   - callbackQueue: The dispatch queue on which the token calls `offlineHandler`. The default is `nil`, which
    ///     uses the `callbackQueue` of this queue, or `OperationDefaults.callbackQueue` if this queue has no callback
    ///     queue.
    ///   - offlineHandler: A closure that receives `true` when the network becomes unavailable, and `false` when the
    ///     queue resumes. After you cancel or release the token, the token does not call the closure. The default is
    ///     `nil`.
    ///   - chance: A closure that returns a random number from 0 to 1, which determines the settling time. Replace this
    ///     closure only in tests.
    /// - Returns: A token that keeps a strong reference to the queue. After you cancel or release the token, the queue
    ///   no longer depends on the network.
    public func hold(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = .milliseconds(500),
        clock: any OperationClock = .system, callbackQueue: DispatchQueue? = nil,
        offlineHandler: (@Sendable (_ isHeld: Bool) -> Void)? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        hold(monitor, settling, clock, chance, notifying: listeners(offlineHandler, on: callbackQueue))
    }

    private func hold(
        _ monitor: any ConnectivityMonitor, _ settling: Duration, _ clock: any OperationClock,
        _ chance: @escaping @Sendable () -> Double, notifying listeners: [HoldSwitch.Listener]
    ) -> NetworkHold {
        let hold = QueueHold(self, because: "the network is unavailable")
        return NetworkHold(
            self, monitor, HoldSwitch(hold, settling: settling, clock, chance, notifying: listeners))
    }

    private func listeners(
        _ offlineHandler: (@Sendable (Bool) -> Void)?, on callbackQueue: DispatchQueue?
    ) -> [HoldSwitch.Listener] {
        guard let offlineHandler else { return [] }
        return [(callbackQueue ?? self.callbackQueue ?? OperationDefaults.callbackQueue, offlineHandler)]
    }

    /// Suspends the queue during a network outage and then repeats the operations that failed because of the outage.
    ///
    /// ```swift
    /// let uploads = QueueManager("uploads", width: 2)
    /// let keeper = uploads.carryOn(whileOffline: .system)
    /// try uploads.add(remaking: {
    ///     ClosureOperation { try Data(contentsOf: URL(fileURLWithPath: "/tmp/it")) }
    /// })
    /// ```
    ///
    /// Use this method for a queue whose operations must all succeed eventually. The method has the same parameters as
    /// ``hold(whileOffline:settling:clock:callbackQueue:offlineHandler:chance:)`` and suspends the queue in the same
    /// way. When the queue resumes, it repeats the operations in its `failures` that meet all of these conditions:
    ///
    /// - The error is a ``NetworkError`` or a `URLError` that an unavailable network can cause, or an
    ///   `OperationFailure` that contains this error. The errors that match the rules of ``OfflinePolicy/standard`` and
    ///   the errors of operations that could not wait for the network, or waited too long, meet this condition.
    /// - The operation failed after the monitor reported that the network became unavailable, or less than one minute
    ///   before this report.
    /// - You added the operation with `add(remaking:)`, so the queue can create it again.
    ///
    /// The other failures stay in `failures`. An outage can also cause an operation to fail after the queue has
    /// resumed, for example with a timeout. To repeat this operation, call `runAgain(_:)`.
    ///
    /// A repeated operation sends a new request, even though the server might have already processed the first request.
    /// If the server must not process both requests, create an ``IdempotencyKey`` outside the closure that you pass to
    /// `add(remaking:)`, and add the key to each request.
    ///
    /// - Returns: A token that keeps a strong reference to the queue. After you cancel or release the token, the queue
    ///   no longer depends on the network.
    public func carryOn(
        whileOffline monitor: any ConnectivityMonitor, settling: Duration = .milliseconds(500),
        clock: any OperationClock = .system, callbackQueue: DispatchQueue? = nil,
        offlineHandler: (@Sendable (_ isHeld: Bool) -> Void)? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) -> NetworkHold {
        let since = Locked(Date())
        let runAgain: @Sendable (Bool) -> Void = { [weak self] isHeld in
            if isHeld { return since.withLock { $0 = Date() } }
            self?.runNetworkFailuresAgain(since.withLock { $0 })
        }
        var listeners = listeners(offlineHandler, on: callbackQueue)
        // The closures that create the operations are user code and may take long, so they run on a separate queue.
        listeners.append((DispatchQueue(label: "OperationKit.carryOn"), runAgain))
        return hold(monitor, settling, clock, chance, notifying: listeners)
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
