// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The wait of an operation that rests.
struct OperationWait {
    /// Which of its waits it is.
    var number: UInt32
    var reason: WaitReason
}

// Operations that wait in the middle of their work, without a thread.
extension ManagedOperation {
    /// What the operation waits for in the middle of its work; nil while it does not.
    ///
    /// Meanwhile it is executing, but takes no place of its ``QueueManager``: others run in its stead. It gets one again
    /// before it goes on, and before anything that has not begun.
    public final var waitReason: WaitReason? {
        core.withLock { $0.machine.ending == nil ? $0.extras?.wait?.reason : nil }
    }

    /// Whether it is in that queue, and has or had a place there.
    package final func isHosted(by queue: QueueManager) -> Bool { core.withLock { $0.host } === queue.engine }

    /// Whether who needs a place for each of them takes the one for this operation first.
    ///
    /// Of two queues one is always the first, so that nobody waits in a circle with a place in hand.
    package final func precedes(_ other: ManagedOperation) -> Bool {
        guard let host = core.withLock({ $0.host }), let otherHost = other.core.withLock({ $0.host }) else {
            return true
        }
        return ObjectIdentifier(host) < ObjectIdentifier(otherHost)
    }

    /// The operation waits from now on and needs no slot meanwhile; its body has returned, or is about to.
    ///
    /// - Parameters:
    ///   - number: Counts up with each wait of the operation. One that is over already is not begun: the thread that
    ///     brings the news of a wait may be overtaken by the one that ends it. Said again, it changes the reason.
    ///   - reason: Why.
    package final func rest(_ number: UInt32, because reason: WaitReason) {
        guard let host = core.withLock({ $0.host }) else {
            _ = core.withLock { $0.beginWait(number, reason) }
            return
        }
        host.rest(self, number, because: reason)
    }

    /// What the operation waited for came; true if it may go on at once.
    ///
    /// If not, there is no slot for it: `goOn` is called on a global queue when there is, unless the operation ended.
    package final func wake(_ number: UInt32, _ goOn: @escaping @Sendable () -> Void) -> Bool {
        guard let host = core.withLock({ $0.host }) else {
            core.withLock { $0.endWait(number) }
            return true
        }
        return host.wake(self, number) { [weak self] in
            self?.core.withLock { $0.extras?.wait = nil }
            goOn()
        }
    }
}

extension ManagedOperation.Core {
    /// Whether it has not ended: what winds down may wait, too, and keep a place from those for whom it waits.
    private var isAtWork: Bool { machine.ending == nil || machine.isExecuting }

    /// False if the wait is over, or the operation is.
    @discardableResult
    mutating func beginWait(_ number: UInt32, _ reason: WaitReason) -> Bool {
        guard isAtWork, machine.isStarted, number > extras?.lastWait ?? 0 else { return false }
        need().wait = OperationWait(number: number, reason: reason)
        return true
    }

    /// The wait is over, though its news may be still to come.
    mutating func endWait(_ number: UInt32) {
        guard isAtWork else { return }
        let extras = need()
        extras.lastWait = max(extras.lastWait, number)
        extras.wait = nil
    }

    /// It is, but there is no slot.
    mutating func waitForPlace(_ number: UInt32) {
        if machine.ending == nil { need().wait = OperationWait(number: number, reason: .place) }
    }
}

extension QueueEngine {
    fileprivate func rest(_ operation: ManagedOperation, _ number: UInt32, because reason: WaitReason) {
        applySettled { state, _ in
            let slot = operation.core.withLock { core in
                core.beginWait(number, reason) && core.host === self ? core.slot : -1
            }
            guard slot >= 0 else { return }
            state.machine.rest(state.machine.entries.key(of: slot), because: reason)
        }
    }

    fileprivate func wake(
        _ operation: ManagedOperation, _ number: UInt32, _ goOn: @escaping @Sendable () -> Void
    ) -> Bool {
        applySettled { state, _ in
            let slot = operation.core.withLock { core in
                core.endWait(number)
                return core.host === self ? core.slot : -1
            }
            guard slot >= 0 else { return true }
            let key = state.machine.entries.key(of: slot)
            // Who came before goes on before.
            if !state.machine.isResting(key) || state.returning.isEmpty && state.machine.resume(key) { return true }
            operation.core.withLock { $0.waitForPlace(number) }
            state.machine.rest(key, because: .place)
            state.returning.append(ReturningBody(key: key, turn: .call(goOn)))
            return false
        }
    }
}
