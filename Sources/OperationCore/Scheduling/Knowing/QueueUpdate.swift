// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a reader of a queue's events is given.
///
/// No case will be added.
public enum QueueUpdate: Sendable {
    /// The state of the queue to begin with; events go on from it.
    case snapshot(QueueSnapshot)
    /// One change, which follows what came before without a gap.
    case event(QueueEvent)
    /// The reader was too slow, and so many events were dropped: the state of the queue with which to begin anew.
    case missed(UInt64, QueueSnapshot)

    /// The state, unless it is an event.
    public var snapshot: QueueSnapshot? {
        switch self {
        case .snapshot(let snapshot), .missed(_, let snapshot): snapshot
        case .event: nil
        }
    }

    /// The event, if it is one.
    public var event: QueueEvent? {
        if case .event(let event) = self { event } else { nil }
    }
}
