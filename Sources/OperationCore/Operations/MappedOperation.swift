// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that converts the result or the error of another operation, its original, to another type.
///
/// ``TypedOperation/mapResult(_:)``, ``TypedOperation/mapError(_:)`` and ``TypedOperation/mapOutcome(_:)`` create it:
///
/// ```swift
/// let answer = ClosureOperation { 42 }
/// let text = answer.mapResult { "The answer is \($0)." }
/// text.successHandler = { print($0) }
/// OperationQueue().addOperation(text)
/// ```
///
/// A mapped operation behaves like its original, because it does no work of its own and has the life of its original.
/// Adding the mapped operation to a queue or to a group, or starting it, adds or starts the original. Give a queue one
/// of the two, not both: a ``QueueManager`` and a group refuse the second one.
///
/// - The original and every operation mapped from it start, suspend, resume and end together. They have the same name,
///   dependencies, priority, quality of service, timeout, deadline, delay, conditions, categories, throttle and owner. You can
///   set each of these on any of them.
/// - Each of them has its own outcome, handlers, observers and `completionBlock`. The callback queue is that of the original,
///   unless you set another one.
/// - The conversion runs once, on the thread that ends the original. It runs before the handlers of the mapped operation are
///   called and before `isFinished` is true. If the original has already ended, the mapped operation has its outcome
///   immediately, and there is nothing to start.
/// - Canceling a mapped operation cancels the original and, with it, all operations mapped from the original. The operation
///   that you cancel is canceled, and its conversion is not called. The others convert the cancellation. In the same way,
///   `mapOutcome` can turn a timeout of the original into an error.
/// - Calling `finish` on a mapped operation replaces what its conversion would give. The original is not affected, and a
///   later `cancel()` on the mapped operation changes nothing.
/// - On Linux, call `addDependency(_:)` of a plain `Foundation.Operation` with the mapped operation itself, and not with a
///   value of the type `Operation`. Through such a value, the plain operation begins only if exactly this mapped operation
///   was started, or added to a queue or group.
///
/// A mapped operation keeps its original alive. The original keeps a mapped operation alive from the start of the mapped
/// operation until the end of both. So if a started mapped operation never ends, neither of the two is freed.
public final class MappedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: only the work changes, and it is behind its lock.

    private struct Work {
        let source: ManagedOperation
        let convert: @Sendable (ManagedOperation) -> OperationOutcome<ResultType, ErrorType>?
    }

    private let root: ManagedOperation
    private let work: Locked<Work?>
    private let record = MapRecord()

    init(
        _ source: ManagedOperation,
        convert: @escaping @Sendable (ManagedOperation) -> OperationOutcome<ResultType, ErrorType>?
    ) {
        root = source.life
        work = Locked(Work(source: source, convert: convert))
        super.init()
        root.register(self, record)
    }

    deinit {
        // The source may be mapped, too, and so may its source. They are freed in a loop, not in a recursion.
        var work = work.withLock { exchange(&$0, with: nil) }
        if work != nil { ThreadWorklist.letGo(exchange(&work, with: nil)) }
    }

    override var original: ManagedOperation? { root }

    override var mapRecord: MapRecord? { record }

    override var mapSource: ManagedOperation? { work.withLock { $0?.source } }

    override func convertOutcome() {
        guard let work = work.withLock({ exchange(&$0, with: nil) }) else { return }
        setCallbackQueue(work.source.nearestCallbackQueue, as: .inherited)
        let (isCancelled, cause) = core.withLock { ($0.cause != nil && record.isCancelled, $0.cause) }
        let isDecided = storage.withLock { $0.machine.ending != nil }
        let outcome: OperationOutcome<ResultType, ErrorType> =
            isCancelled || isDecided
            ? .cancelled(cause ?? .requested) : work.convert(work.source) ?? .cancelled(cause ?? .requested)
        switch outcome {
        case .success(let result):
            let box = OutcomeBox(result)
            if !conclude(.success, box, nil) { box.free(as: ResultType.self) }
        case .failure(let error):
            let box = OutcomeBox(error)
            if !conclude(.failure, box, nil) { box.free(as: ErrorType.self) }
        case .cancelled(let cause): _ = conclude(.cancelled, nil, cause)
        }
    }

    /// The name of the original.
    public override var name: String? {
        get { root.name }
        set { root.name = newValue }
    }

    /// The priority of the original.
    public override var queuePriority: Operation.QueuePriority {
        get { root.queuePriority }
        set { root.queuePriority = newValue }
    }

    /// The quality of service of the original.
    public override var qualityOfService: QualityOfService {
        get { root.qualityOfService }
        set { root.qualityOfService = newValue }
    }

    /// Does nothing, because the body is that of the original.
    public override func main() {}

    /// A Boolean value that indicates whether the original, once it is canceled, ends only when its body has returned.
    public override var windsDownAfterCancellation: Bool { root.endStyle != .atOnce }

    package override var runsInPlace: Bool { root.runsInPlace }

    package override var groupEngine: GroupEngine? { root.groupEngine }
}

extension TypedOperation {
    /// Creates an operation that has the life of this one, and the outcome that a closure makes of this one's outcome.
    ///
    /// - Parameter convert: Converts the outcome, on the thread that ends this operation, or on the calling thread if
    ///   this operation has already ended. It is called at most once, and not at all if the mapped operation itself is
    ///   canceled.
    ///
    /// The outcome is converted when the handlers of this operation are called. This is later than its ``finalOutcome`` in
    /// two cases. If this operation is finished before its start, the mapped operation has its outcome after the start. If a
    /// ``SyncOperation`` finishes before its `main()` returns, the mapped operation has its outcome after `main()` returns.
    public final func mapOutcome<NewResult: Sendable, NewError: Error>(
        _ convert:
            @escaping @Sendable (
                OperationOutcome<ResultType, ErrorType>
            ) -> OperationOutcome<NewResult, NewError>
    ) -> MappedOperation<NewResult, NewError> {
        MappedOperation(self) { source in
            (source as? TypedOperation)?.outcome.map(convert)
        }
    }

    /// Creates an operation that has the life of this one and converts its result.
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

    /// Creates an operation that has the life of this one and converts its error, for instance to a type of your own.
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
