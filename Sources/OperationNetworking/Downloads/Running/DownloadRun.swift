// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A download over a session, with as many requests as the server makes necessary, but none that is sent again because
/// of a failure: that is for others to decide.
package final class DownloadRun: Sendable {
    private let request: NetworkRequest
    private let session: any NetworkSession
    private let download: Download
    private let hopWatcher: (any HopWatcher)?
    private let refuses: @Sendable (ResponseHead) -> Bool
    private let mayLeave: @Sendable (any NetworkTask) -> Bool
    private let tellHead: @Sendable (ResponseHead, DownloadStart) -> Void
    private let tellSent: @Sendable (Int64, Int64?) -> Void
    private let tellProgress: @Sendable (DownloadProgress) -> Void
    private let tellMetrics: @Sendable (TransferMetrics) -> Void
    private let whenDone: @Sendable (DownloadConclusion) -> Void
    private let steering = Locked(DownloadSteering())

    package init(
        _ request: NetworkRequest, over session: any NetworkSession, with download: Download,
        watcher: (any HopWatcher)? = nil, refuses: @escaping @Sendable (ResponseHead) -> Bool = { _ in false },
        mayLeave: @escaping @Sendable (any NetworkTask) -> Bool = { _ in true },
        tellHead: @escaping @Sendable (ResponseHead, DownloadStart) -> Void = { _, _ in },
        tellSent: @escaping @Sendable (Int64, Int64?) -> Void = { _, _ in },
        tellProgress: @escaping @Sendable (DownloadProgress) -> Void = { _ in },
        tellMetrics: @escaping @Sendable (TransferMetrics) -> Void = { _ in },
        whenDone: @escaping @Sendable (DownloadConclusion) -> Void
    ) {
        self.request = request
        self.session = session
        self.download = download
        self.hopWatcher = watcher
        self.refuses = refuses
        self.mayLeave = mayLeave
        self.tellHead = tellHead
        self.tellSent = tellSent
        self.tellProgress = tellProgress
        self.tellMetrics = tellMetrics
        self.whenDone = whenDone
    }

    /// Starts it, or lets it go on where it was suspended.
    package func resume() {
        if steering.withLock({ $0.resume() }) { download.takeTurn { [self] in ask() } } else { settle() }
    }

    /// Stops it on the wire.
    package func suspend() {
        steering.withLock { $0.suspend() }
        settle()
    }

    /// Ends it as cancelled.
    ///
    /// When this returns the file will not come to its destination any more, unless it is being renamed just now.
    package func cancel() {
        download.cancel()
        stop()
    }

    /// Ends it as cancelled, so that another run may go on with what it received.
    package func giveUp() {
        // What lies at a place on the disk is found there by whoever comes next.
        if !download.isTemporary { download.cancel() }
        stop()
    }

    private func stop() {
        switch steering.withLock({ $0.cancel() }) {
        case .ended: whenDone(.failed(.cancelledDownload))
        case .task(let task): task.cancel()
        case .noTask: break
        }
    }

    private func ask() {
        download.prepare(request) { [self] result in
            switch result {
            case .success(let request): send(request)
            case .failure(let error): end(.failed(error))
            }
        }
    }

    private func send(_ request: NetworkRequest) {
        let receiver = download.makeReceiver(
            watcher: hopWatcher, refuses: refuses, mayLeave: mayLeave, tellHead: tellHead, tellSent: tellSent,
            tellProgress: tellProgress, tellMetrics: tellMetrics
        ) { [self] conclusion in
            guard case .again = conclusion else { return end(conclusion) }
            let (isWanted, last) = steering.withLock { $0.askAgain() }
            withExtendedLifetime(last) {}
            if isWanted { ask() } else { end(conclusion) }
        }
        let task = session.makeTask(with: request, receiver: receiver)
        if steering.withLock({ $0.take(task) }) { settle() } else { task.cancel() }
    }

    /// Brings the present task to what is wanted now, unless another thread is at it: that one looks again.
    private func settle() {
        var step = steering.withLock { $0.firstStep() }
        while let present = step {
            switch present {
            case .resume(let task): task.resume()
            case .suspend(let task): task.suspend()
            }
            step = steering.withLock { $0.nextStep() }
        }
    }

    private func end(_ conclusion: DownloadConclusion) {
        let (isCancelled, last) = steering.withLock { $0.end() }
        withExtendedLifetime(last) {}
        download.close { [self] in
            download.passTurn()
            switch conclusion {
            // In its place, whoever cancelled meanwhile.
            case .saved: whenDone(conclusion)
            case .failed(let error) where error.code == .cancelled: whenDone(conclusion)
            case .answered, .failed, .again: whenDone(isCancelled ? .failed(.cancelledDownload) : conclusion)
            }
        }
    }
}
