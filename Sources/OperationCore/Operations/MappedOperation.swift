// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that converts the outcome of another operation, its original, to another type.
///
/// The comment of ``TypedOperation/mapOutcome(_:)`` describes it.
package final class MappedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: only `work` changes, and it is protected by its lock.

    /// A closure that converts the outcome of an operation that has ended.
    ///
    /// If the closure returns `nil`, the mapped operation is canceled.
    typealias Conversion = @Sendable (ManagedOperation) -> OperationOutcome<ResultType, ErrorType>?

    private let root: ManagedOperation
    /// The operation that is mapped and the conversion of its outcome, or `nil` after the conversion.
    private let work: Locked<(source: ManagedOperation, convert: Conversion)?>
    private let record = MapRecord()

    init(_ source: ManagedOperation, convert: @escaping Conversion) {
        root = source.life
        work = Locked((source, convert))
        super.init()
        root.register(self, record)
    }

    deinit {
        // The source may be mapped too, and so may its source. The loop frees them without recursion.
        var work = work.withLock { exchange(&$0, with: nil) }
        if work != nil { ThreadWorklist.release(exchange(&work, with: nil)) }
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

    /// The name of the original operation.
    package override var name: String? {
        get { root.name }
        set { root.name = newValue }
    }

    /// The priority of the original operation.
    package override var queuePriority: Operation.QueuePriority {
        get { root.queuePriority }
        set { root.queuePriority = newValue }
    }

    /// The quality of service of the original operation.
    package override var qualityOfService: QualityOfService {
        get { root.qualityOfService }
        set { root.qualityOfService = newValue }
    }

    /// Does nothing, because only the original operation has a body.
    package override func main() {}

    /// A Boolean value that indicates whether the original operation, after a cancellation, ends only when its work has
    /// ended.
    package override var windsDownAfterCancellation: Bool { root.endStyle != .atOnce }

    package override var runsInPlace: Bool { root.runsInPlace }

    package override var ownGroup: ParentGroup? { root.ownGroup }
}

extension TypedOperation {
    /// Creates an operation that starts and ends together with this operation and converts the outcome of this
    /// operation.
    ///
    /// In the following rules, the *original* is this operation, and the *mapped operation* is the operation that this
    /// method returns.
    ///
    /// A mapped operation has no body. If you start the mapped operation, or add it to a queue or a group, OperationKit
    /// starts or adds the original instead. Add only one of the two operations. A ``QueueManager`` or a group refuses
    /// the other operation.
    ///
    /// - The original and every operation mapped from it start, suspend, resume and end together. These operations have
    ///   the same name, dependencies, priority, quality of service, timeout, deadline, delay, conditions, categories,
    ///   throttle and owner. You can set these properties on any of the operations.
    /// - Each of these operations has its own outcome, handlers, observers and `completionBlock`. By default, the
    ///   handlers are called on the callback queue of the original.
    /// - The conversion runs at most once, on the thread that ends the original. After the conversion, the handlers of
    ///   the mapped operation are enqueued, and then its `isFinished` becomes `true`. If the original has already
    ///   ended, the mapped operation has its outcome immediately and does not need to be started.
    /// - If you cancel a mapped operation before the original has an outcome, the original is also canceled.
    ///   OperationKit does not call the closure of the mapped operation that you cancel. The other operations that are
    ///   mapped from the original convert the cancellation. For example, `mapOutcome` can convert a timeout of the
    ///   original to an error.
    /// - If you cancel a mapped operation after the original has an outcome, no outcome changes. However, success and
    ///   failure handlers of the mapped operation and of the original that have not begun are not called.
    /// - If you call `finish` on a mapped operation, the result or error that you pass replaces the outcome of the
    ///   conversion. The original is not affected, and a later `cancel()` on the mapped operation does not cancel it.
    /// - On Linux, do not convert a mapped operation to the type `Operation` before you pass it to the
    ///   `addDependency(_:)` method of a plain `Foundation.Operation`. Otherwise, the plain operation begins only if
    ///   you started exactly this mapped operation, or added it to a queue or a group.
    ///
    /// A mapped operation keeps its original alive. After a mapped operation is started, the original also keeps the
    /// mapped operation alive until both have ended. If a started mapped operation never ends, neither operation is
    /// freed.
    ///
    /// ### When the closure is called
    ///
    /// The closure is called when the handlers of this operation are enqueued. In two cases, this operation has an
    /// outcome before the mapped operation does. If you finish this operation before it starts, the mapped operation
    /// gets its outcome after this operation has started and its dependencies have ended. If the `main()` of a
    /// ``SyncOperation`` calls `finish`, the mapped operation gets its outcome after `main()` has returned.
    ///
    /// If you cancel the mapped operation between these two moments, the closure is still called, and the mapped
    /// operation gets the converted outcome. However, a task that you cancel while it waits for the mapped operation
    /// gets a cancellation.
    ///
    /// - Parameter convert: A closure that converts the outcome. The closure is called at most once. If the mapped
    ///   operation is canceled before this operation has an outcome, the closure is not called. The closure is called
    ///   on the thread that ends this operation, or on the calling thread if this operation has already ended.
    public final func mapOutcome<NewResult: Sendable, NewError: Error>(
        _ convert:
            @escaping @Sendable (
                OperationOutcome<ResultType, ErrorType>
            ) -> OperationOutcome<NewResult, NewError>
    ) -> AsyncOperation<NewResult, NewError> {
        MappedOperation(self) { source in
            (source as? TypedOperation)?.outcome.map(convert)
        }
    }

