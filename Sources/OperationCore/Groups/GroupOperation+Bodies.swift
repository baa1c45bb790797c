// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Groups whose error type is yours.
extension GroupOperation {
    /// Makes a group with an async body that throws errors of your own.
    ///
    /// ```swift
    /// enum AppError: Error { case user(OperationFailure<any Error>), empty }
    ///
    /// let loadUser = TaskOperation { () async throws -> String in "ada" }
    /// let letters = GroupOperation<Int, AppError> { group async throws(AppError) in
    ///     let name = try await group.run(loadUser, orThrow: AppError.user)
    ///     if name.isEmpty { throw .empty }
    ///     return name.count
    /// }
    /// ```
    ///
    /// Where the `ErrorType` is `any Error`, an `OperationFailure` that leaves the body is taken apart: its error is the
    /// group's, and its cancellation cancels the group.
    ///
    /// - Parameters:
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    ///   - body: What to do. It should heed the cancellation of its task.
    @_disfavoredOverload
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        _ body: @escaping @Sendable (_ group: GroupScope) async throws(ErrorType) -> ResultType
    ) {
        self.init(width: width, on: queue, body, convert: GroupOperation.verdict)
    }

    /// Makes a group with a synchronous body that throws errors of your own: it runs from top to bottom on one thread.
    ///
    /// - Parameters:
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    ///   - body: What to do.
    @_disfavoredOverload
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        synchronous body: @escaping @Sendable (_ group: GroupScope) throws(ErrorType) -> ResultType
    ) {
        self.init(width: width, on: queue, synchronous: body, convert: GroupOperation.verdict)
    }

    private static func verdict(_ error: ErrorType, _ operation: GroupOperation) -> GroupThrown<ErrorType> {
        if error is CancellationError { return .cancellation(.bodyCancelled) }
        // Only an existential takes whatever is in a failure.
        guard ErrorType.self == (any Error).self, let failure = error as? any AnyOperationFailure else {
            return .error(error)
        }
        if let cause = failure.cancellation { return .cancellation(.childCancelled(cause)) }
        return .error(failure.underlyingError.flatMap { $0 as? ErrorType } ?? error)
    }
}

// Groups whose error type is ours.
extension GroupOperation where ErrorType == GroupFailure {
    /// Makes a group with an async body that throws anything: its error names the child at fault.
    ///
    /// - Parameters:
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    ///   - body: What to do. It should heed the cancellation of its task.
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        _ body: @escaping @Sendable (_ group: GroupScope) async throws -> ResultType
    ) {
        self.init(width: width, on: queue, body, convert: GroupOperation.failure)
    }

    /// Makes a group with a synchronous body that throws anything: it runs from top to bottom on one thread.
    ///
    /// ```swift
    /// let load = ClosureOperation { "ada" }
    /// let letters = GroupOperation(synchronous: { group in
    ///     let name = try group.perform(load)
    ///     return try group.perform(ClosureOperation { name.count })
    /// })
    /// let count = try await letters.run()
    /// ```
    ///
    /// - Parameters:
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    ///   - body: What to do.
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        synchronous body: @escaping @Sendable (_ group: GroupScope) throws -> ResultType
    ) {
        self.init(width: width, on: queue, synchronous: body, convert: GroupOperation.failure)
    }

    private static func failure(_ error: any Error, _ operation: GroupOperation) -> GroupThrown<GroupFailure> {
        if error is CancellationError { return .cancellation(.bodyCancelled) }
        let failure = error as? any AnyOperationFailure
        if let cause = failure?.cancellation { return .cancellation(.childCancelled(cause)) }
        let children = operation.engine.state.withLock { $0.failures }
        let thrown = failure?.underlyingError ?? error
        return .error(GroupFailure(group: operation.groupName, thrown: thrown, children: children))
    }
}

/// What an error that left a body means to the group.
enum GroupThrown<ErrorType: Error> {
    case error(ErrorType)
    case cancellation(CancellationCause)
}

// The bodies.
extension GroupOperation {
    /// The name of the group in errors.
    var groupName: String { name.flatMap { $0.isEmpty ? nil : $0 } ?? "the group" }

    private convenience init<Thrown: Error>(
        width: Int?, on queue: QueueManager?,
        _ body: @escaping @Sendable (GroupScope) async throws(Thrown) -> ResultType,
        convert: @escaping @Sendable (Thrown, GroupOperation) -> GroupThrown<ErrorType>
    ) {
        let engine = GroupEngine(GroupMachine(policy: .bodyDecides, width: width, hasBody: true), queue: queue)
        let work = Work { operation in
            guard operation.engine.begin(operation) else { return }
            let task = Task {
                let number = BodyTasks.begin(operation)
                defer { BodyTasks.end(number) }
                do throws(Thrown) {
                    let result = try await body(GroupScope(engine: operation.engine))
                    operation.bodyDidEnd(result)
                } catch {
                    operation.bodyDidEnd(convert(error, operation))
                }
            }
            operation.engine.keep(task)
        }
        self.init(engine, work)
    }

    private convenience init<Thrown: Error>(
        width: Int?, on queue: QueueManager?,
        synchronous body: @escaping @Sendable (GroupScope) throws(Thrown) -> ResultType,
        convert: @escaping @Sendable (Thrown, GroupOperation) -> GroupThrown<ErrorType>
    ) {
        let engine = GroupEngine(GroupMachine(policy: .bodyDecides, width: width, hasBody: true), queue: queue)
        let work = Work { operation in
            guard operation.engine.begin(operation, isOnItsThread: true) else { return }
            do throws(Thrown) {
                let result = try BodyWait.within(operation) { () throws(Thrown) -> ResultType in
                    try body(GroupScope(engine: operation.engine))
                }
                operation.bodyDidEnd(result)
            } catch {
                operation.bodyDidEnd(convert(error, operation))
            }
        }
        self.init(engine, work, isSynchronous: true)
    }

    private func bodyDidEnd(_ result: ResultType) {
        engine.bodyEnded(.success) { [self] in finish(withResult: result) }
    }

    private func bodyDidEnd(_ thrown: GroupThrown<ErrorType>) {
        switch thrown {
        case .error(let error): engine.bodyEnded(.failure) { [self] in finish(withError: error) }
        case .cancellation(let cause):
            cancelIfUndecided(because: cause)
            engine.bodyEnded(.cancelled)
        }
    }
}
