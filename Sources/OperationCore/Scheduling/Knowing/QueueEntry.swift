// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What was added to a queue: an operation of any kind, or a closure.
public struct QueueEntry: Sendable, Identifiable, Hashable, CustomStringConvertible {
    /// Tells an entry from all others that its queue ever had.
    public struct ID: Sendable, Hashable {
        let slot: QueueMachine.Slot
        let generation: UInt32
    }

    /// Where an entry stands that has not ended.
    ///
    /// More cases may be added.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// Dependencies of it have not ended.
        case waiting
        /// A delay that it asked for is not over, or it was not admitted yet.
        case held
        /// It may begin as soon as there is a place for it.
        case ready
        /// It began.
        case running
        /// It was cancelled before it began, and is about to end.
        case ending
    }

    /// How an entry ended.
    ///
    /// No case will be added.
    public enum Ending: String, Sendable, Hashable, CaseIterable {
        /// With a result. Closures, and operations of other kinds that were not cancelled, end like this.
        case success
        /// With an error.
        case failure
        /// It was cancelled.
        case cancelled
    }

    /// Tells it from all others.
    public let id: ID
    /// The operation; nil for a closure.
    public let operation: Operation?
    private let closureName: String?

    init(_ slot: QueueMachine.Slot, _ entry: QueueMachine.Entry) {
        id = ID(slot: slot, generation: entry.generation)
        operation = entry.work.operation
        closureName = entry.details?.name
    }

    /// What it waits for now in the middle of its work, without a place of the queue; nil while it does not.
    ///
    /// The operation is asked: it may have gone on since the entry was listed.
    public var waitReason: WaitReason? { (operation as? ManagedOperation)?.waitReason }

    /// The name of the operation, or else of its type; that of a closure, or else "closure".
    public var name: String { operation?.displayName ?? closureName ?? "closure" }

    /// The name.
    public var description: String { name }

    /// Whether it is the same entry.
    public static func == (left: QueueEntry, right: QueueEntry) -> Bool { left.id == right.id }

    /// Feeds the identity into the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension QueueEntry.State {
    /// Nil where nobody stands.
    init?(_ stage: QueueMachine.Stage) {
        switch stage {
        case .free: return nil
        case .entering, .waiting: self = .waiting
        case .held: self = .held
        case .ready, .dealt: self = .ready
        case .running: self = .running
        case .ending: self = .ending
        }
    }
}

extension QueueEntry.Ending {
    init(_ ending: LifecycleMachine.Ending) {
        switch ending {
        case .success: self = .success
        case .failure: self = .failure
        case .cancelled: self = .cancelled
        }
    }
}

extension QueueMachine.Work {
    /// The operation, unless it is a closure.
    var operation: Operation? {
        switch self {
        case .operation(let operation): operation
        case .foreign(let entry): entry.operation
        case .closure, .none: nil
        }
    }
}
