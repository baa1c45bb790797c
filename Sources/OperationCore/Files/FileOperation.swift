// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What all file operations have in common: blocking work with a file, cancellable between chunks, with progress.
///
/// It cannot be subclassed outside of the package. The work is done on the thread on which the operation is started, so
/// start it in a queue or with `run()`. A cancelled operation tells at once that it is cancelled, and ends when the call
/// to the system that it is in has returned and what it had begun is cleared away.
public class FileOperation<ResultType: Sendable>: SyncOperation<ResultType, FileOperationError>, MeasuredOperation,
    @unchecked Sendable
{
    // Sendable: it keeps its state behind a lock.

    private struct Knobs {
        var progressHandler: (@Sendable (FileProgress) -> Void)?
        var mainActorHandlers: [@MainActor (FileProgress) -> Void] = []
        var fraction: Double?
        var files = FileSystem()
    }

    private let knobs = Locked(Knobs())

    override init() {
        super.init()
    }

    /// Called as the work goes on, on `callbackQueue`: about each mebibyte or hundredth of the whole, and at the end.
    ///
    /// It never runs backwards, its last call before a success is complete, and it is never put on the queue after the
    /// handler of the outcome. It does not begin after a cancellation. The operation releases it when it ends.
    public final var progressHandler: (@Sendable (FileProgress) -> Void)? {
        get { knobs.withLock { $0.progressHandler } }
        set {
            let old = knobs.withLock { exchange(&$0.progressHandler, with: newValue) }
            withExtendedLifetime(old) {}
            // Set too late, it would never be let go of.
            if core.withLock({ $0.machine.isTold }) { releaseProgressHandler() }
        }
    }

    /// Adds a closure that is called on the main actor as the work continues, whatever the `callbackQueue` is.
    ///
    /// It is called beside ``progressHandler``, with the same reports. Each call of this method adds a closure and replaces none.
    @discardableResult
    public final func onMainActor(progress handler: @escaping @MainActor (FileProgress) -> Void) -> Self {
        knobs.withLock { $0.mainActorHandlers.append(handler) }
        if core.withLock({ $0.machine.isTold }) { releaseProgressHandler() }
        return self
    }

    /// The share of the bytes that is done; nil while the whole is not known.
    public final var completedFraction: Double? { knobs.withLock { $0.fraction } }

    /// The system's calls, as tests want them.
    package final var files: FileSystem {
        get { knobs.withLock { $0.files } }
        set { knobs.withLock { $0.files = newValue } }
    }

    /// Does the work.
    public final override func main() {
        let work = FileWork(
            files: files,
            isCancelled: { [unowned self] in isCancelled },
            report: { [unowned self] in deliver($0) })
        do throws(FileInterruption) {
            try work.checkCancellation()
            let result = try perform(work)
            work.complete()
            finish(withResult: result)
        } catch {
            guard case .failed(let error) = error else { return }
            finish(withError: error)
        }
    }

    /// The work itself; for subclasses in the package.
    func perform(_ work: FileWork) throws(FileInterruption) -> ResultType {
        fatalError("\(type(of: self)) must override perform(_:).")
    }

    package override func releaseBody() {
        releaseProgressHandler()
    }

    private func releaseProgressHandler() {
        let old = knobs.withLock { knobs in
            (exchange(&knobs.progressHandler, with: nil), exchange(&knobs.mainActorHandlers, with: []))
        }
        withExtendedLifetime(old) {}
    }

    /// Puts the calls of the handlers on their queues, unless the outcome is decided.
    package final func deliver(_ progress: FileProgress) {
        let (handler, mainActorHandlers) = knobs.withLock { knobs in
            knobs.fraction = progress.fraction
            return (knobs.progressHandler, knobs.mainActorHandlers)
        }
        completedFractionDidChange()
        if let handler {
            enqueueBeforeOutcome(on: callbackQueue) { [self] in withExtendedLifetime(self) { handler(progress) } }
        }
        if !mainActorHandlers.isEmpty {
            enqueueBeforeOutcome(on: .main) { [self] in
                MainActor.assumeIsolated { for handler in mainActorHandlers { handler(progress) } }
                extendLifetime(self)
            }
        }
    }
}
