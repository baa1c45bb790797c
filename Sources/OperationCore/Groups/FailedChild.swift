// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A child that gave no result, as a recovery sees it: before its group does.
public struct FailedChild<Value: Sendable>: Sendable {
    /// The child itself, which has ended.
    public let operation: ManagedOperation
    /// Its error, or why it was cancelled; from the second time on, that of the operation that last took its place.
    public let failure: OperationFailure<any Error>
    /// How often a recovery was asked for this child, this time included.
    public let attempt: Int

    /// The operation's name, or else that of its type.
    public var name: String { operation.life.displayName }

    /// The error, if it is one of that type.
    public func error<Wanted: Error>(as type: Wanted.Type = Wanted.self) -> Wanted? {
        failure.underlyingError as? Wanted
    }
}
