// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Tells what changes in a queue to those who follow it.
///
/// There is one only as long as somebody follows: all others pay for a look whether there is. Not Sendable on purpose: it
/// is only touched under the queue's lock.
final class QueueJournal {
    enum Change {
        /// An entry stands in another stage than before; it came in if it was `entering`.
        case placed(QueueMachine.Slot, QueueMachine.Entry, from: QueueMachine.Stage)
        /// An entry is about to go.
        case ended(QueueMachine.Slot, QueueMachine.Entry, LifecycleMachine.Ending)
        /// A running entry waits, without a slot, for that.
        case rested(QueueMachine.Slot, QueueMachine.Entry, WaitReason)
        /// It has a slot again.
        case wentOn(QueueMachine.Slot, QueueMachine.Entry)
        case width(Int?)
        case suspension(Bool)
        case closing
    }

    private(set) var followers: [any QueueFollower] = []
    private var calls: [@Sendable () -> Void] = []

    func note(_ change: Change) {
        for follower in followers { follower.note(change, self) }
    }

    /// Leaves what a follower has to do where no lock is held.
    func later(_ call: @escaping @Sendable () -> Void) { calls.append(call) }

    func takeCalls() -> [@Sendable () -> Void] { calls.isEmpty ? [] : exchange(&calls, with: []) }

    func add(_ follower: any QueueFollower) { followers.append(follower) }

    func remove(_ follower: any QueueFollower) { followers.removeAll { $0 === follower } }
}

/// Somebody who follows the changes of a queue.
protocol QueueFollower: AnyObject {
    /// Called under the queue's lock: it calls nobody, and lets go of nothing that others may have let go of.
    func note(_ change: QueueJournal.Change, _ journal: QueueJournal)
}

extension QueueMachine {
    mutating func add(_ follower: any QueueFollower) {
        let present = journal ?? QueueJournal()
        present.add(follower)
        journal = present
    }

    /// Takes a follower out, and the journal with the last; returns calls that are to be made after the lock.
    mutating func remove(_ follower: any QueueFollower) -> [@Sendable () -> Void] {
        guard let present = journal else { return [] }
        present.remove(follower)
        if present.followers.isEmpty { journal = nil }
        return present.takeCalls()
    }
}
