// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A rule that determines whether an operation runs, fails or is canceled if one of its dependencies fails or is
/// canceled.
public struct DependencyRule<ErrorType: Error>: Sendable {
    let judge: DependencyEdge.Judge?

    /// The operation runs regardless of the dependency's outcome, like a plain `Foundation.Operation`.
    public static var runAnyway: Self { Self(judge: nil) }

    /// A rule that cancels the operation with a cause that contains the dependency's error or cancellation cause.
    public static var cancel: Self {
        Self { upstream in
            UnsuccessfulDependency(upstream).map { .cancel($0.cause) } ?? .proceed
        }
    }

    /// Returns a rule that makes the operation fail with an error that a closure returns.
    ///
    /// The body of the operation does not run.
    ///
    /// The closure is called on the thread on which the dependency ended. If several operations depend on the same
    /// dependency, OperationKit applies their rules one after another. Therefore, do not wait in the closure for
    /// another operation that depends on the same dependency. The wait might never end.
    ///
    /// - Parameter makeError: A closure that receives the dependency's error or cancellation cause, and returns the
    ///   error with which this operation fails.
    public static func fail(
        _ makeError: @escaping @Sendable (OperationFailure<any Error>) -> ErrorType
    ) -> Self {
        Self { upstream in
            UnsuccessfulDependency(upstream).map { $0.failing(with: makeError) } ?? .proceed
        }
    }
}

/// A rule that determines which input an operation receives, or how the operation ends, if a dependency fails or is
/// canceled.
public struct MissingInputRule<Input: Sendable, ErrorType: Error>: Sendable {
    enum Choice: Sendable {
        case cancel
        case fail(@Sendable (OperationFailure<any Error>) -> ErrorType)
        case use(Input)
    }

    let choice: Choice

    /// A rule that cancels the operation with a cause that contains the dependency's error or cancellation cause.
    public static var cancel: Self { Self(choice: .cancel) }

    /// Returns a rule that makes the operation fail with an error that a closure returns.
    ///
    /// - Parameter makeError: A closure that receives the dependency's error or cancellation cause, and returns the
    ///   error with which this operation fails. The closure is called on the thread on which the dependency ended. As
    ///   with the closure of ``DependencyRule/fail(_:)``, do not wait in the closure for another operation that depends
    ///   on the same dependency.
    public static func fail(
        _ makeError: @escaping @Sendable (OperationFailure<any Error>) -> ErrorType
    ) -> Self {
        Self(choice: .fail(makeError))
    }

    /// Returns a rule that lets the operation run with a given value as its input.
    ///
    /// - Parameter value: The value that replaces the result of the dependency.
    public static func use(_ value: Input) -> Self { Self(choice: .use(value)) }
}