    /// Creates an operation that starts and ends together with this operation and converts the result of this
    /// operation.
    ///
    /// ```swift
    /// let answer = ClosureOperation { 42 }
    /// let text = answer.mapResult { "The answer is \($0)." }
    /// text.successHandler = { print($0) }
    /// OperationQueue().addOperation(text)
    /// ```
    ///
    /// For the time at which the closure is called, see ``mapOutcome(_:)``.
    ///
    /// - Parameter convert: A closure that converts the result. If this operation fails or is canceled, the closure is
    ///   not called. The closure is called at most once, on the thread that ends this operation, or on the calling
    ///   thread if this operation has already ended.
    public final func mapResult<NewResult: Sendable>(
        _ convert: @escaping @Sendable (ResultType) -> NewResult
    ) -> AsyncOperation<NewResult, ErrorType> {
        mapOutcome { outcome in
            switch outcome {
            case .success(let result): .success(convert(result))
            case .failure(let error): .failure(error)
            case .cancelled(let cause): .cancelled(cause)
            }
        }
    }

    /// Creates an operation that starts and ends together with this operation and converts the error of this operation.
    ///
    /// For the time at which the closure is called, see ``mapOutcome(_:)``.
    ///
    /// - Parameter convert: A closure that converts the error. If this operation succeeds or is canceled, the closure
    ///   is not called. The closure is called at most once, on the thread that ends this operation, or on the calling
    ///   thread if this operation has already ended.
    public final func mapError<NewError: Error>(
        _ convert: @escaping @Sendable (ErrorType) -> NewError
    ) -> AsyncOperation<ResultType, NewError> {
        mapOutcome { outcome in
            switch outcome {
            case .success(let result): .success(result)
            case .failure(let error): .failure(convert(error))
            case .cancelled(let cause): .cancelled(cause)
            }
        }
    }
}

/// The information that an operation has about one operation that is mapped from it.
final class MapRecord: @unchecked Sendable {
    // Sendable: `mapped` is written once, before another thread can reach the record, and loading a weak reference is
    // atomic. Everything else is only touched under the lock of the original.

    weak var mapped: ManagedOperation?
    /// Whether the mapped operation itself was canceled, and with it the original.
    var isCancelled = false
    /// The kind of the mapped operation's end, once its outcome is converted.
    var ending: LifecycleMachine.Ending?
    /// Whether the mapped operation itself was started.
    var wasStarted = false
    /// Whether Foundation has read the readiness of the mapped operation, as a queue does when the operation is added.
    var wasAsked = false
    /// Whether the readiness was read after the start.
    var wasAskedAfterStart = false
    var readiness = ReadinessReports()
}

/// All operations that are mapped from one operation, in the order of their creation.
///
/// This class is not Sendable on purpose. The object is used only under the lock of the original, and afterward by the
/// one thread that ended the original.
final class MapRecords {
    private(set) var all: [MapRecord] = []
    /// The number of operations that have converted the outcome or are converting it.
    private var convertedCount = 0
    /// The number of records at which those of freed operations are removed.
    private var pruningCount = 16
    /// Whether a thread is converting outcomes.
    ///
    /// The thread then checks whether operations were added in the meantime.
    var notifying = RepeatFlag()
    /// The mapped operation that was added to the queue or group in place of the original, if any.
    var added: MapRecord?
    /// The started operations, which are kept alive until the original has ended.
    private var started: [ManagedOperation] = []

