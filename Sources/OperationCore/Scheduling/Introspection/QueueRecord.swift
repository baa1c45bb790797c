// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What ran when in a queue, since its recording was switched on.
public struct QueueRecord: Sendable {
    /// The queue's name.
    public let queue: String
    /// The operations and closures, in the order in which they were added.
    public let runs: [QueueRun]
    /// How many are not in it any more because there were more than are remembered.
    public let forgottenCount: Int

    package init(queue: String, runs: [QueueRun], forgottenCount: Int = 0) {
        self.queue = queue
        self.runs = runs
        self.forgottenCount = forgottenCount
    }
}

/// One operation or closure in the record of a queue.
public struct QueueRun: Sendable, Identifiable {
    /// Counts up in the order in which they were added.
    public let id: Int
    /// The name of the operation or closure.
    public package(set) var name: String
    /// When it was added, or when the recording began.
    public package(set) var added: OperationInstant
    /// How long it waited for dependencies.
    public package(set) var waitingForDependencies = Duration.zero
    /// How long it was held back by a delay, or was not admitted.
    public package(set) var held = Duration.zero
    /// How long it was ready and waited for a place.
    public package(set) var waitingForPlace = Duration.zero
    /// When it began; nil if it did not.
    public package(set) var started: OperationInstant?
    /// When it ended; nil if it has not.
    public package(set) var ended: OperationInstant?
    /// How it ended; nil if it has not.
    public package(set) var ending: QueueEntry.Ending?
    /// When its handler was put on the callback queue; nil if it has none.
    public package(set) var handlerEnqueued: OperationInstant?
    /// When its handler began; nil if it has none, or if that has not been called.
    public package(set) var handlerBegan: OperationInstant?
    /// The place at which it ran, counted from 0: no two that run at the same time have the same.
    public package(set) var lane: Int?
    /// Those in the record that it waited for.
    public package(set) var dependencies: [QueueRun.ID] = []
    /// Which object it is, or was: after its end another may lie at the same address.
    package var object: ObjectIdentifier?

    package init(id: Int, name: String, added: OperationInstant) {
        self.id = id
        self.name = name
        self.added = added
    }

    /// How long it executed; nil if it did not, or has not ended.
    public var executing: Duration? {
        guard let started, let ended else { return nil }
        return started.duration(to: ended)
    }

    /// How long its handler waited on the callback queue; nil if it was not called.
    public var handlerDelay: Duration? {
        guard let handlerEnqueued, let handlerBegan else { return nil }
        return handlerEnqueued.duration(to: handlerBegan)
    }
}

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
