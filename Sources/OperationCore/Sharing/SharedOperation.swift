// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One asker's share in a run: an operation of its own, with the outcome of all.
///
/// Made by ``SharedOperations/operation(for:make:)``. It has its own handlers, callback queue, timeout and owner.
/// Canceling it ends only this share. When the last share is canceled, the run is canceled, too, and that share ends
/// when the body of the run has wound down.
///
/// It joins the run when it is started, and ends when the run has ended. While it waits for a run that executes
/// elsewhere or has not begun, it takes no slot of a ``QueueManager``. In an `OperationQueue` it keeps its place. If
/// the run executes in the slot of a share, that share keeps the slot until the run has ended, even if the share is
/// canceled. The run and its shares keep each other alive until the run ends.
public final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: nothing in it changes but the share, which is behind its lock.

    /// The ways to the run, which know its key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        /// Gives up the share.
        ///
        /// If no other operation shares the run, cancels the run.
        let leave: @Sendable (SharedOperation) -> ShareDeparture
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
        /// If the operation joined meanwhile, it leaves once more.
        var leavers = 0
        /// Whether the operation gave up its share, or was notified of the end of the run.
        ///
        /// Until then it may not end.
        var isOut = false
        /// The run after which the operation ends.
        var run: ManagedOperation?
    }

    private let work: Locked<State>

    init(_ share: Share) {
        work = Locked(State(share: share))
        super.init()
    }

    /// Always true, because the last share ends with the run, and so does a share in whose slot the run executes.
    ///
    /// The other shares end immediately when they are canceled.
    public override var windsDownAfterCancellation: Bool { true }

    /// Joins the run of the key, or begins it.
    public override func main() {
        let share = work.withLock { work -> Share? in
            guard let share = work.share else { return nil }
            (work.hasBegun, work.isJoining) = (true, true)
            return share
        }
        // The operation was canceled before it joined, so it asks for nothing.
        guard let share else { return bodyDidReturn() }
        share.join(self)
        let isLeaving = work.withLock { work in
            work.isJoining = false
            return work.isLeaving
        }
        // Another thread canceled the operation, perhaps just before it joined.
        if isLeaving { leave() }
    }

    /// Gives the share up.
    public override func didCancel(because cause: CancellationCause) {
        // If the operation has not begun, `main()` comes later, finds no share, and ends it.
        if work.withLock({ $0.hasBegun }) { leave() }
    }

    private func leave() {
        let share = work.withLock { work in
            work.isLeaving = true
            work.leavers += 1
            return work.share
        }
        let departure = share?.leave(self) ?? .notSharing
        let (old, run) = work.withLock { work -> (Share?, ManagedOperation?) in
            switch departure {
            case .notSharing: break
            case .left(after: let run):
                work.isOut = true
                if let run { work.run = run }
            }
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
        let share = work.withLock { work in
            work.hasBegun && isCancelled ? nil : exchange(&work.share, with: nil)
        }
        withExtendedLifetime(share) {}
    }

    /// Takes the outcome of the run, and ends this operation when the run has ended.
    func end(with outcome: OperationOutcome<ResultType, ErrorType>, of run: ManagedOperation) {
        let (old, isLeaving) = work.withLock { work in
            work.isOut = true
            return (exchange(&work.run, with: run), work.isLeaving)
        }
        withExtendedLifetime(old) {}
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

    /// Keeps the slot of a ``QueueManager`` for the run that was started in it, or gives the slot up if the run has not
    /// begun: it may need the slot for an operation for which it waits.
    func runDidStart(_ run: ManagedOperation) {
        if run.isFinished { return }
        // A run that shares another run has begun, but only waits.
        guard run.isExecuting, run.waitReason?.kind != .sharedRun else { return restForRun() }
        guard core.withLock({ $0.host != nil }) else { return }
        let old = work.withLock { exchange(&$0.run, with: run) }
        withExtendedLifetime(old) {}
        // The end of the run may have been reported before.
        if run.isFinished { forget(run) }
    }

    private func forget(_ run: ManagedOperation) {
        let old = work.withLock { $0.run === run ? exchange(&$0.run, with: nil) : nil }
        withExtendedLifetime(old) {}
    }

    /// Gives up the slot while a run continues elsewhere.
    func restForRun() { rest(1, because: .sharedRun) }

    private func finishIfUndecided(_ result: Result<ResultType, ErrorType>) {
        // Its share may have ended before, without a word about it.
        if core.withLock({ $0.machine.ending == nil }) { finish(with: result) }
    }
}

/// How an operation gave up its share in a run.
enum ShareDeparture {
    /// It shares no run: it gave up its share before, or the run has just ended.
    case notSharing
    /// It has left, and ends after this run if that is not nil.
    case left(after: ManagedOperation?)
}