    var hasUnconverted: Bool { convertedCount < all.count }
    var alive: [ManagedOperation] { all.compactMap(\.mapped) }
    var wasAnyAsked: Bool { all.contains { $0.wasAsked } }

    /// Adds a record.
    ///
    /// The caller must release the operations in `met` without holding the lock.
    func append(_ record: MapRecord, met: inout [ManagedOperation]) {
        if convertedCount == 0, all.count >= pruningCount {
            all.removeAll { record in
                guard let mapped = record.mapped else { return true }
                met.append(mapped)
                return false
            }
            pruningCount = max(all.count * 2, 16)
        }
        all.append(record)
    }

    /// Returns the next operations that must convert the outcome.
    ///
    /// If there are none, the method ends the conversion and returns `nil`.
    func takeUnconverted() -> [ManagedOperation]? {
        guard hasUnconverted else {
            notifying.stop()
            return nil
        }
        defer { convertedCount = all.count }
        return all[convertedCount...].compactMap(\.mapped)
    }

    /// Notes that the caller itself notifies the operation that was added last.
    func skipUnconverted() { convertedCount = all.count }

    /// Keeps a started operation alive until the original has ended.
    func keep(_ mapped: ManagedOperation) { started.append(mapped) }

    /// The operations that a queue of Foundation holds and has not started.
    var unstarted: [ManagedOperation] {
        all.compactMap { $0.wasAsked && !$0.wasStarted ? $0.mapped : nil }
    }
}

extension ManagedOperation.Core {
    /// Returns the records of mapped operations, and creates them if there are none.
    fileprivate mutating func needMaps() -> MapRecords {
        let extras = need()
        if let maps = extras.maps { return maps }
        let made = MapRecords()
        extras.maps = made
        return made
    }

    /// Records that a mapped operation was added to the queue or group.
    mutating func recordAddition(_ record: MapRecord) { extras?.maps?.added = record }

    /// Whether a queue of Foundation may hold the operation or an operation that is mapped from it.
    var mayBeInFoundationQueue: Bool {
        if let maps = extras?.maps, maps.wasAnyAsked { true } else { wasAskedForReadiness }
    }
}

// The mapped operations of an original.
extension ManagedOperation {
    /// The operations that are mapped from this one and still alive.
    final var maps: [ManagedOperation] { core.withLock { $0.extras?.maps?.alive } ?? [] }

    /// Registers a mapped operation, and lets it convert the outcome immediately if the others have already done so.
    ///
    /// This method is called once, in the `init` of the mapped operation.
    final func register(_ mapped: ManagedOperation, _ record: MapRecord) {
        record.mapped = mapped
        mapped.copyFoundationLevel()
        var met: [ManagedOperation] = []
        let isLate = core.withLock { core -> Bool in
            if core.machine.isFinished { return true }
            let maps = core.needMaps()
            maps.append(record, met: &met)
            guard core.machine.isOutcomeReported, !maps.notifying.isRunning else { return false }
            maps.skipUnconverted()
            return true
        }
        extendLifetime(met)
        if isLate { mapped.convertOutcome() }
    }

    /// Lets the mapped operations convert the outcome, one after another, in the order of their creation.
    final func notifyMaps() {
        // A conversion is user code, and may wait for operations that became ready.
        ThreadNotes.current.worker?.reportChanges()
        while let unconverted = core.withLock({ $0.extras?.maps?.takeUnconverted() }) {
            for mapped in unconverted { BodyWait.within(self) { mapped.convertOutcome() } }
        }
    }

    /// Runs the completion blocks of the mapped operations, after the original has ended.
    static func runCompletions(of maps: MapRecords) {
        for mapped in maps.alive {
            mapped.runCompletion(
                mapped.storage.withLock { core in core.extras.flatMap { exchange(&$0.completionBlock, with: nil) } })
        }
    }

