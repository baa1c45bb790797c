// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A rule that determines what happens to an operation if one of its dependencies fails or is canceled.
public struct DependencyRule<ErrorType: Error>: Sendable {
    let judge: DependencyEdge.Judge?

    /// A rule that lets the operation run regardless of the dependency's outcome, like Foundation's own dependencies.
    public static var runAnyway: Self { Self(judge: nil) }

    /// A rule that cancels the operation, with a cause that contains the error or the cause of the dependency.
    public static var cancel: Self {
        Self { upstream in
            UnsuccessfulDependency(upstream).map { .cancel($0.cause) } ?? .proceed
        }
    }

    /// Returns a rule that makes the operation fail with an error of its own type.
    ///
    /// The body of the operation does not run.
    ///
    /// The closure is called on the thread on which the dependency ended, after all operations that wait for that
    /// dependency without a rule were released. Operations that have a rule for the dependency, or receive its result,
    /// are released afterward, one after another. The closure must not wait for any of these operations.
    ///
    /// - Parameter makeError: A closure that receives the error or the cause of the dependency, and returns the error
    ///   of this operation.
    public static func fail(
        _ makeError: @escaping @Sendable (OperationFailure<any Error>) -> ErrorType
    ) -> Self {
        Self { upstream in
            UnsuccessfulDependency(upstream).map { $0.failing(with: makeError) } ?? .proceed
        }
    }
}

/// A rule that determines what happens to an operation if a dependency gives no result.
public struct MissingInputRule<Input: Sendable, ErrorType: Error>: Sendable {
    enum Choice: Sendable {
        case cancel
        case fail(@Sendable (OperationFailure<any Error>) -> ErrorType)
        case use(Input)
    }

    let choice: Choice

    /// A rule that cancels the operation, with a cause that contains the error or the cause of the dependency.
    public static var cancel: Self { Self(choice: .cancel) }

    /// Returns a rule that makes the operation fail with an error of its own type.
    ///
    /// - Parameter makeError: A closure that receives the error or the cause of the dependency, and returns the error
    ///   of this operation. It is called on the thread on which the dependency ended, under the same conditions as the
    ///   closure of ``DependencyRule/fail(_:)``.
    public static func fail(
        _ makeError: @escaping @Sendable (OperationFailure<any Error>) -> ErrorType
    ) -> Self {
        Self(choice: .fail(makeError))
    }

    /// Returns a rule that lets the operation run with the given value as its input.
    public static func use(_ value: Input) -> Self { Self(choice: .use(value)) }
}
