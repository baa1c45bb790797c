// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that shares one run of its work with other operations.
///
/// To get a shared operation, call ``SharedOperations/operation(for:make:)``. Each shared operation has its own
/// handlers, callback queue, timeout and owner. If you cancel one of the operations that share a run, the run continues
/// for the others. If you cancel all of them, OperationKit cancels the run. In this case, the operation that you
/// canceled last ends only when the work has ended.
///
/// When a shared operation starts, it joins the run. The operation ends with the outcome of the run. While the
/// operation waits for work that executes elsewhere or has not begun, it occupies no slot in a ``QueueManager``. In an
/// `OperationQueue`, the operation keeps its slot. If the work executes in the slot of a shared operation, this
/// operation keeps the slot until the work has ended, even if you cancel the operation. The work and the operations
/// that share it keep each other alive until the work ends.
package final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: only the share changes, and a lock protects it.

    /// The closures that lead to the run of the operation's key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        /// Gives up the share, and cancels the run if no other operation shares it.
        let leave: @Sendable (SharedOperation) -> (hasLeft: Bool, run: ManagedOperation?)
        /// Returns the run that the operation shares, or `nil` if it shares none or the run is being created.
        let run: @Sendable (SharedOperation) -> ManagedOperation?
    }

    private struct State {
        var share: Share?
        var hasBegun = false
        /// Whether the operation is joining the run.
        var isJoining = false
        /// Whether the operation was canceled after it began.
        var isLeaving = false
        /// The number of threads that are giving up the share.
        ///
        /// If the operation joined in the meantime, it leaves once more.
        var leavers = 0
        /// Whether the operation gave up its share, or was notified of the end of the run.
        ///
        /// The operation must not end before that.
        var isOut = false
        /// The run after which the operation ends.
        var run: ManagedOperation?
    }

    private let work: Locked<State>

    init(_ share: Share) {
        work = Locked(State(share: share))
        super.init()
    }

    /// A Boolean value that is always `true`, because a canceled operation may have to wait for the shared work.
    ///
    /// If you cancel a shared operation, it usually ends immediately. However, the last operation that shares the work
    /// ends only when the work has ended. The same is true for an operation in whose slot the work executes.
    package override var windsDownAfterCancellation: Bool { true }

    override var sharedRun: ManagedOperation? { work.withLock { $0.share }?.run(self) }

    /// Joins the run for the key, or begins a run if there is none.
    package override func main() {
        let share = work.withLock { work -> Share? in
            guard let share = work.share else { return nil }
            (work.hasBegun, work.isJoining) = (true, true)
            return share
        }
        // The operation was canceled before it joined a run, so it does not join one.
        guard let share else { return bodyDidReturn() }
        share.join(self)
        let isLeaving = work.withLock { work in
            work.isJoining = false
            return work.isLeaving
        }
        // Another thread canceled the operation, perhaps just before it joined.
        if isLeaving { leave() }
    }

    /// Stops sharing the work and cancels the work if no other operation shares it.
    package override func didCancel(because cause: CancellationCause) {
        // If the operation has not begun, `main()` comes later, finds no share, and ends it.
        if work.withLock({ $0.hasBegun }) { leave() }
    }

    private func leave() {
        let share = work.withLock { work in
            work.isLeaving = true
            work.leavers += 1
            return work.share
        }
        let departure = share?.leave(self)
        let (old, run) = work.withLock { work -> (Share?, ManagedOperation?) in
            if departure?.hasLeft == true { work.isOut = true }
            if let run = departure?.run { work.run = run }
            work.leavers -= 1
            // The thread that joins gives up what it joined, and then ends the operation. If the operation shares no
            // run and was not notified of an end, another thread is about to notify it.
            guard work.leavers == 0, !work.isJoining, work.isOut, work.share != nil else { return (nil, nil) }
            return (exchange(&work.share, with: nil), exchange(&work.run, with: nil))
        }
        guard old != nil else { return }
        guard let run else { return bodyDidReturn() }
        run.whenEnded { [self] in bodyDidReturn() }
    }

    package override func releaseBody() {
        // An operation that is canceled after it began needs the share once more.
        let isCancelled = isCancelled
        work.release { work in
            work.hasBegun && isCancelled ? nil : exchange(&work.share, with: nil)
        }
    }

    /// Applies the outcome of the run, and ends this operation when the run has ended.
    func end(with outcome: OperationOutcome<ResultType, ErrorType>, of run: ManagedOperation) {
        let (old, isLeaving) = work.withLock { work in
            work.isOut = true
            return (exchange(&work.run, with: run), work.isLeaving)
        }
        extendLifetime(old)
        // The operation was canceled after the run had its outcome, and could not give up its share.
        if isLeaving { leave() }
        if case .cancelled(let cause) = outcome { cancelIfUndecided(because: cause) }
        run.whenEnded { [self] in
            switch outcome {
            case .success(let result): finishIfUndecided(.success(result))
            case .failure(let error): finishIfUndecided(.failure(error))
            case .cancelled: break
            }
            forget(run)
        }
    }

    /// Keeps the slot of a ``QueueManager`` for the run that was started in it, or gives up the slot if the run has not
    /// begun.
    ///
    /// A run that has not begun may need the slot for an operation for which it waits.
    func runDidStart(_ run: ManagedOperation) {
        if run.isFinished { return }
        // A run that shares another run has begun, but only waits.
        guard run.isExecuting, run.waitReason?.kind != .sharedRun else {
            run.core.withLock { $0.extras?.slotHolder = nil }
            return restForRun()
        }
        guard slotQueue != nil else { return }
        work.release { exchange(&$0.run, with: run) }
        // The end of the run may have been reported before.
        if run.isFinished { forget(run) }
    }

    private func forget(_ run: ManagedOperation) {
        work.release { $0.run === run ? exchange(&$0.run, with: nil) : nil }
    }

    /// Gives up the slot while a run continues elsewhere.
    func restForRun() { rest(1, because: .sharedRun) }

    private func finishIfUndecided(_ result: Result<ResultType, ErrorType>) {
        // The operation may have its outcome already. Finishing it again would cause a notice.
        if core.withLock({ $0.machine.ending == nil }) { finish(with: result) }
    }
}

