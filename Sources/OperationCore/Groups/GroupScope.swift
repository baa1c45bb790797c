// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A value that the body of a group uses to run children.
///
/// The group passes a scope to its body. Each call to ``run(_:weight:)`` runs one child and returns the child's result:
///
/// ```swift
/// let greeting = GroupOperation { group in
///     let name = try await group.run(ClosureOperation { "ada" })
///     return try await group.run(
///         ClosureOperation { "Hello, \(name)" })
/// }
/// print(try await greeting.run())
/// ```
///
/// Guide: `Docs/Guides/Groups.md`
public struct GroupScope: Sendable {
    package let engine: GroupEngine
    var isShielded = false

    /// Runs a child without blocking a thread and returns the child's result.
    ///
    /// If the operation is already in a queue or in a group, was started, or has ended, it does not become a child. The
    /// method then only waits for the operation. If the group is canceled or fails, the wait ends, but the operation
    /// continues.
    ///
    /// If you cancel the task that calls this method, for example an `async let` task of the body, the child is also
    /// canceled.
    ///
    /// The body of another operation may also call this method. If that operation is a child of this group, it counts
    /// toward the group's width while it waits. If no child that fills the width can end before the new child begins,
    /// the new child is canceled with the cause `waitsForItself`. The new child is also canceled with this cause if it
    /// depends on the group or on a group around it, directly or through other operations.
    ///
    /// The body of the child inherits the task-local values and the priority of the task that calls this method.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    /// - Throws: An ``OperationFailure`` with the error of the child or the cause of its cancellation. The cause has
    ///   the code `groupRefused` if the group has ended, or if the group would wait for itself.
    public func run<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1
    ) async throws(OperationFailure<ErrorType>) -> ResultType {
        let terms = ChildTerms(isShielded: isShielded, weight: weight)
        return try await child.outcome(after: engine.run(child, terms)).get()
    }

    /// Runs a child and returns its result, or throws an error that a closure creates from the child's failure.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    ///   - makeError: A closure that receives the failure of the child and returns the error to throw. The method calls
    ///     the closure in the current task.
    /// - Throws: The error that `makeError` returns.
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

    /// Runs a child, blocks the calling thread until the child ends, and returns the child's result.
    ///
    /// The calling thread must be the thread of the synchronous body. A synchronous child that can begin immediately
    /// runs on this thread. For any other child, the thread waits, and the group does not count toward the width of its
    /// queue during the wait. ``QueueManager/threadLimit`` limits the number of threads that may wait. If this limit is
    /// reached, the child is canceled with the cause `tooManyWaits`.
    ///
    /// If the operation is already in a queue or in a group, was started, or has ended, it does not become a child. The
    /// method then only waits for the operation. If the group is canceled or fails, the wait ends, but the operation
    /// continues.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    /// - Throws: An ``OperationFailure`` with the error of the child or the cause of its cancellation. The cause has
    ///   the code `groupRefused` if the thread is not the body's thread, if the group has ended, or if the group would
    ///   wait for itself.
    @available(*, noasync, message: "This method blocks the thread. In an async body, use run(_:).")
    public func perform<ResultType, ErrorType>(
        _ child: TypedOperation<ResultType, ErrorType>, weight: Double = 1
    ) throws(OperationFailure<ErrorType>) -> ResultType {
        let terms = ChildTerms(isShielded: isShielded, weight: weight)
        return try child.outcome(after: engine.perform(child, terms)).get()
    }

    /// Runs a child, blocks the calling thread until the child ends, and returns the child's result or throws an error
    /// that a closure creates from the child's failure.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    ///   - makeError: A closure that receives the failure of the child and returns the error to throw. The method calls
    ///     the closure on the calling thread.
    /// - Throws: The error that `makeError` returns.
    @available(*, noasync, message: "This method blocks the thread. In an async body, use run(_:orThrow:).")
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

    /// Adds a child without waiting for it.
    ///
    /// The group waits for the child after its body has returned.
    ///
    /// - Parameters:
    ///   - child: The operation to run.
    ///   - weight: The weight of the child in the group's progress. The default is `1`.
    /// - Throws: An ``OperationSetupError`` if the group has ended, or if the operation is this group or contains
    ///   this group. The method also throws this error if the operation is in a queue or in a group, was started or has
    ///   ended. In all of these cases, the operation does not change.
    public func add(_ child: ManagedOperation, weight: Double = 1) throws(OperationSetupError) {
        try engine.add([child], ChildTerms(isShielded: isShielded, weight: weight))
    }

    /// Adds several children in the order of the array without waiting for them and stops at the first child that the
    /// group refuses.
    ///
    /// The group waits for the children after its body has returned.
    ///
    /// - Parameters:
    ///   - children: The operations to run.
    ///   - weight: The weight of each child in the group's progress. The default is `1`.
    /// - Throws: An ``OperationSetupError`` for the first operation that the group refuses, for the same reasons as
    ///   `add(_:weight:)`.
    public func add(_ children: [ManagedOperation], weight: Double = 1) throws(OperationSetupError) {
        try engine.add(children, ChildTerms(isShielded: isShielded, weight: weight))
    }

    /// A Boolean value that indicates whether the group was canceled or has failed.
    public var isCancelled: Bool { engine.state.withLock { $0.machine.isCancellingChildren } }
}

// Shielded parts of a body.
extension GroupScope {
    /// Runs a part of an async body and lets this part continue even if the group is canceled or fails.
    ///
    /// The part runs in its own task. The part also runs if the group was canceled before this call. The closure
    /// receives a scope, and children that you run with this scope also continue. The group ends only after the part
    /// has ended.
    ///
    /// - Parameter part: The closure that runs the part of the body.
    /// - Throws: The error that `part` throws.
    public func shield<Value: Sendable, Failure: Error>(
        _ part: @escaping @Sendable (GroupScope) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let scope = GroupScope(engine: engine, isShielded: true)
        let body = BodyTasks.operation
        let task = Task { () -> Result<Value, Failure> in
            // The part belongs to the body, although it runs in another task.
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

    /// Runs a part of a synchronous body and lets its children continue even if the group is canceled or fails.
    ///
    /// To run these children, use the scope that the closure receives. The part also runs if the group was canceled
    /// before this call.
    ///
    /// - Parameter part: The closure that runs the part of the body, on the calling thread.
    /// - Throws: The error that `part` throws.
    @available(*, noasync, message: "In an async body, use the async form.")
    public func shield<Value, Failure: Error>(
        _ part: (GroupScope) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let notes = ThreadNotes.current
        notes.shields.append(ObjectIdentifier(engine))
        defer { notes.shields.removeLast() }
        return try part(GroupScope(engine: engine, isShielded: true))
    }
}
