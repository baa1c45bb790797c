// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How an operation ended: with a result, with an error of the operation's own type, or cancelled.
///
/// An operation has exactly one outcome, decided once. What ends from outside (a timeout, a dependency that failed), or
/// gives no result, is a cancellation with a ``CancellationCause``. An error is of the type that the operation's author
/// chose: yours, or one such as ``FileOperationError`` for operations that the library brings along.
///
/// No case will be added.
public enum OperationOutcome<ResultType, ErrorType: Error> {
    /// The operation gave its result.
    case success(ResultType)
    /// The operation failed with the user's error.
    case failure(ErrorType)
    /// The operation was ended before it gave a result or an error.
    case cancelled(CancellationCause)
}

extension OperationOutcome: Sendable where ResultType: Sendable {}
extension OperationOutcome: Equatable where ResultType: Equatable, ErrorType: Equatable {}

extension OperationOutcome {
    /// The result, if there is one.
    public var result: ResultType? {
        if case .success(let result) = self { result } else { nil }
    }

    /// The user's error, if there is one.
    public var error: ErrorType? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// Why the operation was cancelled, if it was.
    public var cancellationCause: CancellationCause? {
        if case .cancelled(let cause) = self { cause } else { nil }
    }

    /// The result, or else the failure as a typed error.
    public func get() throws(OperationFailure<ErrorType>) -> ResultType {
        switch self {
        case .success(let result): return result
        case .failure(let error): throw .failed(error)
        case .cancelled(let cause): throw .cancelled(cause)
        }
    }
}
