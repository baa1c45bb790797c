// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why an operation does not run, or where else it is: facts for a program, a sentence for a person.
///
/// ```swift
/// let queue = QueueManager("uploads")
/// let prepare = ClosureOperation { 1 }, upload = ClosureOperation { 2 }
/// upload.addDependency(prepare)
/// try queue.add(upload)
/// print(queue.explain(upload))
/// // ClosureOperation<Int, Never> waits in queue uploads: for ClosureOperation<Int, Never>
/// // (not started, and in no queue: nobody will start it).
/// ```
///
/// It tells of the moment in which it was made; dependencies are asked one after another, so they may have moved on.
public struct QueueExplanation: Sendable, CustomStringConvertible {
    /// The operation that it is about.
    public let operation: Operation
    /// The queue that was asked.
    public let queue: String
    /// Where the operation stands.
    public let standing: OperationStanding
    /// All that keeps it from running; none if nothing does, or if it is not in the queue.
    public let reasons: [Reason]

    /// One thing that keeps an operation from running.
    ///
    /// More cases may be added.
    public enum Reason: Sendable {
        /// An operation that has not ended.
        case dependency(Dependency)
        /// A delay, or something by which it was not admitted yet.
        case hold(Hold)
        /// The queue is suspended, and why or by whom, if that was said: see ``QueueManager/suspend(because:)``.
        case suspended(because: String?)
        /// It is a barrier, or stands behind one.
        case barrier(BarrierWait)
        /// As many run as may, and these they are.
        case width(Int, holders: [QueueEntry])
        /// All threads that the queue may have are taken by these.
        case threads(Int, holders: [QueueEntry])
        /// The queues of the process have as many threads as they may, which all have something to do.
        case threadLimit(Int)
        /// So many that are ready are more urgent.
        case turn(ahead: Int)
        /// An operation of another kind says by itself that it is not ready.
        case ownReadiness
        /// It began, and was put on hold.
        case operationSuspended
        /// It began, and waits for something in the middle of its work, without a place of the queue.
        case resting(WaitReason)
        /// It was cancelled, and its body winds down.
        case windingDown
    }

    /// An operation that another waits for.
    public struct Dependency: Sendable {
        /// The operation that is waited for.
        public let operation: Operation
        /// Where it stands.
        public let standing: OperationStanding
    }

    /// What holds back an entry of whose dependencies none is left.
    public struct Hold: Sendable {
        /// What it is: `delay`, `condition`, `throttle` or `category`; others may be added.
        public let kind: String
        /// What there is to say about it, as the rest of a sentence that begins with "by".
        public let detail: String
        /// Those that have what it needs, in whatever queue they are.
        public let holders: [Operation]
    }

    /// What a barrier makes an entry wait for.
    public struct BarrierWait: Sendable {
        /// Whether the entry is a barrier itself.
        public let isBarrier: Bool
        /// The barriers before it, in no order.
        public let barriers: [QueueEntry]
        /// All that must end before it, the barriers included, in no order.
        public let ahead: [QueueEntry]
    }
}

/// Where an operation stands, in a queue or out of one.
///
/// More cases may be added.
public enum OperationStanding: Sendable, Hashable, CustomStringConvertible {
    /// In a queue of this package, of that name.
    case inQueue(String, QueueEntry.State)
    /// A child of a group of that name, which has not given it to a queue yet.
    case inGroup(String)
    /// In an `OperationQueue`; this can be seen on Linux only.
    case inOperationQueue
    /// In no queue that could be seen, and started.
    case executing
    /// In no queue that could be seen, and started, but what it waits for has not ended.
    case startedAndWaiting
    /// In no queue that could be seen, and not started: nobody will start it unless you do.
    case notStarted
    /// It ended.
    case ended(QueueEntry.Ending)

    /// Where it stands, in words.
    public var description: String {
        switch self {
        case .inQueue(let queue, let state): "\(state) in queue \(queue)"
        case .inGroup(let group): "a child of \(group), waiting for the group's start or for a place in it"
        case .inOperationQueue: "in an OperationQueue"
        case .executing: "executing, in no queue"
        case .startedAndWaiting: "started by hand, waiting for its dependencies"
        case .notStarted: "not started, and in no queue: nobody will start it"
        case .ended(.success): "ended"
        case .ended(.failure): "failed"
        case .ended(.cancelled): "cancelled"
        }
    }
}
