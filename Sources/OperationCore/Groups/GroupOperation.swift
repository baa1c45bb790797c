// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that combines child operations into one operation with one typed result.
///
/// Without groups, a request that needs the response to an earlier request often begins in a nested callback, and each
/// callback must pass on errors and cancellations. The body of a group is a closure that runs **children** from top to
/// bottom and uses their results:
///
/// ```swift
/// let user = ClosureOperation { "ada" }
///
/// let greeting = GroupOperation { group in
///     let name = try await group.run(user)
///     async let hello = group.run(ClosureOperation { "Hello, \(name)" })
///     async let bye = group.run(ClosureOperation { "Bye, \(name)" })
///     return try await [hello, bye]
/// }
/// let texts = try await greeting.run()
/// ```
///
/// Groups can be children of groups, to any depth. To create a group without a body, see `all(_:width:on:)`,
/// `map(_:width:on:_:)` or ``init(policy:width:on:)``.
///
/// ### The end of a group
///
/// A group ends when its body, if it has one, has returned and all of its children have ended. Canceling the group
/// cancels its children, except children that you protected with `isShielded` or `shield`. After a cancellation, the
/// group's outcome is this cancellation, regardless of the children's outcomes. Do not call `finish` on a group,
/// because this call decides the outcome of the group without its children.
///
/// ### The queue of the children
///
/// The children run on the queue that you pass to the group. If you pass no queue, the children run on the
/// ``QueueManager`` that holds the group. If no ``QueueManager`` holds the group, the children run on a queue that all
/// groups outside queues share. A group does not count toward the width of its queue while the body waits for children
/// or after the body has returned, so nested groups need no additional width.
///
/// After a group is started, it stays alive until it ends.
///
/// Guide: `Docs/Guides/Groups.md`
public final class GroupOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: all mutable state is behind the locks of the engine.

    let engine: GroupEngine
    private let isSynchronous: Bool

    init(_ engine: GroupEngine, begin: GroupBegin? = nil, conclude: GroupEnd? = nil, isSynchronous: Bool = false) {
        self.engine = engine
        engine.work.withLock { $0 = (begin, conclude) }
        self.isSynchronous = isSynchronous
        super.init()
    }

    deinit {
        engine.tearDown()
        // The closures may hold operations, which may hold others. The loop frees them without recursion.
        var left = engine.work.withLock { exchange(&$0, with: (nil, nil)) }
        if left.begin != nil || left.conclude != nil { ThreadWorklist.release(exchange(&left, with: (nil, nil))) }
    }

    /// A Boolean value that is always `true`, because a canceled group ends only when its children have ended.
    public override var windsDownAfterCancellation: Bool { true }

    /// Starts the body of the group, or the children if the group has no body.
    public override func main() {
        let begin = engine.work.withLock { exchange(&$0.begin, with: nil) }
        if let begin { begin(self) } else { engine.begin(self) }
    }

    package override var runsInPlace: Bool { isSynchronous }

    package override var ownGroup: ParentGroup? { engine }

    package override func releaseBody() {
        engine.outcomeWasDecided(self)
        engine.work.release { work in
            let begin = exchange(&work.begin, with: nil)
            return (begin, isCancelled ? exchange(&work.conclude, with: nil) : nil)
        }
    }

    package override func setBodySuspended(_ isSuspended: Bool) { engine.setSuspended(isSuspended) }

    package override func concludeGroup(_ verdict: GroupMachine.Verdict) {
        // A group that was canceled just now has released the closure and has ended.
        guard let conclude = engine.work.withLock({ exchange(&$0.conclude, with: nil) }) else { return bodyDidReturn() }
        conclude(self, verdict)
    }
}

