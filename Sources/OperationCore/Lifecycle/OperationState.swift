// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where an operation stands, in place of the three Booleans of `Foundation.Operation`.
///
/// No case will be added.
public enum OperationState: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// The body has not begun: the operation waits to be started, for its dependencies, or for its delay.
    case notStarted
    /// The body runs, or what it began does.
    case executing
    /// The operation was put on hold after it had begun, and can be resumed.
    case suspended
    /// The operation ended with a result or an error.
    case finished
    /// The operation was cancelled. It may still have to be started by its queue, or to wind down.
    case cancelled

    /// The state in words.
    public var description: String {
        self == .notStarted ? "not started" : rawValue
    }

    /// Whether the operation is not started, executing or suspended.
    public var isWorkingOrInProcess: Bool { !isFinishedOrCancelled }

    /// Whether the operation finished or was cancelled.
    public var isFinishedOrCancelled: Bool { self == .finished || self == .cancelled }
}