/// The thread or queue on which ``SharedOperations`` executes work.
enum SharedRunPlace: Sendable {
    /// The work executes on the thread that starts the first operation for the key, and thus in that operation's queue.
    ///
    /// If the work cannot begin immediately, it begins later, outside the queue. While the first operation waits for
    /// the work, the operation occupies no slot in a ``QueueManager``.
    case firstAsker
    /// The work executes in a ``QueueManager``.
    ///
    /// The operations that share the work may be in the same queue, because they occupy no slots while they wait.
    case queue(QueueManager)
    /// The work executes in an `OperationQueue`.
    ///
    /// Do not add the operations that share the work to the same queue. Otherwise, they keep their slots while they
    /// wait, and the work might never begin.
    case operationQueue(OperationQueue)
}

extension CancellationCause.Code {
    /// All operations that shared the work were canceled, so OperationKit canceled the work.
    public static let allAskersLeft = Self("allAskersLeft")
    /// The ``QueueManager`` that you passed to the initializer of ``SharedOperations`` did not accept the shared work.
    public static let runRefused = Self("runRefused")
}

extension CancellationCause {
    static func allAskersLeft(_ last: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .allAskersLeft,
            message: "The operation was canceled because all operations that shared its result were canceled.",
            underlyingCause: last)
    }

    static func runRefused(_ error: OperationSetupError) -> CancellationCause {
        CancellationCause(
            code: .runRefused,
            message:
                "The operation was canceled because its queue did not accept it: \(error.message)",
            underlyingError: error)
    }
}
