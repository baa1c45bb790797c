// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CommonOperationMembers {
    /// Waits until the operation has ended: `isFinished` is true and its dependents were released.
    ///
    /// The outcome alone is there earlier: a cancelled operation may still wind down, a synchronous one return from its
    /// `main()`, and one that was cancelled before its start has yet to be started.
    ///
    /// It neither starts the operation nor owns it. Cancelling the task that awaits only ends the waiting; the operation
    /// goes on, and its `isFinished` says whether it had ended.
    public func ended() async {
        let wait = TaskWait()
        let operation: ManagedOperation = self
        if let circle = BodyWait.circle(ofTaskThatAwaits: operation) { operation.reportCircle(circle) }
        let id = operation.whenEnded { wait.end() }
        await withTaskCancellationHandler {
            await wait.passage()
        } onCancel: {
            wait.end()
        }
        if let id { operation.removeEndAction(id) }
    }

    /// The operation's own error, of whatever type, if it failed; nil as long as it has no outcome, and after a result.
    ///
    /// After a cancellation it is nil, too: see `cancellationCause`. It is for code that handles operations of all types
    /// at once; whoever knows the type reads `outcome`.
    public var anyError: (any Error)? {
        let operation: ManagedOperation = self
        return operation.failureAsError
    }
}
