// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
