// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A record of a queue's operations and closures since the recording began.
public struct QueueRecord: Sendable {
    /// The name of the queue.
    public let queue: String
    /// The recorded operations and closures, in the order in which they were added.
    public let runs: [QueueRun]
    /// The number of operations and closures that were removed because the record exceeded its limit.
    public let forgottenCount: Int

    package init(queue: String, runs: [QueueRun], forgottenCount: Int = 0) {
        self.queue = queue
        self.runs = runs
        self.forgottenCount = forgottenCount
    }
}

/// A record of an operation or a closure in a queue, including how long it waited and when it began and ended.
public struct QueueRun: Sendable, Identifiable {
    /// The number of the operation or closure, which increases with each operation or closure that is added.
    public let id: Int
    /// The name of the operation or closure.
    public package(set) var name: String
    /// The time at which the entry was added or the recording began, whichever is later.
    public package(set) var added: OperationInstant
    /// The duration for which the entry waited for its dependencies, or for its suspended group to resume.
    public package(set) var waitingForDependencies = Duration.zero
    /// The duration for which the entry waited because of a delay, a condition, a category or a throttle.
    public package(set) var held = Duration.zero
    /// The duration for which the entry was in the state ``QueueEntry/State/ready``, for example because it waited for
    /// a slot.
    public package(set) var waitingForPlace = Duration.zero
    /// The time at which the entry began, or `nil` if it did not begin.
    public package(set) var started: OperationInstant?
    /// The time at which the entry ended, or `nil` if it has not ended.
    public package(set) var ended: OperationInstant?
    /// The way in which the entry ended, or `nil` if the entry has not ended.
    public package(set) var ending: QueueEntry.Ending?
    /// The time at which the operation enqueued its handler on the callback queue, or `nil` if the operation has no
    /// handler.
    package var handlerEnqueued: OperationInstant?
    /// The time at which the handler began, or `nil` if no handler was called.
    package var handlerBegan: OperationInstant?
    /// The zero-based index of the lane that contains the entry in a diagram, or `nil` if the entry did not begin.
    ///
    /// Entries that ran at the same time never have the same lane.
    public package(set) var lane: Int?
    /// The identifiers of the recorded entries on which this entry depended.
    public package(set) var dependencies: [QueueRun.ID] = []
    /// The identifier of the object, which a new object can get after this object is freed.
    package var object: ObjectIdentifier?

    package init(id: Int, name: String, added: OperationInstant) {
        self.id = id
        self.name = name
        self.added = added
    }

    /// The duration for which the entry ran, or `nil` if the entry did not begin or has not ended.
    public var executing: Duration? {
        guard let started, let ended else { return nil }
        return started.duration(to: ended)
    }

    /// The duration for which the operation's handler waited on the callback queue before the call, or `nil` if no
    /// handler was called.
    public var handlerDelay: Duration? {
        guard let handlerEnqueued, let handlerBegan else { return nil }
        return handlerEnqueued.duration(to: handlerBegan)
    }
}

/// A journal that reports the changes of a queue to its observers.
///
/// The journal exists only while there is an observer, so that other queues pay only for a check. The journal is
/// deliberately not `Sendable` and is used only under the queue's lock.
final class QueueJournal {
    enum Change {
        /// An entry changed its stage, or was added if its old stage is `entering`.
        case placed(QueueMachine.Slot, QueueMachine.Entry, from: QueueMachine.Stage)
        /// An entry has ended and is about to be removed.
        case ended(QueueMachine.Slot, QueueMachine.Entry, LifecycleMachine.Ending)
        /// A running entry waits without a slot.
        case rested(QueueMachine.Slot, QueueMachine.Entry, WaitReason)
        /// An entry that waited has a slot again.
        case wentOn(QueueMachine.Slot, QueueMachine.Entry)
        case width(Int?)
        case suspension(Bool)
        case closing
    }

    private(set) var followers: [any QueueFollower] = []
    private var calls: [@Sendable () -> Void] = []

    func record(_ change: Change) {
        for follower in followers { follower.record(change, self) }
    }

    /// Stores a call of an observer until no lock is held.
    func later(_ call: @escaping @Sendable () -> Void) { calls.append(call) }

    func takeCalls() -> [@Sendable () -> Void] { calls.isEmpty ? [] : exchange(&calls, with: []) }

    func add(_ follower: any QueueFollower) { followers.append(follower) }

    func remove(_ follower: any QueueFollower) { followers.removeAll { $0 === follower } }
}

/// An observer of the changes of a queue.
protocol QueueFollower: AnyObject {
    /// Handles a change under the queue's lock.
    ///
    /// The method must not call code outside the observer, and must not release the last reference to an object.
    func record(_ change: QueueJournal.Change, _ journal: QueueJournal)
}

extension QueueMachine {
    mutating func add(_ follower: any QueueFollower) {
        let present = journal ?? QueueJournal()
        present.add(follower)
        journal = present
    }

    /// Removes an observer, and the journal with the last one, and returns the calls to make after the lock is
    /// released.
    mutating func remove(_ follower: any QueueFollower) -> [@Sendable () -> Void] {
        guard let present = journal else { return [] }
        present.remove(follower)
        if present.followers.isEmpty { journal = nil }
        return present.takeCalls()
    }
}