    /// Handles the start of a mapped operation, by a caller or by the queue of Foundation that holds it.
    final func begin(through mapped: ManagedOperation, _ record: MapRecord, onlyIfNeeded: Bool) {
        let start = mapped.startOfMap(record, isByQueue: !onlyIfNeeded)
        if start == .beside {
            if !onlyIfNeeded { mapped.reportStartBesideQueue() }
            return
        }
        let (wasStarted, isSuspended, isTaken) = core.withLock { core in
            let wasStarted = exchange(&record.wasStarted, with: true)
            if !wasStarted, !core.machine.isFinished { core.extras?.maps?.keep(mapped) }
            let isTaken = core.host != nil || core.parent != nil
            return (wasStarted, core.machine.state == .suspended, isTaken && core.extras?.maps?.added === record)
        }
        if !onlyIfNeeded, isSuspended {
            resumeExecution()
            return
        }
        if !onlyIfNeeded, isTaken { return mapped.reportStartBesideQueue() }
        if !onlyIfNeeded, wasStarted { return mapped.reportSecondStart() }
        beginUnlessTaken(isByQueue: start == .byQueue)
    }
}

// The state of a mapped operation itself.
extension ManagedOperation {
    /// The origin of the start of a mapped operation.
    enum StartOfMap {
        /// The queue of Foundation that holds the operation.
        case byQueue
        /// A caller.
        case manual
        /// A caller, although a queue of Foundation holds the operation and will start it.
        case beside
    }

    /// Gives a mapped operation its outcome unless it already has one, and calls its handlers.
    ///
    /// - Returns: `true` if the operation took the outcome.
    final func conclude(_ ending: LifecycleMachine.Ending, _ box: OutcomeBox?, _ cause: CancellationCause?) -> Bool {
        var feeds: [StateFeed] = []
        var state = OperationState.finished
        var final = ending
        let (isTaken, notifications) = storage.withLock { core -> (Bool, Notifications) in
            let isTaken = core.machine.adopt(ending)
            if isTaken { (core.box, core.cause) = (box, cause) }
            final = core.machine.ending ?? ending
            state = core.machine.state
            feeds = core.extras?.feeds.takeAll() ?? []
            return (isTaken, core.takeNotifications())
        }
        if let mapRecord { core.withLock { _ in mapRecord.ending = final } }
        for feed in feeds { feed.conclude(state)?() }
        notify(notifications)
        return isTaken
    }

    /// Keeps the outcome that a caller gave a mapped operation instead of the converted outcome.
    final func finishMap(as ending: LifecycleMachine.Ending, keeping box: OutcomeBox) -> Bool {
        let (action, notifications) = storage.withLock { core in
            let action = core.machine.finish(ending, style: .atOnce)
            guard action == .keep else { return (action, Notifications()) }
            core.box = box
            return (action, core.takeNotifications())
        }
        switch action {
        case .keep:
            notify(notifications)
            return true
        case .refuseCancelled: reportFinishAfterCancellation()
        case .notifyAndEnd, .awaitNotification, .end, .refuseSecond: reportSecondFinish()
        }
        return false
    }

    /// Keeps the error from the rule of a dependency until the original is canceled because of it.
    final func failMapByRule(keeping box: OutcomeBox) -> Bool {
        storage.withLock { core in
            guard core.machine.failByRule() == .keep else { return false }
            core.box = box
            return true
        }
    }
}

extension Operation {
    /// The operation itself, or the original of a mapped operation, so that diagrams and recordings treat both as one.
    package var originalOrSelf: Operation { (self as? ManagedOperation)?.life ?? self }
}

#if DEBUG
    import Foundation

    /// The number of mapped operations around each operation in a queue, a group or a dependency, for a test mode.
    ///
    /// The number comes from the environment variable `OPERATION_MAPS`, and is `nil` without the variable. The mapped
    /// operations convert nothing. A mapped operation behaves like its original, so all tests must also pass in this
    /// mode.
    private let identityMapDepth = ProcessInfo.processInfo.environment["OPERATION_MAPS"].flatMap { Int($0) }
#endif

extension ManagedOperation {
    /// The object that a queue or group holds for the operation, or that a dependency names.
    ///
    /// In the test mode, the object is a mapped operation, and otherwise the operation itself.
    @inline(__always) final var held: ManagedOperation {
        #if DEBUG
            guard let identityMapDepth else { return self }
            return (0..<identityMapDepth).reduce(self) { operation, _ in operation.identityMap }
        #else
            return self
        #endif
    }
}
