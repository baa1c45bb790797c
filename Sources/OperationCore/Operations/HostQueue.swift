// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch

// Classes in a higher folder inherit from these classes. References to protocols would take two words in each
// operation. The methods are called without holding a lock, unless they say otherwise.

/// The queue of this package that holds an operation.
package class HostQueue: @unchecked Sendable {
    // Sendable: a subclass adds only state that is.

    package final let name: String
    /// The mark that enqueued handlers of the queue's operations check, even after these operations have ended.
    final let cancellations = CancellationMark()
    private let chosenCallbackQueue = Locked<DispatchQueue?>(nil)

    init(name: String) { self.name = name }

    /// The callback queue of the operations that the queue runs, if one was set.
    final var callbackQueue: DispatchQueue? {
        get { chosenCallbackQueue.withLock { $0 } }
        set {
            chosenCallbackQueue.release { exchange(&$0, with: newValue) }
            OperationDefaults.recordInheritance()
        }
    }

    /// Checks the stage of an operation again after a change.
    func reconsider(_ operation: ManagedOperation) {}

    /// Handles the end of an operation of the queue.
    func didEnd(_ slot: Int32, _ ending: LifecycleMachine.Ending) {}

    /// Returns operations that must end before barriers let an operation of the queue begin.
    func operationsBeforeBarriers(of operation: ManagedOperation, atMost most: Int) -> [ManagedOperation] { [] }

    /// Prevents entries from beginning until `release()`.
    func hold() {}

    func release() {}

    /// Notes that a thread that has a slot of the queue waits, or returns `false` if too many threads wait.
    func beginRest() -> Bool { true }

    func endRest() {}

    /// Gives up the slot of an operation whose hook is about to wait on a thread of another pool.
    ///
    /// - Returns: A closure that takes a slot again, or `nil` if the operation holds no slot.
    func hookWillWait(of operation: ManagedOperation) -> (() -> Void)? { nil }

    /// Records that the handler of an operation is enqueued, if the queue is recorded.
    ///
    /// - Returns: A closure that records that the handler begins.
    func recordHandler(at slot: Int32) -> (@Sendable () -> Void)? { nil }
}

/// The membership of an operation in the operations of its owner.
package class OwnerLink: @unchecked Sendable {
    // Sendable: a subclass adds only state that is.

    /// Ends the membership, because the operation has ended, has another owner, or its handler begins.
    func withdraw() {}

    /// The cause with which the operation is canceled if its owner is gone, or `nil` if the owner exists.
    var causeIfOwnerIsGone: CancellationCause? { nil }

    /// Enters the operation once more, for a handler that begins after its end.
    func entered(again operation: ManagedOperation) -> OwnerLink { self }
}
