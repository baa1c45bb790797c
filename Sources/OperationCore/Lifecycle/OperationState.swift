// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The state of an operation.
///
/// This type replaces the three Boolean properties of `Foundation.Operation`. This enumeration will get no more cases.
public enum OperationState: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// The body has not begun. The operation waits to be started, for its dependencies, or for its delay.
    case notStarted
    /// The body is running, or the work that the body began is still running.
    case executing
    /// The operation was suspended after it had begun, and can be resumed.
    case suspended
    /// The operation ended with a result or an error.
    case finished
    /// The operation was canceled, but may still have to be started by its queue, or to wind down.
    case cancelled

    /// A text that describes the state.
    public var description: String {
        self == .notStarted ? "not started" : rawValue
    }

    /// A Boolean value that indicates whether the operation is not started, executing or suspended.
    public var isWorkingOrInProcess: Bool { !isFinishedOrCancelled }

    /// A Boolean value that indicates whether the operation finished or was canceled.
    public var isFinishedOrCancelled: Bool { self == .finished || self == .cancelled }
}
