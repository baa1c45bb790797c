// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// An operation with a result and an error, for code that is written for all of them or names an operation's own type.
///
/// ``AsyncOperation`` and ``SyncOperation`` conform; there is nothing to implement.
public protocol ResultOperation: ManagedOperation {
    /// The type of the result.
    associatedtype ResultType: Sendable
    /// The type of the error.
    associatedtype ErrorType: Error

    /// The outcome, as soon as it is decided.
    var finalOutcome: OperationOutcome<ResultType, ErrorType> { get async }
}

extension TypedOperation: ResultOperation {}
