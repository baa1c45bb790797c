// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the body of a group runs its children with.
public struct GroupScope: Sendable {
    package let engine: GroupEngine
    var isShielded = false

    /// Runs a child and gives its result, when it has ended; throws its error or its cancellation.
    ///
    /// An operation that is in a queue or in a group, was started, or has ended is only awaited: the group does not cancel it.
    /// Where the group is over, or would wait for itself, it throws a cancellation with the cause `groupRefused`. Cancelling
    /// the task that awaits, such as one of a task group in the body, cancels the child.
    ///
    /// The body of another operation may call this method, too. If that body is active in this group and the child could
    /// begin only after it, because the width of the group is used up, the child is canceled with the cause
    /// `waitsForItself`.
    ///
    /// The body of the child has the task-local values and the priority of the task that calls this method.
    public func run<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1
    ) async throws(OperationFailure<ErrorType>) -> ResultType {
        try await outcome(of: child, terms: ChildTerms(weight: weight)).get()
    }

    /// Runs a child and gives its result, or makes of its failure an error of your own.
    public func run<ResultType, ErrorType, NewError: Error>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1,
        orThrow makeError: (OperationFailure<ErrorType>) -> NewError
    ) async throws(NewError) -> ResultType {
        do throws(OperationFailure<ErrorType>) {
            return try await run(child, weight: weight)
        } catch {
            throw makeError(error)
        }
    }

    /// Runs a child while the calling thread waits, which must be that of the body, and gives its result; throws its error
    /// or its cancellation.
    ///
    /// A synchronous child runs on this very thread. For others the thread waits, and the group takes up no place in its
    /// queue meanwhile. As many threads may wait as ``QueueManager/threadLimit`` allows; past that the child is cancelled with
    /// the cause `tooManyWaits`. What is somebody else's is only awaited: see `run`.
    @available(*, noasync, message: "Use run(_:) in an async body: this blocks the thread.")
    public func perform<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1
    ) throws(OperationFailure<ErrorType>) -> ResultType {
        try outcomeOnThread(of: child, terms: ChildTerms(weight: weight)).get()
    }

    /// Runs a child while the calling thread waits, or makes of its failure an error of your own.
    @available(*, noasync, message: "Use run(_:orThrow:) in an async body: this blocks the thread.")
    public func perform<ResultType, ErrorType, NewError: Error>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1,
        orThrow makeError: (OperationFailure<ErrorType>) -> NewError
    ) throws(NewError) -> ResultType {
        do throws(OperationFailure<ErrorType>) {
            return try perform(child, weight: weight)
        } catch {
            throw makeError(error)
        }
    }

    /// Adds a child without waiting for it: the group does, after the body.
    ///
    /// - Throws: If the group has ended, or if the operation is somebody else's; then nothing happened to it.
    public func add(_ child: ManagedOperation, weight: Double = 1) throws(GroupError) {
        try engine.add([child], ChildTerms(isShielded: isShielded, weight: weight))
    }

    /// Adds children without waiting for them: the group does, after the body.
    public func add(_ children: [ManagedOperation], weight: Double = 1) throws(GroupError) {
        try engine.add(children, ChildTerms(isShielded: isShielded, weight: weight))
    }

    /// Whether the group was cancelled, or has failed.
    public var isCancelled: Bool { engine.state.withLock { $0.machine.isDooming } }
}

// What must complete.
extension GroupScope {
    /// Runs a part of the body that is not cancelled with the group, not even if that was cancelled before.
    ///
    /// Children that are run with the scope handed to it go on, too, and so does its task. The group ends after it.
    public func shield<Value: Sendable, Failure: Error>(
        _ part: @escaping @Sendable (GroupScope) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let scope = GroupScope(engine: engine, isShielded: true)
        let body = BodyTasks.operation
        let task = Task { () -> Result<Value, Failure> in
            // The part is the body, in another task.
            let number = body.map { BodyTasks.begin($0) }
            defer { if let body, let number { BodyTasks.end(number, of: body) } }
            do throws(Failure) {
                return .success(try await part(scope))
            } catch {
                return .failure(error)
            }
        }
        return try await task.value.get()
    }

    /// Runs a part of a synchronous body that is not cancelled with the group, not even if that was cancelled before.
    @available(*, noasync, message: "Use the async form in an async body.")
    public func shield<Value, Failure: Error>(
        _ part: (GroupScope) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let notes = ThreadNotes.current
        notes.shields.append(ObjectIdentifier(engine))
        defer { notes.shields.removeLast() }
        return try part(GroupScope(engine: engine, isShielded: true))
    }
}

extension GroupScope {
    func outcome<ResultType, ErrorType>(
        of child: TypedOperation<ResultType, ErrorType>, terms: ChildTerms
    ) async -> OperationOutcome<ResultType, ErrorType> {
        child.outcome(after: await engine.run(child, terms.with(isShielded: isShielded)))
    }

    func outcomeOnThread<ResultType, ErrorType>(
        of child: TypedOperation<ResultType, ErrorType>, terms: ChildTerms
    ) -> OperationOutcome<ResultType, ErrorType> {
        child.outcome(after: engine.perform(child, terms.with(isShielded: isShielded)))
    }
}

extension TypedOperation {
    final func outcome(after end: GroupWaitEnd) -> OperationOutcome<ResultType, ErrorType> {
        switch end {
        case .ended: outcomeInGroup ?? .cancelled(.requested)
        case .elsewhere: outcome ?? .cancelled(.requested)
        case .refused(let cause): .cancelled(cause)
        }
    }
}
