// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The state of an operation.
///
/// The cases combine `isExecuting`, `isFinished` and `isCancelled`. Only a major version may add cases.
public enum OperationState: Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// The body has not begun, either because the operation has not started, or because it is waiting for its
    /// dependencies, its start conditions or its delay.
    case notStarted
    /// The body is running, or the work that the body began is still running.
    case executing
    /// The operation was suspended after it began and can be resumed.
    case suspended
    /// The operation ended with a result or an error.
    case finished
    /// The operation was canceled, but its queue may still have to start it, or its body may still be running.
    case cancelled

    /// A string that describes the state.
    public var description: String {
        switch self {
        case .notStarted: "not started"
        case .executing: "executing"
        case .suspended: "suspended"
        case .finished: "finished"
        case .cancelled: "cancelled"
        }
    }

    /// A Boolean value that indicates whether the state is ``notStarted``, ``executing`` or ``suspended``.
    package var isWorkingOrInProcess: Bool { !isFinishedOrCancelled }

    /// A Boolean value that indicates whether the state is ``finished`` or ``cancelled``.
    package var isFinishedOrCancelled: Bool { self == .finished || self == .cancelled }
}