// Adding children.
extension GroupOperation {
    /// Adds a child that may begin when the group begins, or immediately if the group has already begun.
    ///
    /// The group waits until the child has ended. The body, other children and any other code may add children until
    /// the group has ended. If the group has already canceled its children, it immediately cancels a new child that is
    /// not shielded.
    ///
    /// - Parameters:
    ///   - child: The operation to run, which may depend on other children.
    ///   - isShielded: A Boolean value that indicates whether the child continues when the group is canceled or fails.
    ///     The default is `false`. If the group is canceled before it begins, all of its children are canceled,
    ///     including shielded children.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    /// - Throws: An ``OperationSetupError`` if the group has ended, or if the operation is this group or contains
    ///   this group. The method also throws this error if the operation is in a queue or in a group, was started or has
    ///   ended. In all of these cases, the operation does not change.
    public func add(_ child: ManagedOperation, isShielded: Bool = false, weight: Double = 1) throws(OperationSetupError)
    {
        try engine.add([child], ChildTerms(isShielded: isShielded, weight: weight))
    }

    /// Adds several children in the order of the array and stops at the first child that the group refuses.
    ///
    /// - Parameters:
    ///   - children: The operations to run.
    ///   - isShielded: A Boolean value that indicates whether the children continue when the group is canceled or
    ///     fails. The default is `false`.
    ///   - weight: The weight of each child in the group's progress. The default is `1`.
    /// - Throws: An ``OperationSetupError`` for the first operation that the group refuses, for the same reasons as
    ///   `add(_:isShielded:weight:)`.
    public func add(_ children: [ManagedOperation], isShielded: Bool = false, weight: Double = 1)
        throws(OperationSetupError)
    {
        try engine.add(children, ChildTerms(isShielded: isShielded, weight: weight))
    }
}

extension GroupEngine {
    func add(_ children: [ManagedOperation], _ terms: ChildTerms) throws(OperationSetupError) {
        var refusal: OperationSetupError?
        for child in children {
            refusal = adopt(child, terms)
            if refusal != nil { break }
            cancelIfEndless(child)
        }
        apply { _ in }
        if let refusal { throw refusal }
    }
}

// Groups with an error type of your own.
extension GroupOperation {
    /// Creates a group with an async body that can throw only errors of a specific type.
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
    /// If the `ErrorType` is `any Error`, the group unwraps an `OperationFailure` that the body throws. If the
    /// `OperationFailure` contains an error, that error becomes the error of the group. If the `OperationFailure`
    /// contains a cancellation, the group is canceled.
    ///
    /// - Parameters:
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    ///   - body: The closure that runs the children. The closure should respect the cancellation of its task.
    @_disfavoredOverload
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        _ body: @escaping @Sendable (_ group: GroupScope) async throws(ErrorType) -> ResultType
    ) {
        self.init(width: width, on: queue, body, convert: GroupOperation.verdict)
    }

    /// Creates a group with a synchronous body that can throw only errors of a specific type.
    ///
    /// The body runs on one thread.
    ///
    /// - Parameters:
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    ///   - body: The closure that runs the children.
    @_disfavoredOverload
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        synchronous body: @escaping @Sendable (_ group: GroupScope) throws(ErrorType) -> ResultType
    ) {
        self.init(width: width, on: queue, synchronous: body, convert: GroupOperation.verdict)
    }

    private static func verdict(
        _ error: ErrorType, _ operation: GroupOperation
    ) -> OperationOutcome<ResultType, ErrorType> {
        if error is CancellationError { return .cancelled(.bodyCancelled) }
        // Only an existential accepts any error that a failure contains.
        guard ErrorType.self == (any Error).self, let failure = error as? any AnyOperationFailure else {
            return .failure(error)
        }
        if let cause = failure.cancellation { return .cancelled(.childCancelled(cause)) }
        return .failure(failure.underlyingError.flatMap { $0 as? ErrorType } ?? error)
    }
}

