// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One thing that goes on: what is shown as one line.
public struct ProgressRow: Sendable, Hashable {
    /// What is counted.
    public enum Unit: Sendable, Hashable {
        /// Bytes, shown with their rate.
        case bytes
        /// Whatever else: files, steps.
        case items
    }

    /// How far it is.
    public enum State: Sendable, Hashable {
        /// It has not begun.
        case waiting
        /// It goes on.
        case running
        /// It waits for something that its note names.
        case paused
        /// It came to its end.
        case done
        /// It failed; its note says why.
        case failed

        /// Whether nothing more will happen.
        public var isEnded: Bool { self == .done || self == .failed }
    }

    /// What it is called.
    public var name: String
    /// How far it is.
    public var state: State
    /// How much is there.
    public var completed: Int64
    /// How much there will be; nil if nobody knows.
    public var total: Int64?
    /// How much of it was there before it began here, and so says nothing of the rate.
    public var inherited: Int64
    /// What is to be said of it.
    public var note: String
    /// What is counted.
    public var unit: Unit

    /// The completed amount without the inherited one.
    var fresh: Int64 { completed &- inherited }

    /// The amount that is still missing, or 0 if the total is unknown or reached.
    var missing: Int64 {
        guard let total, total > completed else { return 0 }
        let (missing, overflows) = total.subtractingReportingOverflow(completed)
        return overflows ? .max : missing
    }

    /// Makes a row.
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
