// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What becomes of an operation when one that it depends on fails or is cancelled.
public struct DependencyRule<ErrorType: Error>: Sendable {
    let judge: DependencyEdge.Judge?

    /// It runs anyway, as with Foundation's own dependencies.
    public static var runAnyway: Self { Self(judge: nil) }

    /// It is cancelled, with a cause that carries the other's error or cause.
    public static var cancel: Self {
        Self { upstream in
            UnsuccessfulDependency(upstream).map { .cancel($0.cause) } ?? .proceed
        }
    }

    /// It fails, with the error that `makeError` makes of the other's error or cause.
    ///
    /// Its body does not run.
    ///
    /// The closure is called on the thread on which the dependency ended, after all operations that wait for that
    /// dependency without a rule were released. Operations whose edges have a rule, or which receive an input, are
    /// released afterwards, one after another. The closure must not wait for one of them.
    ///
    /// - Parameter makeError: Returns the error of this operation.
    public static func fail(
        _ makeError: @escaping @Sendable (OperationFailure<any Error>) -> ErrorType
    ) -> Self {
        Self { upstream in
            UnsuccessfulDependency(upstream).map { $0.failing(with: makeError) } ?? .proceed
        }
    }
}

/// What takes the place of a result that a dependency did not give.
public struct MissingInputRule<Input: Sendable, ErrorType: Error>: Sendable {
    enum Choice: Sendable {
        case cancel
        case fail(@Sendable (OperationFailure<any Error>) -> ErrorType)
        case use(Input)
    }

    let choice: Choice

    /// The operation is cancelled, with a cause that carries the other's error or cause.
    public static var cancel: Self { Self(choice: .cancel) }

    /// The operation fails, with the error that `makeError` makes of the other's error or cause.
    public static func fail(
        _ makeError: @escaping @Sendable (OperationFailure<any Error>) -> ErrorType
    ) -> Self {
        Self(choice: .fail(makeError))
    }

    /// The operation runs with this value instead.
    public static func use(_ value: Input) -> Self { Self(choice: .use(value)) }
}

/// Why an operation cannot wait for another.
public struct DependencyError: Error, Sendable, Equatable, CustomStringConvertible, LocalizedError {
    /// The kind of the refusal.
    public let code: Code
    /// What was refused and what to do, as a sentence.
    public let message: String
    /// The names along the cycle, first and last the same; empty where there is none.
    public let path: [String]

    /// The sentence.
    public var description: String { message }
    /// The sentence.
    public var errorDescription: String? { message }

    /// The kind of a refusal.
    ///
    /// New kinds may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        private init(name: String) { description = name }

        /// Operations would wait for each other in a circle.
        public static let cycle = Code(name: "cycle")
        /// The operation was started before the dependency was added.
        public static let alreadyStarted = Code(name: "alreadyStarted")
    }

    static func cycle(_ path: [String]) -> DependencyError {
        let message =
            path.count == 2
            ? "\(path[0]) cannot depend on itself."
            : "This dependency would make operations wait for each other: \(path.joined(separator: " → ")) "
                + "(each waits for the next). Remove one of these dependencies."
        return DependencyError(code: .cycle, message: message, path: path)
    }

    static func alreadyStarted(_ name: String, dependency: String) -> DependencyError {
        DependencyError(
            code: .alreadyStarted,
            message: "\(name) was started, so it cannot wait for \(dependency) any more. "
                + "Add dependencies before an operation is started or given to a queue.",
            path: [])
    }
}

/// An operation that ended without a result, as those see it that waited for it.
struct UnsuccessfulDependency {
    let failure: OperationFailure<any Error>
    let cause: CancellationCause

    /// Nil if the operation succeeded, or if it is of a kind that cannot say.
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

    /// Lets the operation that waited fail with an error of its own type.
    func failing<ErrorType: Error>(
        with makeError: (OperationFailure<any Error>) -> ErrorType
    ) -> DependencyEdge.Verdict {
        WorkerSeat.flushCurrent()
        let error = makeError(failure)
        return .fail { downstream in
            (downstream as? any FailableOperation)?.fail(with: error)
        }
    }
}

/// The way to let an operation fail whose types are not known where it is decided.
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
