// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch

// A class in a higher folder inherits from this class. A reference to a protocol would take two words in each
// operation. The methods are called without holding a lock, unless they say otherwise.

/// The children of a group, as an operation sees them: those beside it, or those in it if it is a group.
package class ParentGroup: @unchecked Sendable {
    // Sendable: a subclass adds only state that is.

    /// The tag of an operation that took the place of a child.
    static let replacementTag: Int32 = -2

    /// Returns the group, from its start to its end, or `nil` if the child in a slot is shielded from it.
    func group(around slot: Int32 = -1) -> ManagedOperation? { nil }

    /// The name of the group, which is known from its start on.
    final var displayName: String { group()?.displayName ?? "a group" }

    /// Reacts to a change of a child that no queue holds.
    func childDidChange(_ child: ManagedOperation, _ slot: Int32) {}

    /// Notes that a child has ended, after its dependents were notified.
    func childDidEnd(_ child: ManagedOperation, _ slot: Int32, _ tag: Int32, _ ending: LifecycleMachine.Ending) {}

    /// Keeps the enqueued handlers of all operations in the group from beginning.
    func silence() {}

    /// Returns the mark that an enqueued handler of a child checks before it begins.
    func cancellationMark(forChildAt slot: Int32) -> CancellationMark? { nil }

    /// The queue that accepted the group or a group around it, and with it the children.
    var acceptedBy: HostQueue? { nil }

    /// Returns the callback queue that children inherit, if they are in a queue or in none.
    func callbackQueue(ofChildrenIn host: HostQueue?) -> DispatchQueue? { nil }

    /// Makes the callback queue of the group the callback queue of its children.
    func takeCallbackQueue(of group: ManagedOperation) {}

    /// The children that have not ended.
    package var presentChildren: [ManagedOperation] { [] }

    /// Returns the children that must end before the group can, or `nil` if some results suffice.
    func neededChildren(atMost most: Int) -> [ManagedOperation]? { nil }

    /// Returns the active children, if this child waits for the end of one of them.
    func childrenThatFillWidth(
        before child: ManagedOperation, at slot: Int32, atMost most: Int
    ) -> [ManagedOperation] { [] }

    /// The maximum number of children that run at the same time.
    var width: Int { .max }

    /// Whether a task reads the elements from which the group makes children.
    var hasReader: Bool { false }

    /// Runs an operation as a child for the body that calls this method, and waits for its end.
    ///
    /// - Parameter isOnThread: Whether the thread is known to run a body, and not only the task.
    /// - Returns: `nil`, without any effect, if no body of the group calls the method or the group cannot start the
    ///   operation.
    func run(_ child: ManagedOperation, forBodyOnThread isOnThread: Bool) -> GroupWaitEnd? { nil }
}

/// The way in which the wait of a body for an operation ended.
enum GroupWaitEnd: Sendable {
    case ended
    case refused(CancellationCause)
    /// The operation is not a child of the group.
    ///
    /// At the end of a wait, this also means that the operation has ended.
    case elsewhere
}

extension ManagedOperation {
    /// The group that contains the operation as a child, if the group has begun.
    package final var groupOfChild: ManagedOperation? { core.withLock { $0.parent }?.group() }
}

extension TypedOperation {
    /// The outcome as the group of the operation sees it, with the result of a recovery if there is one.
    final var outcomeInGroup: OperationOutcome<ResultType, ErrorType>? {
        guard let outcome else { return nil }
        if case .success = outcome { return outcome }
        let replacementResult = core.withLock { $0.extras?.replacementResult } as? Box<ResultType>
        return replacementResult.map { .success($0.value) } ?? outcome
    }

    /// Returns the result as the group of the operation sees it.
    final func resultInGroup() throws -> ResultType {
        let box = storage.withLock { $0.machine.ending == .success ? $0.box : nil }
        if let box { return box.value(as: ResultType.self) }
        return try resultAfterFailure()
    }

    /// Returns the result of a recovery, or throws the failure.
    ///
    /// This is a separate function, because it uses generic types. Each call would look them up.
    @inline(never)
    private func resultAfterFailure() throws -> ResultType {
        try (outcomeInGroup ?? .cancelled(.requested)).get()
    }

    final func outcome(after end: GroupWaitEnd) -> OperationOutcome<ResultType, ErrorType> {
        switch end {
        case .ended: outcomeInGroup ?? .cancelled(.requested)
        case .elsewhere: outcome ?? .cancelled(.requested)
        case .refused(let cause): .cancelled(cause)
        }
    }

    /// Runs the operation as a child of the group whose synchronous body calls this method, and waits for its end.
    ///
    /// An async body gets a refusal, because the wait would block a thread of Swift's pool.
    ///
    /// - Returns: The outcome, or `nil` if a group cannot start the operation, or no body of a group calls the method.
    final func outcomeInCallingBody() -> OperationOutcome<ResultType, ErrorType>? {
        // The innermost body counts, because the body of a child may run on the thread of the group's body.
        let body = ThreadNotes.current.bodies.last?.managed
        return (body ?? BodyTasks.operation)?.ownGroup?.run(self, forBodyOnThread: body != nil).map(outcome)
    }
}
