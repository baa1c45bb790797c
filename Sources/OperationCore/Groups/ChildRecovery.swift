// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a recovery does about a child that gave no result.
///
/// ```swift
/// let names = GroupOperation.all([ClosureOperation { () throws -> String in throw CancellationError() }])
/// names.recover { (failed: FailedChild<String>) in .result("nobody") }
/// ```
public struct ChildRecovery<Value: Sendable>: Sendable {
    let answer: RecoveryAnswer

    /// The child counts as one that gave this.
    public static func result(_ value: Value) -> ChildRecovery {
        ChildRecovery(answer: .result(StandIn(value)))
    }

    /// Another operation takes the child's place: the same work made again, or other work with such a result.
    ///
    /// It becomes a child of the group in the place of the one that failed. A group as well, if it takes several.
    public static func operation<Failure>(_ other: TypedOperation<Value, Failure>) -> ChildRecovery {
        ChildRecovery(answer: .operation(other, { other.outcome?.result.map { StandIn($0) } }))
    }

    /// The child has failed, and the group is told so.
    public static var fail: ChildRecovery { ChildRecovery(answer: .fail(nil)) }
}

/// The answer of a recovery whose type is not known.
enum RecoveryAnswer: Sendable {
    case result(any AnyStandIn)
    case operation(ManagedOperation, _ result: @Sendable () -> (any AnyStandIn)?)
    /// With what the recovery itself threw.
    case fail((any Error)?)
}

/// The result that a child did not give, and that its group takes for it.
final class StandIn<Value: Sendable>: AnyStandIn {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// A result of whatever type.
protocol AnyStandIn: AnyObject, Sendable {}

extension TypedOperation {
    /// How the operation ended as its group sees it: what a recovery gave takes the place of a result.
    final var outcomeInGroup: OperationOutcome<ResultType, ErrorType>? {
        guard let outcome else { return nil }
        if case .success = outcome { return outcome }
        let standIn = core.withLock { $0.extras?.standIn } as? StandIn<ResultType>
        return standIn.map { .success($0.value) } ?? outcome
    }
}
