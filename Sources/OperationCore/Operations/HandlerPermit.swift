// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Synchronization

/// Says, at the moment at which an enqueued handler would begin, whether it still may.
///
/// It is made when the handler is enqueued, because an operation that has ended does not know its group and its queue any more.
package struct HandlerPermit: Sendable {
    fileprivate var group: CancellationMark?
    fileprivate var queue: CancellationMark?
    fileprivate var queueCount = 0
    /// Keeps the operation among those of its owner although it has ended.
    fileprivate var membership: OwnerMembership?

    /// Returns whether the handler may begin, which must be asked once, immediately before it would.
    ///
    /// It may not if the operation is canceled, or if `cancel` was called since the outcome was decided: on the operation, on a
    /// group around it, on its queue or for its owner.
    package func allowsHandler(of operation: ManagedOperation?) -> Bool {
        withdraw()
        guard let operation else { return false }
        if let queue, queue.count != queueCount { return false }
        if let group, group.isSet { return false }
        return operation.mayCallHandlers
    }

    /// Gives up the permit, for a handler that is not enqueued after all.
    fileprivate func withdraw() {
        if let membership { OwnerRegistry.shared.withdraw(membership) }
    }
}

extension ManagedOperation {
    /// A Boolean value that indicates whether the operation itself lets its handlers begin.
    ///
    /// It is false if the operation is canceled, and if `cancel` was called after its outcome was decided. A handler that was
    /// enqueued asks its ``HandlerPermit``, which also knows the group, the queue and the owner.
    package final var mayCallHandlers: Bool {
        if storage.withLock({ $0.isSilent || $0.machine.isCancelled }) { return false }
        return original?.storage.withLock { !$0.isSilent } ?? true
    }

    /// Creates the permit for a handler that is about to be enqueued.
    package final func handlerPermit() -> HandlerPermit {
        let (host, parent, slot, membership) = core.withLock { ($0.host, $0.parent, $0.parentSlot, $0.membership) }
        var permit = HandlerPermit()
        if let parent { permit.group = parent.cancellationMark(forChildAt: slot) }
        // A child that runs on the thread of its group's body is in no queue itself, but its group may be.
        if let queue = host ?? parent?.state.withLock({ $0.isPartOfQueue ? $0.queue : nil }) {
            permit.queue = queue.cancellations
            permit.queueCount = queue.cancellations.count
        }
        if let membership {
            let kept = OwnerMembership(of: life, to: membership.owner)
            OwnerRegistry.shared.enter(kept)
            permit.membership = kept
        }
        return permit
    }

    /// Enqueues a handler, which begins only if the operation has not been canceled by then.
    ///
    /// The operation lives until then.
    package final func enqueueHandler(on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) {
        let permit = handlerPermit()
        queue.async { [self] in
            if permit.allowsHandler(of: self) { handler() }
            extendLifetime(self)
        }
    }

    /// Enqueues a handler as ``enqueueHandler(on:_:)`` does, unless the outcome is decided.
    ///
    /// It is enqueued under the lock under which the outcome is decided. So the handler of the outcome, which is enqueued
    /// afterwards, comes later. Putting a block on a queue calls no code of the user. The operation is not kept alive.
    package final func enqueueBeforeOutcome(on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) {
        let permit = handlerPermit()
        let isEnqueued = core.withLock { core in
            guard core.machine.ending == nil else { return false }
            queue.async { [weak self] in
                if permit.allowsHandler(of: self) { handler() }
            }
            return true
        }
        if !isEnqueued { permit.withdraw() }
    }
}

/// Counts how often a group or a queue was canceled as a whole, for the handlers of operations that have left it.
final class CancellationMark: Sendable {
    private let value: Atomic<Int>
    // Sendable: written in `init` and `deinit` only.
    private nonisolated(unsafe) var outer: CancellationMark?

    /// Creates a mark.
    ///
    /// - Parameters:
    ///   - isSet: Whether the group was canceled before.
    ///   - outer: The mark of the group around the group.
    init(isSet: Bool = false, in outer: CancellationMark? = nil) {
        value = Atomic(isSet ? 1 : 0)
        self.outer = outer
    }

    deinit {
        // Groups can be nested deep: the marks are freed in a loop, not in a recursion.
        if outer != nil { ThreadWorklist.letGo(exchange(&outer, with: nil)) }
    }

    var count: Int { value.load(ordering: .acquiring) }

    func set() { value.add(1, ordering: .acquiringAndReleasing) }

    /// Whether the group or one around it was canceled.
    var isSet: Bool {
        var next: CancellationMark? = self
        while let mark = next {
            if mark.count > 0 { return true }
            next = mark.outer
        }
        return false
    }
}
