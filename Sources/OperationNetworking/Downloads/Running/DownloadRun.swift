// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A download over a session, with as many requests as the server makes necessary, but none that is sent again because
/// of a failure: that is for others to decide.
package final class DownloadRun: Sendable {
    private enum State {
        case ready
        case running((any NetworkTask)?)
        case ended
    }

    private let request: NetworkRequest
    private let session: any NetworkSession
    private let download: Download
    private let tellProgress: @Sendable (DownloadProgress) -> Void
    private let tellMetrics: @Sendable (TransferMetrics) -> Void
    private let whenDone: @Sendable (DownloadConclusion) -> Void
    private let state = Locked((state: State.ready, isCancelled: false, isSuspended: false))

    package init(
        _ request: NetworkRequest, over session: any NetworkSession, with download: Download,
        tellProgress: @escaping @Sendable (DownloadProgress) -> Void = { _ in },
        tellMetrics: @escaping @Sendable (TransferMetrics) -> Void = { _ in },
        whenDone: @escaping @Sendable (DownloadConclusion) -> Void
    ) {
        self.request = request
        self.session = session
        self.download = download
        self.tellProgress = tellProgress
        self.tellMetrics = tellMetrics
        self.whenDone = whenDone
    }

    /// Starts it, or lets it go on where it was suspended.
    package func resume() {
        let (starts, task) = state.withLock { state -> (Bool, (any NetworkTask)?) in
            state.isSuspended = false
            switch state.state {
            case .ready:
                state.state = .running(nil)
                return (true, nil)
            case .running(let task): return (false, task)
            case .ended: return (false, nil)
            }
        }
        if starts { ask() } else { task?.resume() }
    }

    /// Stops it on the wire.
    package func suspend() {
        let task = state.withLock { state -> (any NetworkTask)? in
            state.isSuspended = true
            guard case .running(let task) = state.state else { return nil }
            return task
        }
        task?.suspend()
    }

    /// Ends it as cancelled.
    package func cancel() {
        let (task, wasReady) = state.withLock { state -> ((any NetworkTask)?, Bool) in
            state.isCancelled = true
            switch state.state {
            case .ready:
                state.state = .ended
                return (nil, true)
            case .running(let task): return (task, false)
            case .ended: return (nil, false)
            }
        }
        if wasReady { whenDone(.failed(Self.cancelled)) } else { task?.cancel() }
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
        let receiver = download.makeReceiver(tellProgress: tellProgress, tellMetrics: tellMetrics) {
            [self] conclusion in
            if case .again = conclusion, !state.withLock({ $0.isCancelled }) { return ask() }
            if case .again = conclusion { return end(.failed(Self.cancelled)) }
            end(conclusion)
        }
        let task = session.makeTask(with: request, receiver: receiver)
        let (isCancelled, isSuspended) = state.withLock { state in
            state.state = .running(task)
            return (state.isCancelled, state.isSuspended)
        }
        if isCancelled { return task.cancel() }
        guard !isSuspended else { return }
        task.resume()
        // Somebody may have suspended it just before it was resumed.
        if state.withLock({ $0.isSuspended }) { task.suspend() }
    }

    private func end(_ conclusion: DownloadConclusion) {
        state.withLock { $0.state = .ended }
        download.close { [self] in whenDone(conclusion) }
    }

    private static let cancelled = NetworkError(
        code: .cancelled, phase: .waiting, message: "The download was cancelled.")
}