// Groups with the error type of this package.
extension GroupOperation where ErrorType == GroupFailure {
    /// Creates a group with an async body that can throw errors of any type.
    ///
    /// The error of the group is a ``GroupFailure``. If the body throws the error of a child, the ``GroupFailure``
    /// names the child. If the body throws the cancellation of a child or a `CancellationError`, the group is canceled.
    ///
    /// - Parameters:
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    ///   - body: The closure that runs the children. The closure should respect the cancellation of its task.
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        _ body: @escaping @Sendable (_ group: GroupScope) async throws -> ResultType
    ) {
        self.init(width: width, on: queue, body, convert: GroupOperation.failure)
    }

    /// Creates a group with a synchronous body that can throw errors of any type.
    ///
    /// The body runs on one thread. The error of the group is a ``GroupFailure``. If the body throws the error of a
    /// child, the ``GroupFailure`` names the child. If the body throws the cancellation of a child or a
    /// `CancellationError`, the group is canceled.
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
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    ///   - body: The closure that runs the children.
    public convenience init(
        width: Int? = nil, on queue: QueueManager? = nil,
        synchronous body: @escaping @Sendable (_ group: GroupScope) throws -> ResultType
    ) {
        self.init(width: width, on: queue, synchronous: body, convert: GroupOperation.failure)
    }

    private static func failure(
        _ error: any Error, _ operation: GroupOperation
    ) -> OperationOutcome<ResultType, GroupFailure> {
        if error is CancellationError { return .cancelled(.bodyCancelled) }
        let failure = error as? any AnyOperationFailure
        if let cause = failure?.cancellation { return .cancelled(.childCancelled(cause)) }
        let children = operation.engine.state.withLock { $0.failures }
        let thrown = failure?.underlyingError ?? error
        return .failure(GroupFailure(group: operation.groupName, thrown: thrown, children: children))
    }
}

// The bodies.
extension GroupOperation {
    /// The name of the group in errors.
    var groupName: String { name.flatMap { $0.isEmpty ? nil : $0 } ?? "the group" }

    private convenience init<Thrown: Error>(
        width: Int?, on queue: QueueManager?,
        _ body: @escaping @Sendable (GroupScope) async throws(Thrown) -> ResultType,
        convert: @escaping @Sendable (Thrown, GroupOperation) -> OperationOutcome<ResultType, ErrorType>
    ) {
        let engine = GroupEngine(GroupMachine(policy: .bodyDecides, width: width, hasBody: true), queue: queue)
        let begin: GroupBegin = { operation in
            let operation = unsafeDowncast(operation, to: GroupOperation.self)
            guard operation.engine.begin(operation) else { return }
            let task = Task {
                let number = BodyTasks.begin(operation)
                defer { BodyTasks.end(number, of: operation) }
                do throws(Thrown) {
                    let result = try await body(GroupScope(engine: operation.engine))
                    operation.bodyDidEnd(.success(result))
                } catch {
                    operation.bodyDidEnd(convert(error, operation))
                }
            }
            operation.engine.keep(task)
        }
        self.init(engine, begin: begin)
    }

    private convenience init<Thrown: Error>(
        width: Int?, on queue: QueueManager?,
        synchronous body: @escaping @Sendable (GroupScope) throws(Thrown) -> ResultType,
        convert: @escaping @Sendable (Thrown, GroupOperation) -> OperationOutcome<ResultType, ErrorType>
    ) {
        let engine = GroupEngine(GroupMachine(policy: .bodyDecides, width: width, hasBody: true), queue: queue)
        let begin: GroupBegin = { operation in
            let operation = unsafeDowncast(operation, to: GroupOperation.self)
            guard operation.engine.begin(operation, isOnItsThread: true) else { return }
            do throws(Thrown) {
                let result = try BodyWait.within(operation) { () throws(Thrown) -> ResultType in
                    try body(GroupScope(engine: operation.engine))
                }
                operation.bodyDidEnd(.success(result))
            } catch {
                operation.bodyDidEnd(convert(error, operation))
            }
        }
        self.init(engine, begin: begin, isSynchronous: true)
    }

    private func bodyDidEnd(_ outcome: OperationOutcome<ResultType, ErrorType>) {
        switch outcome {
        case .success(let result): engine.bodyEnded(.success) { [self] in finish(withResult: result) }
        case .failure(let error): engine.bodyEnded(.failure) { [self] in finish(withError: error) }
        case .cancelled(let cause):
            cancelIfUndecided(because: cause)
            engine.bodyEnded(.cancelled)
        }
    }
}
