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

/// An error that describes why an operation cannot wait for another operation.
public struct DependencyError: Error, Sendable, Equatable, CustomStringConvertible, LocalizedError {
    /// The code that identifies the error.
    public let code: Code
    /// A sentence that describes the refused dependency and what to do about it.
    public let message: String
    /// The names of the operations along the cycle, or an empty array if there is no cycle.
    ///
    /// The first name and the last name are the same.
    public let path: [String]

    /// The same sentence as ``message``.
    public var description: String { message }
    /// The same sentence as ``message``.
    public var errorDescription: String? { message }

    /// A code that identifies a dependency error.
    ///
    /// Later versions may add codes. If you compare codes, also handle unknown codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code.
        public let description: String

        private init(name: String) { description = name }

        /// The dependency would make operations wait for each other in a cycle.
        public static let cycle = Code(name: "cycle")
        /// The operation was started before the dependency was added.
        public static let alreadyStarted = Code(name: "alreadyStarted")
    }

    static func cycle(_ path: [String]) -> DependencyError {
        let message =
            path.count == 2
            ? "\(path[0]) cannot depend on itself."
            : "This dependency would close a cycle in which each operation waits for the next one: "
                + "\(path.joined(separator: " → ")). Remove one of these dependencies."
        return DependencyError(code: .cycle, message: message, path: path)
    }

    static func alreadyStarted(_ name: String, dependency: String) -> DependencyError {
        DependencyError(
            code: .alreadyStarted,
            message: "\(name) was already started, so it cannot wait for \(dependency). "
                + "Add dependencies before you start an operation or add it to a queue.",
            path: [])
    }
}

/// An operation that ended without a result, as its dependents see it.
struct UnsuccessfulDependency {
    let failure: OperationFailure<any Error>
    let cause: CancellationCause

    /// Returns `nil` if the operation succeeded, or if it is of a kind that does not report failures.
    init?(_ operation: Operation) {
        let name = operation.displayName
        if let error = (operation as? ManagedOperation)?.failureAsError {
            failure = .failed(error)
            cause = .dependencyFailed(name, error)
        } else if operation.isCancelled {
            let upstreamCause = (operation as? ManagedOperation)?.cancellationCause
            failure = .cancelled(upstreamCause ?? .requested)
            cause = .dependencyCancelled(name, upstreamCause)
        } else {
            return nil
        }
    }

    /// Returns a verdict that makes the waiting operation fail with an error of its own type.
    func failing<ErrorType: Error>(
        with makeError: (OperationFailure<any Error>) -> ErrorType
    ) -> DependencyEdge.Verdict {
        ThreadNotes.current.seat?.reportChanges()
        let error = makeError(failure)
        return .fail { downstream in
            (downstream as? any FailableOperation)?.fail(with: error)
        }
    }
}

/// An operation that code can let fail without knowing its types.
protocol FailableOperation: ManagedOperation {
    func fail(with error: any Error)
}

extension TypedOperation: FailableOperation {
    func fail(with error: any Error) {
        guard let error = error as? ErrorType else { return }
        let box = OutcomeBox(error)
        if !failByRule(keeping: box) { box.free(as: ErrorType.self) }
    }
}
