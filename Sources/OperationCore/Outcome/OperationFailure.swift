// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why there is no result: the user's own error, or a cancellation with its cause.
///
/// This is what `value`, `run()` and `startAndWait()` throw. For an operation whose `ErrorType` is `Never` only
/// `cancelled` is left, and the compiler knows it.
///
/// No case will be added.
public enum OperationFailure<ErrorType: Error>: Error {
    /// The operation failed with the user's error.
    case failed(ErrorType)
    /// The operation was cancelled.
    case cancelled(CancellationCause)
}

extension OperationFailure: Equatable where ErrorType: Equatable {}

extension OperationFailure: CustomStringConvertible {
    /// One line for a log.
    public var description: String {
        switch self {
        case .failed(let error): "failed: \(error)"
        case .cancelled(let cause): "cancelled: \(cause)"
        }
    }
}

extension OperationFailure: LocalizedError {
    /// The sentence to show to a person.
    public var errorDescription: String? {
        switch self {
        case .failed(let error): (error as? any LocalizedError)?.errorDescription ?? "\(error)"
        case .cancelled(let cause): cause.message
        }
    }
}
