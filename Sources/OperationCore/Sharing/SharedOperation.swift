// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One asker's share in a run: an operation of its own, with the outcome of all.
///
/// Made by ``SharedOperations/operation(for:make:)``. It has its own handlers, callback queue, timeout and owner.
/// Cancelling it ends this share only; the run is cancelled when the last share was. That last share ends with the run: when
/// the body of the run has wound down.
///
/// It joins the run when it is started, and ends when the run has ended. While it waits for a run that runs elsewhere, it
/// takes no slot of a ``QueueManager``; in an `OperationQueue` it keeps its place. The run and its shares keep each other
/// alive until the run ends.
public final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: nothing in it changes but the share, which is behind its lock.

    /// The ways to the run, which know its key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        /// Gives the share up; returns the run if nobody else shares it, and it is cancelled.
        let leave: @Sendable (SharedOperation) -> ManagedOperation?
    }

    private struct State {
        var share: Share?
        var hasBegun = false
        /// Whether it is joining the run just now.
        var isJoining = false
        /// Whether it was cancelled after it began.
        var isLeaving = false
        /// How many threads give the share up just now: one that joined meanwhile leaves once more.
        var leavers = 0
        /// The run after which it ends.
        var run: ManagedOperation?
    }

    private let work: Locked<State>

    init(_ share: Share) {
        work = Locked(State(share: share))
        super.init()
    }

    /// Always true: the last share ends with the run, though the others end at once when they are cancelled.
    public override var windsDownAfterCancellation: Bool { true }

    /// Joins the run of the key, or begins it.
    public override func main() {
        let share = work.withLock { work -> Share? in
            guard let share = work.share else { return nil }
            (work.hasBegun, work.isJoining) = (true, true)
            return share
        }
        // Cancelled on the way here, it asks for nothing.
        guard let share else { return bodyDidReturn() }
        share.join(self)
        let isLeaving = work.withLock { work in
            work.isJoining = false
            return work.isLeaving
        }
        // Cancelled on another thread, perhaps just before it joined.
        if isLeaving { leave() }
    }

    /// Gives the share up.
    public override func didCancel(because cause: CancellationCause) {
        // If not, `main()` comes after this, finds no share, and ends it.
        if work.withLock({ $0.hasBegun }) { leave() }
    }

    private func leave() {
        let share = work.withLock { work in
            work.isLeaving = true
            work.leavers += 1
            return work.share
        }
        let last = share?.leave(self)
        let (isLast, run, old) = work.withLock { work -> (Bool, ManagedOperation?, Share?) in
            if let last { work.run = last }
            work.leavers -= 1
            // The thread that joins gives up what it joined, and then ends this.
            guard work.leavers == 0, !work.isJoining else { return (false, nil, nil) }
            return (true, exchange(&work.run, with: nil), exchange(&work.share, with: nil))
        }
        withExtendedLifetime(old) {}
        guard isLast else { return }
        guard let run else { return bodyDidReturn() }
        run.whenEnded { [self] in bodyDidReturn() }
    }

    package override func releaseBody() {
        // Cancelled after it began, it needs the share once more.
        let isCancelled = isCancelled
        let share = work.withLock { work in
            work.hasBegun && isCancelled ? nil : exchange(&work.share, with: nil)
        }
        withExtendedLifetime(share) {}
    }

    /// The run has an outcome, and this ends when the run does.
    func end(with outcome: OperationOutcome<ResultType, ErrorType>, of run: ManagedOperation) {
        let old = work.withLock { exchange(&$0.run, with: run) }
        withExtendedLifetime(old) {}
        if case .cancelled(let cause) = outcome { cancelIfUndecided(because: cause) }
        run.whenEnded { [self] in
            switch outcome {
            case .success(let result): finishIfUndecided(.success(result))
            case .failure(let error): finishIfUndecided(.failure(error))
            case .cancelled: break
            }
            let old = work.withLock { exchange(&$0.run, with: nil) }
            withExtendedLifetime(old) {}
        }
    }

    /// It needs no slot while a run that is elsewhere goes on.
    func restForRun() { rest(1, because: .sharedRun) }

    private func finishIfUndecided(_ result: Result<ResultType, ErrorType>) {
        // Its share may have ended before, without a word about it.
        if core.withLock({ $0.machine.ending == nil }) { finish(with: result) }
    }
}
