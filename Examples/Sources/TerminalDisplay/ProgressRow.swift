// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The progress of one task, which the display shows as one line.
public struct ProgressRow: Sendable, Hashable {
    /// The unit of the amounts.
    public enum Unit: Sendable, Hashable {
        /// Bytes, which the display shows with a rate.
        case bytes
        /// Other items, such as files or steps.
        case items
    }

    /// The state of the task.
    public enum State: Sendable, Hashable {
        /// The task has not begun.
        case waiting
        /// The task is in progress.
        case running
        /// The task waits for an event that its note describes.
        case paused
        /// The task has succeeded.
        case done
        /// The task has failed for the reason in its note.
        case failed

        /// A Boolean value that indicates whether the task has ended.
        public var isEnded: Bool { self == .done || self == .failed }
    }

    /// The name of the task.
    public var name: String
    /// The state of the task.
    public var state: State
    /// The completed amount.
    public var completed: Int64
    /// The total amount, or `nil` if the total is unknown.
    public var total: Int64?
    /// The amount that was complete before the task began, which does not count for the rate.
    public var inherited: Int64
    /// A note about the task.
    public var note: String
    /// The unit of the amounts.
    public var unit: Unit

    /// The amount that the task completed itself.
    var fresh: Int64 { completed &- inherited }

    /// The amount that is still missing, or 0 if the total is unknown or reached.
    var missing: Int64 {
        guard let total, total > completed else { return 0 }
        let (missing, overflows) = total.subtractingReportingOverflow(completed)
        return overflows ? .max : missing
    }

    /// Creates a row.
    public init(
        _ name: String, state: State = .waiting, completed: Int64 = 0, total: Int64? = nil, inherited: Int64 = 0,
        note: String = "", unit: Unit = .bytes
    ) {
        self.name = name
        self.state = state
        self.completed = completed
        self.total = total
        self.inherited = inherited
        self.note = note
        self.unit = unit
    }
}
