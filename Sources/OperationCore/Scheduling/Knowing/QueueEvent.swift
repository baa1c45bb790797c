// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One change of a queue.
public struct QueueEvent: Sendable, CustomStringConvertible {
    /// What changed.
    ///
    /// More cases may be added.
    public enum Change: Sendable {
        /// An entry came in, and stands there.
        case added(QueueEntry, QueueEntry.State)
        /// An entry that does not run stands somewhere else now: `ready` for one whose dependencies ended.
        case moved(QueueEntry, QueueEntry.State)
        /// An entry began.
        case started(QueueEntry)
        /// An entry that runs waits for that from now on, and takes no place meanwhile: for a network, or before another
        /// attempt. It may be told again with another reason.
        case rested(QueueEntry, WaitReason)
        /// An entry that rested has a place again, and goes on.
        case wentOn(QueueEntry)
        /// An entry ended and is gone.
        case ended(QueueEntry, QueueEntry.Ending)
        /// Nothing begins any more.
        case suspended
        /// Entries may begin again.
        case resumed
        /// So many may run at once from now on; nil for any number.
        case widthChanged(Int?)
        /// The queue was shut down and takes nothing more.
        case closed
    }

    /// Counts up by one from event to event of a queue.
    public let number: UInt64
    /// What changed.
    public let change: Change

    /// The entry that it is about; nil if it is about the queue.
    public var entry: QueueEntry? {
        switch change {
        case .added(let entry, _), .moved(let entry, _), .started(let entry), .rested(let entry, _), .wentOn(let entry),
            .ended(let entry, _):
            entry
        case .suspended, .resumed, .widthChanged, .closed: nil
        }
    }

    /// The number and the change in one line.
    public var description: String {
        switch change {
        case .added(let entry, let state): "\(number) added \(entry), \(state)"
        case .moved(let entry, let state): "\(number) \(state) \(entry)"
        case .started(let entry): "\(number) started \(entry)"
        case .rested(let entry, let reason): "\(number) rests \(entry), \(reason)"
        case .wentOn(let entry): "\(number) goes on \(entry)"
        case .ended(let entry, let ending): "\(number) ended \(entry), \(ending)"
        case .suspended: "\(number) suspended"
        case .resumed: "\(number) resumed"
        case .widthChanged(let width): "\(number) width \(width.map { "\($0)" } ?? "unlimited")"
        case .closed: "\(number) closed"
        }
    }
}

extension QueueEvent.Change {
    init(_ change: QueueJournal.Change) {
        switch change {
        case .placed(let slot, let entry, from: let old):
            let state = QueueEntry.State(entry.stage) ?? .waiting
            let entry = QueueEntry(slot, entry)
            if old == .entering {
                self = .added(entry, state)
            } else if state == .running {
                self = .started(entry)
            } else {
                self = .moved(entry, state)
            }
        case .rested(let slot, let entry, let reason): self = .rested(QueueEntry(slot, entry), reason)
        case .wentOn(let slot, let entry): self = .wentOn(QueueEntry(slot, entry))
        case .ended(let slot, let entry, let ending):
            self = .ended(QueueEntry(slot, entry), QueueEntry.Ending(ending))
        case .width(let width): self = .widthChanged(width)
        case .suspension(true): self = .suspended
        case .suspension(false): self = .resumed
        case .closing: self = .closed
        }
    }
}
