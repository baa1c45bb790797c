// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A wait for one event of a queue, or for the cancellation of the task that waits.
package final class QueueWait: Sendable {
    /// How many places it is for, if it is for room.
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

    /// Calls `tell` once when the event came.
    package init(_ tell: @escaping @Sendable () -> Void) {
        places = 1
        state = Locked(.calling(tell))
    }

    /// Waits; returns whether the event came, and not the cancellation.
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

    /// Waits for the event, whether or not the task is cancelled.
    static func runWhateverBecomesOfTheTask(_ begin: (QueueWait) -> Void) async {
        await withCheckedContinuation { continuation in
            begin(QueueWait { continuation.resume() })
        }
    }

    /// Whether the wait has ended.
    var isOver: Bool {
        state.withLock { if case .ended = $0 { true } else { false } }
    }

    /// Ends the wait; false if it had ended before.
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

/// Waits in the order in which they came.
///
/// Those that were given up are dropped once they are the most, so that waiting with a time limit for ever takes no memory.
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

    /// The first that was not given up, which stays.
    mutating func first() -> QueueWait? {
        while let wait = waits.first {
            if !wait.isOver { return wait }
            waits.removeFirst()
        }
        return nil
    }

    /// The first that was not given up.
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

/// Runs closures on the main thread, through the main queue or, where the main thread waits in one of our calls, there.
///
/// A Linux service may have no main loop, and a main thread that waits for an operation whose closure waits for the
/// main thread would wait for ever. So the closure is put where both can find it, and whoever comes first runs it.
package enum MainThreadRelay {
    private struct State {
        var jobs = Fifo<@Sendable () -> Void>()
        /// Waits of the main thread, one inside the other.
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

    /// Runs `job` at once if the caller is on main, and else as soon as main comes by.
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
        // A signal that was meant for main in general may have gone to this wait: the one around it looks again.
        next?.signal()
    }

    /// Runs the oldest job, if there is one that nobody took.
    @discardableResult
    private static func runNext() -> Bool {
        let job = state.withLock { $0.jobs.popFirst() }
        job?()
        return job != nil
    }
}

/// A reason of its own for which a queue may be suspended: it knows nothing of other reasons, nor of the user's.
package final class QueueHold: Sendable {
    private let engine: QueueEngine
    private let reason: String
    /// Whether it holds the queue, and will ever again; the engine's lock is taken inside of no other.
    private let phase = Locked(Phase.off)

    private enum Phase { case off, on, ended }

    /// Makes one that does not hold the queue yet.
    package init(_ queue: QueueManager, because reason: String) {
        engine = queue.engine
        self.reason = reason
    }

    deinit { end() }

    /// Holds the queue, or lets it go on as far as this reason goes.
    package func set(_ isHeld: Bool) {
        let isNews = phase.withLock { phase in
            guard phase != .ended, (phase == .on) != isHeld else { return false }
            phase = isHeld ? .on : .off
            return true
        }
        if isNews { bringIntoForce() }
    }

    /// Lets the queue go on as far as this reason goes, for good.
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

    /// Goes on, whatever the queue was suspended for.
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
