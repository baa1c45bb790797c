// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// The file side of a download for whoever makes the requests: as many as it takes, one after another.
///
/// For each: `prepare` it, make a task with the receiver of `makeReceiver`, and do what its conclusion says. At the end,
/// however it comes, `close`. All work with files is done on a queue of its own; a transfer that is faster than the disk
/// is held.
package final class Download: Sendable {
    /// How long a place that is taken is waited for.
    private static let patience = Duration.seconds(1)

    private let queue = DispatchQueue(label: "OperationKit.Download")
    private let clock: any OperationClock
    private let cancellation = DownloadCancellation()
    /// Whether its part is known to this object alone.
    let isTemporary: Bool
    private let turn = Locked(DownloadTurn())
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) let work: DownloadWork

    package init(
        to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        files: FileSystem = FileSystem(), clock: any OperationClock = .system,
        keptBytes: Int = DownloadWork.usualKeptBytes,
        accepts: @escaping @Sendable (ResponseHead) -> Bool = { _ in true }
    ) {
        self.clock = clock
        isTemporary = destination.isTemporary
        work = DownloadWork(
            to: destination, options: options, files: files, clock: clock, cancellation: cancellation,
            keptBytes: keptBytes, accepts: accepts)
    }

    /// Ends it as cancelled, wherever it is with its files; the task of its request is for whoever made that.
    ///
    /// What was received stays, if it can be gone on with. When this returns the file will not come to its destination any
    /// more, unless it is being renamed just now.
    package func cancel() { cancellation.set() }

    /// Whether it was cancelled, so that nobody can go on with it.
    var isCancelled: Bool { cancellation.isSet }

    /// Makes the files ready, and gives the request as it is to be sent: with `Range` and `If-Range`, if a part is there.
    ///
    /// A download to the same place that was just cancelled may still be letting go of its part: that is waited for.
    package func prepare(
        _ request: NetworkRequest, whenReady: @escaping @Sendable (Result<NetworkRequest, NetworkError>) -> Void
    ) {
        prepare(request, until: clock.now.advanced(by: Self.patience), whenReady)
    }

    private func prepare(
        _ request: NetworkRequest, until limit: OperationInstant,
        _ whenReady: @escaping @Sendable (Result<NetworkRequest, NetworkError>) -> Void
    ) {
        queue.async { [self] in
            do throws(NetworkError) {
                let prepared = try cancellation.isSet ? nil : work.prepare(request)
                // To make the files ready may have taken long.
                guard let prepared, !cancellation.isSet else { return whenReady(.failure(.cancelledDownload)) }
                whenReady(.success(prepared))
            } catch {
                guard error.code == .destinationBusy, clock.now < limit else { return whenReady(.failure(error)) }
                _ = clock.schedule(after: .milliseconds(10)) { [self] in prepare(request, until: limit, whenReady) }
            }
        }
    }

    /// Makes the receiver of the request that was prepared.
    ///
    /// - Parameters:
    ///   - watcher: The receiver of the attempt that downloads.
    ///   - refuses: Asked on the download's queue about each head: whether nothing of its response is to be written.
    ///   - mayLeave: Asked on the session's thread whether the request may still be sent, when its turn has come.
    ///   - tellHead: Called on the download's queue with the head of a response that is the file, or its rest, and with what
    ///     becomes of what was there before.
    ///   - tellSent: Called by the session while the request's body is sent.
    ///   - tellProgress: Called on the download's queue after each portion that was written.
    ///   - tellMetrics: Called there before the end, if the session measured.
    ///   - whenDone: Called there once.
    package func makeReceiver(
        watcher: (any HopWatcher)? = nil, refuses: @escaping @Sendable (ResponseHead) -> Bool = { _ in false },
        mayLeave: @escaping @Sendable (any NetworkTask) -> Bool = { _ in true },
        tellHead: @escaping @Sendable (ResponseHead, DownloadStart) -> Void = { _, _ in },
        tellSent: @escaping @Sendable (Int64, Int64?) -> Void = { _, _ in },
        tellProgress: @escaping @Sendable (DownloadProgress) -> Void = { _ in },
        tellMetrics: @escaping @Sendable (TransferMetrics) -> Void = { _ in },
        whenDone: @escaping @Sendable (DownloadConclusion) -> Void
    ) -> any NetworkReceiver {
        DownloadReceiver(
            self, watcher: watcher, refuses: refuses, mayLeave: mayLeave, tellHead: tellHead, tellSent: tellSent,
            tellProgress: tellProgress, tellMetrics: tellMetrics, whenDone: whenDone)
    }

    /// Begins the requests of a run when those of the one before are over, which may have been given up in their middle.
    func takeTurn(_ begin: @escaping @Sendable () -> Void) {
        if turn.withLock({ $0.take(begin) }) { begin() }
    }

    /// The run that has the turn is over.
    func passTurn() { turn.withLock { $0.pass() }?() }

    /// Lets go of everything: what can be gone on with stays, if it is to, and the rest is removed.
    package func close(whenClosed: @escaping @Sendable () -> Void = {}) {
        queue.async { [self] in
            work.close()
            whenClosed()
        }
    }

    /// Lets go of everything and removes what was received: nobody will go on with it.
    func discard(whenGone: @escaping @Sendable () -> Void = {}) {
        queue.async { [self] in
            work.discard()
            whenGone()
        }
    }

    func perform(_ body: @escaping @Sendable (DownloadWork) -> Void) {
        queue.async { [self] in body(work) }
    }
}
