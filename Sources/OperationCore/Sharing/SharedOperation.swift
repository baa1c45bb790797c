// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One asker's share in a run: an operation of its own, with the outcome of all.
///
/// Made by ``SharedOperations/operation(for:make:)``. It has its own handlers, callback queue, timeout and owner.
/// Cancelling it ends this share only; the run is cancelled when the last share was.
///
/// It joins the run when it is started, and keeps its place in its queue until the run ended. From then on the run and its
/// shares keep each other alive, until it ends.
public final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: nothing in it changes but the share, which is behind its lock.

    /// The ways to the run, which know its key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        let leave: @Sendable (SharedOperation) -> Void
    }

    private let share: Locked<Share?>

    init(_ share: Share) {
        self.share = Locked(share)
        super.init()
    }

    /// Joins the run of the key, or begins it.
    public override func main() {
        guard let share = share.withLock({ $0 }) else { return }
        share.join(self)
        // Cancelled on another thread, just before it joined.
        if isCancelled { share.leave(self) }
    }

    package override func releaseBody() {
        guard let share = share.withLock({ exchange(&$0, with: nil) }), isCancelled else { return }
        share.leave(self)
    }

    func end(with outcome: OperationOutcome<ResultType, ErrorType>) {
        switch outcome {
        case .success(let result): finishIfUndecided(.success(result))
        case .failure(let error): finishIfUndecided(.failure(error))
        case .cancelled(let cause): cancelIfUndecided(because: cause)
        }
    }

    private func finishIfUndecided(_ result: Result<ResultType, ErrorType>) {
        // Its share may have ended before, without a word about it.
        if core.withLock({ $0.machine.ending == nil }) { finish(with: result) }
    }
}
