// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What may be done about a child that gave no result.
extension GroupOperation {
    /// Asks `hook` about each child of that result type that gives no result, before the policy or the body learns of
    /// it.
    ///
    /// It may give the result itself, let another operation take the child's place, or let it fail:
    ///
    /// ```swift
    /// let load = TaskOperation { () async throws -> Int in throw CancellationError() }
    /// let sizes = GroupOperation.all([load])
    /// sizes.recover(atMost: 3) { (failed: FailedChild<Int>) in
    ///     failed.attempt < 3 ? .operation(TaskOperation { 7 }) : .result(0)
    /// }
    /// ```
    ///
    /// The hook may wait, for as long as it takes: the child takes up no place meanwhile, and the group does not end.
    /// It is called in a task of its own, which is cancelled with the group; what it says after that is dropped, and
    /// not waited for. It is not asked about a child that was cancelled with the group, or because of what it depends
    /// on. What depends on the child itself is told of the child's own end, not of the recovery.
    ///
    /// Of several hooks the one given with the child is asked, or else the first that was added and fits.
    ///
    /// - Parameters:
    ///   - limit: How often it is asked for one child: again each time that what took the child's place gave no result.
    ///   - hook: What to do. If it throws, the child has failed, and ``GroupFailure/Child/recoveryFailure`` says so.
    public func recover<Value: Sendable>(
        atMost limit: Int = 1, _ hook: @escaping @Sendable (FailedChild<Value>) async throws -> ChildRecovery<Value>
    ) {
        engine.add(RecoveryHook(limit: limit, hook))
    }
}

extension GroupScope {
    /// Runs a child and gives its result, or what `hook` makes of its failure.
    ///
    /// The error that is thrown is the child's own, if it could not be recovered. About what is somebody else's, and
    /// only awaited, the hook is not asked. All else is as in ``GroupOperation/recover(atMost:_:)``.
    public func run<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1, recoveringAtMost limit: Int = 1,
        by hook: @escaping @Sendable (FailedChild<ResultType>) async throws -> ChildRecovery<ResultType>
    ) async throws(OperationFailure<ErrorType>) -> ResultType {
        try await outcome(of: child, terms: ChildTerms(weight: weight, hook: RecoveryHook(limit: limit, hook))).get()
    }

    /// Runs a child while the calling thread waits, and gives its result, or what `hook` makes of its failure.
    @available(*, noasync, message: "Use run(_:weight:recoveringAtMost:by:) in an async body: this blocks the thread.")
    public func perform<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1, recoveringAtMost limit: Int = 1,
        by hook: @escaping @Sendable (FailedChild<ResultType>) async throws -> ChildRecovery<ResultType>
    ) throws(OperationFailure<ErrorType>) -> ResultType {
        try outcomeOnThread(of: child, terms: ChildTerms(weight: weight, hook: RecoveryHook(limit: limit, hook))).get()
    }
}
