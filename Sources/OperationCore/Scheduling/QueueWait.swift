// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A wait for one event of a queue, or for the cancellation of the task that waits.
package final class QueueWait: Sendable {
    /// The number of slots to wait for, if the wait is for room.
    let places: Int

    private enum State {
        case open
        case calling(@Sendable () -> Void)
        case waiting(CheckedContinuation<Bool, Never>)
        case ended(isByEvent: Bool)
    }

    private let state: Locked<State>

    private init(places: Int) {
        self.places = places
        state = Locked(.open)
    }

    /// Creates a wait that calls `tell` once when the event occurs.
    package init(_ tell: @escaping @Sendable () -> Void) {
        places = 1
        state = Locked(.calling(tell))
    }

    /// Waits, and returns whether the event occurred and not the cancellation.
    @discardableResult
    static func run(places: Int = 1, _ begin: (QueueWait) -> Void) async -> Bool {
        let wait = QueueWait(places: places)
        begin(wait)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isByEvent = wait.state.withLock { state -> Bool? in
                    if case .ended(let isByEvent) = state { return isByEvent }
                    state = .waiting(continuation)
                    return nil
                }
                if let isByEvent { continuation.resume(returning: isByEvent) }
            }
        } onCancel: {
            wait.end(isByEvent: false)
        }
    }

    /// Waits for the event, even if the task is canceled.
    static func runWhateverBecomesOfTheTask(_ begin: (QueueWait) -> Void) async {
        await withCheckedContinuation { continuation in
            begin(QueueWait { continuation.resume() })
        }
    }

    /// Whether the wait has ended.
    var isOver: Bool {
        state.withLock { if case .ended = $0 { true } else { false } }
    }

    /// Ends the wait, and returns `false` if it had already ended.
    @discardableResult
    func end(isByEvent: Bool = true) -> Bool {
        let old = state.withLock { state in
            if case .ended = state { return state }
            return exchange(&state, with: .ended(isByEvent: isByEvent))
        }
        switch old {
        case .open: return true
        case .calling(let tell):
            tell()
            return true
        case .waiting(let continuation):
            continuation.resume(returning: isByEvent)
            return true
        case .ended: return false
        }
    }
}

/// A list of waits in the order in which they were added.
///
/// Abandoned waits are removed once there are many of them, so that repeated waits with a time limit do not use more
/// and more memory.
struct WaitList {
    private var waits = Fifo<QueueWait>()
    private var limit = 64

    var isEmpty: Bool { waits.isEmpty }
    var count: Int { waits.count }

    mutating func append(_ wait: QueueWait) {
        if waits.count >= limit {
            var present = Fifo<QueueWait>()
            while let wait = popFirst() { present.append(wait) }
            waits = present
            limit = max(present.count * 2, 64)
        }
        waits.append(wait)
    }

    /// Returns the first wait that was not abandoned, without removing it.
    mutating func first() -> QueueWait? {
        while let wait = waits.first {
            if !wait.isOver { return wait }
            waits.removeFirst()
        }
        return nil
    }

    /// Removes and returns the first wait that was not abandoned.
    @discardableResult
    mutating func popFirst() -> QueueWait? {
        while let wait = waits.popFirst() {
            if !wait.isOver { return wait }
        }
        return nil
    }

    mutating func takeAll() -> [QueueWait] {
        var all: [QueueWait] = []
        while let wait = popFirst() { all.append(wait) }
        return all
    }
}

/// A relay that runs closures on the main thread, through the main queue or inside a call of this package that waits
/// there.
///
/// A Linux service may have no main loop. If its main thread waits for an operation, and a closure of that operation
/// waits for the main thread, neither would ever continue. So the closure is stored where both can find it, and
/// whichever comes first runs it.
package enum MainThreadRelay {
    private struct State {
        var jobs = Fifo<@Sendable () -> Void>()
        /// The nested waits of the main thread.
        var waiters: [BlockingWaiter] = []
    }

    private static let state = Locked(State())

    private static let mark: DispatchSpecificKey<Void> = {
        let mark = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: mark, value: ())
        return mark
    }()

    /// Whether the caller is on the main thread or the main queue.
    package static var isOnMain: Bool {
        Thread.isMainThread || DispatchQueue.getSpecific(key: mark) != nil
    }

    /// Runs `job` immediately if the caller is on the main thread, or otherwise as soon as the main thread is
    /// available.
    package static func run(_ job: @escaping @Sendable () -> Void) {
        if isOnMain { return job() }
        let waiter = state.withLock { state in
            state.jobs.append(job)
            return state.waiters.last
        }
        DispatchQueue.main.async { runNext() }
        waiter?.signal()
    }

    static func serve(until waiter: BlockingWaiter) {
        state.withLock { $0.waiters.append(waiter) }
        while !waiter.hasBeenWoken {
            if !runNext() { waiter.waitForSignal() }
        }
        let next = state.withLock { state in
            state.waiters.removeAll { $0 === waiter }
            return state.waiters.last
        }
        // A signal for the main thread may have reached only this wait, so the enclosing wait checks again.
        next?.signal()
    }

    /// Runs the oldest job, if there is one that has not been taken.
    @discardableResult
    private static func runNext() -> Bool {
        let job = state.withLock { $0.jobs.popFirst() }
        job?()
        return job != nil
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
        let isNews = phase.withLock { phase in
            guard phase != .ended, (phase == .on) != isHeld else { return false }
            phase = isHeld ? .on : .off
            return true
        }
        if isNews { bringIntoForce() }
    }

    /// Removes this reason permanently.
    package func end() {
        phase.withLock { $0 = .ended }
        bringIntoForce()
    }

    private func bringIntoForce() {
        applyLatest({ phase.withLock { $0 } }) { phase in
            if phase == .on { engine.hold(self, because: reason) } else { engine.endHold(self) }
        }
    }
}

extension QueueEngine {
    func setSuspended(_ isSuspended: Bool, because reason: String?) {
        changeSuspension { $0.set(isSuspended, because: reason) }
    }

    /// Ends the suspension of the queue for all reasons.
    func endSuspension() { changeSuspension { $0.endAll() } }

    fileprivate func hold(_ hold: QueueHold, because reason: String) {
        changeSuspension { $0.hold(hold, because: reason) }
    }

    fileprivate func endHold(_ hold: QueueHold) { changeSuspension { $0.endHold(hold) } }

    private func changeSuspension(_ change: (inout QueueSuspension) -> Void) {
        applySettled { state, _ in
            change(&state.suspension)
            let isSuspended = state.suspension.isSuspended
            guard state.machine.isSuspended != isSuspended else { return }
            state.machine.isSuspended = isSuspended
            state.machine.journal?.note(.suspension(isSuspended))
        }
    }
}
