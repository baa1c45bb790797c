// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Synchronization

/// A namespace for process-wide settings that apply to operations without their own settings.
public enum OperationDefaults {
    private static let chosenQueue = Locked(DispatchQueue.main)
    private static let isChosen = Atomic(false)
    private static let isInherited = Atomic(false)

    /// The queue on which handlers are called if neither the operation nor its group or queue has a callback queue.
    ///
    /// The default is the main queue. If your program has no main run loop, like a service on Linux, set another queue
    /// once:
    ///
    /// ```swift
    /// OperationDefaults.callbackQueue = DispatchQueue(label: "callbacks")
    /// ```
    ///
    /// See ``TypedOperation/callbackQueue`` for the order in which the settings apply.
    public static var callbackQueue: DispatchQueue {
        get { isChosen.load(ordering: .acquiring) ? chosenQueue.withLock { $0 } : .main }
        set {
            chosenQueue.release { exchange(&$0, with: newValue) }
            isChosen.store(true, ordering: .releasing)
        }
    }

    /// Whether a callback queue was ever set for a group or a queue.
    ///
    /// Until then, an operation does not search for one, so that the search costs nothing. The queue of the process
    /// needs no search.
    static var mayInherit: Bool { isInherited.load(ordering: .acquiring) }

    /// Records that a callback queue was set for a group or a queue.
    static func recordInheritance() { isInherited.store(true, ordering: .releasing) }
}

/// The source of an operation's callback queue.
///
/// A higher rank replaces a lower one.
enum CallbackQueueRank: Comparable {
    case none
    /// From the operation's group, its queue or its original.
    case inherited
    /// From the base of a network operation.
    case base
    /// Set on the operation itself.
    case own
}

extension ManagedOperation {
    /// Sets the callback queue of an operation that has not set its own, as a base does for its operations.
    package final func setCallbackQueueOfBase(_ queue: DispatchQueue) { setCallbackQueue(queue, as: .base) }

    final func setCallbackQueue(_ queue: DispatchQueue, as rank: CallbackQueueRank) {
        // The previous queue is released without holding the lock, when this method returns.
        var queue: DispatchQueue? = queue
        storage.withLock { core in
            guard rank >= core.callbackQueueRank else { return }
            core.callbackQueueRank = rank
            swap(&core.callbackQueue, &queue)
        }
        guard rank > .inherited, original == nil, let ownGroup else { return }
        ownGroup.takeCallbackQueue(of: self)
        OperationDefaults.recordInheritance()
    }

    /// The queue on which a handler must be enqueued at this moment.
    package final var nearestCallbackQueue: DispatchQueue {
        // Use a loop instead of a recursion, because operations can be mapped to any depth.
        var next: ManagedOperation? = self
        while let operation = next {
            if let queue = operation.storage.withLock({ $0.callbackQueue }) { return queue }
            next = operation.mapSource
        }
        return original?.storage.withLock { $0.callbackQueue } ?? defaultCallbackQueue
    }

    /// The queue for an operation without a callback queue.
    final var defaultCallbackQueue: DispatchQueue {
        OperationDefaults.mayInherit
            ? inheritedCallbackQueue ?? OperationDefaults.callbackQueue : OperationDefaults.callbackQueue
    }

    private var inheritedCallbackQueue: DispatchQueue? {
        let (host, parent) = core.withLock { ($0.host, $0.parent) }
        return Self.callbackQueue(inheritedFrom: host, parent)
    }

    private static func callbackQueue(inheritedFrom host: HostQueue?, _ parent: ParentGroup?) -> DispatchQueue? {
        parent?.callbackQueue(ofChildrenIn: host) ?? host?.callbackQueue
    }

    /// Keeps the inherited callback queue of an operation that is about to leave its group and its queue.
    ///
    /// Handlers that are set later use it.
    final func keepCallbackQueue() {
        let (host, parent) = core.withLock { core -> (HostQueue?, ParentGroup?) in
            core.callbackQueue == nil ? (core.host, core.parent) : (nil, nil)
        }
        guard let queue = Self.callbackQueue(inheritedFrom: host, parent) else { return }
        life.setCallbackQueue(queue, as: .inherited)
    }
}
