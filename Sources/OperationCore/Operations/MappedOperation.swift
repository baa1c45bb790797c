// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that runs another and makes its result and error into ones of other types.
///
/// Made by ``TypedOperation/mapOutcome(_:)`` and its relatives. Starting it starts the other one, unless that was
/// started before; cancelling it cancels the other one, and it is cancelled with it, for the same cause. Do not give the
/// other one to a queue as well: only on Linux, and in queues of this package, is it then left to the queue.
///
/// It waits for the other one without a dependency. So where the other one depends on it, directly or not, that circle is
/// not seen, and both wait for ever.
///
/// From its start until the other one ends, the two keep each other alive: an operation that never ends is never freed.
public final class MappedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: nothing in it changes but the other operation, which is behind its lock.

    private struct Work {
        let original: ManagedOperation
        let convert: @Sendable (ManagedOperation) -> OperationOutcome<ResultType, ErrorType>?
    }

    private let work: Locked<Work?>

    init(
        _ original: ManagedOperation,
        convert: @escaping @Sendable (ManagedOperation) -> OperationOutcome<ResultType, ErrorType>?
    ) {
        work = Locked(Work(original: original, convert: convert))
        super.init()
        name = original.name
    }

    deinit {
        // The other operation may be mapped, too, and its other one: freed in a loop, not in a recursion.
        var work = work.withLock { exchange(&$0, with: nil) }
        if work != nil { ThreadWorklist.letGo(exchange(&work, with: nil)) }
    }

    private var original: ManagedOperation? { work.withLock { $0?.original } }

    /// Starts the other operation.
    public override func main() {
        guard let work = work.withLock({ $0 }) else { return }
        let convert = work.convert
        // The other operation is what tells this one of its end, so it keeps it alive until then.
        work.original.addObserver(isWaiter: false) { [self] original in
            WorkerSeat.flushCurrent()
            ThreadNotes.atBoundedDepth { if let outcome = convert(original) { self.end(with: outcome) } }
        }
        if isInGroup { work.original.core.withLock { $0.need().wrapper = self } }
        ThreadNotes.atBoundedDepth { work.original.startIfNeeded() }
    }

    /// Puts the other operation on hold, if that executes.
    ///
    /// One that still waits for its dependencies or its delay, or that cannot be suspended, goes its way all the same.
    public override func didSuspend() { original?.suspendExecution() }

    /// Lets the other operation go on.
    public override func didResume() { original?.resumeExecution() }

    package override func releaseBody() {
        // Let go of with the end. Whether or not this one began: who cancels it wants nothing of the other one, which
        // is started so that it ends, too.
        guard let work = work.withLock({ exchange(&$0, with: nil) }), let cause = cancellationCause else { return }
        ThreadNotes.atBoundedDepth {
            work.original.cancelIfUndecided(because: cause)
            work.original.startIfNeeded()
        }
    }

    private func end(with outcome: OperationOutcome<ResultType, ErrorType>) {
        switch outcome {
        case .success(let result): finish(withResult: result)
        case .failure(let error): finish(withError: error)
        case .cancelled(let cause): cancelIfUndecided(because: cause)
        }
    }
}

extension TypedOperation {
    /// An operation that runs this one and makes another outcome of its outcome.
    public final func mapOutcome<NewResult: Sendable, NewError: Error>(
        _ convert:
            @escaping @Sendable (
                OperationOutcome<ResultType, ErrorType>
            ) -> OperationOutcome<NewResult, NewError>
    ) -> MappedOperation<NewResult, NewError> {
        MappedOperation(self) { original in
            (original as? TypedOperation)?.outcome.map(convert)
        }
    }

    /// An operation that runs this one and converts its result.
    public final func mapResult<NewResult: Sendable>(
        _ convert: @escaping @Sendable (ResultType) -> NewResult
    ) -> MappedOperation<NewResult, ErrorType> {
        mapOutcome { outcome in
            switch outcome {
            case .success(let result): .success(convert(result))
            case .failure(let error): .failure(error)
            case .cancelled(let cause): .cancelled(cause)
            }
        }
    }

    /// An operation that runs this one and converts its error, to that of your own program for instance.
    public final func mapError<NewError: Error>(
        _ convert: @escaping @Sendable (ErrorType) -> NewError
    ) -> MappedOperation<ResultType, NewError> {
        mapOutcome { outcome in
            switch outcome {
            case .success(let result): .success(result)
            case .failure(let error): .failure(convert(error))
            case .cancelled(let cause): .cancelled(cause)
            }
        }
    }
}
