// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation
    import OperationCore

    /// The delegate of a background session: passes the system's events to the ledger, and does what follows.
    final class BackgroundReporter: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, Sendable {
        typealias OrphanRule = @Sendable (BackgroundSession.Orphan) -> Void
        typealias Handler = @MainActor @Sendable () -> Void
        private typealias Ledger = BackgroundLedger<BackgroundTask, Answer, Handler>

        /// What the system knows about a transfer that ended.
        private struct Answer: Sendable {
            let request: URLRequest?
            let response: HTTPURLResponse?
            let resumeData: Data?
        }

        private struct State {
            var ledger = Ledger()
            var onOrphan: OrphanRule?
        }

        private let state = Locked(State())

        var onOrphan: OrphanRule? {
            get { state.withLock { $0.onOrphan } }
            set {
                var rule = newValue
                let waiting = state.withLock { state in
                    swap(&state.onOrphan, &rule)
                    return state.ledger.setOrphanRule(state.onOrphan != nil)
                }
                for (answer, ending) in waiting { deliver(answer, ending) }
            }
        }

        func keep(_ handler: @escaping Handler) {
            if let due = state.withLock({ $0.ledger.keep(handler) }) { call(due) }
        }

        func listen(to task: URLSessionTask, for background: BackgroundTask) {
            state.withLock { $0.ledger.begin(task.taskIdentifier, background) }
        }

        private func call(_ handler: @escaping Handler) { Task { @MainActor in handler() } }

        private func deliver(_ answer: Answer, _ ending: Ledger.Ending) {
            onOrphan?(
                .init(
                    request: answer.request, response: answer.response, file: ending.file?.url, body: ending.body,
                    error: ending.failure, resumeData: answer.resumeData))
            // The file is removed after the call.
            withExtendedLifetime(ending) {}
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {
            // The system removes its file when this returns.
            let file = SpooledFile.taking(location)
            state.withLock { $0.ledger.save(downloadTask.taskIdentifier, file) }
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            state.withLock { $0.ledger.receive(dataTask.taskIdentifier, data) }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) {
            state.withLock { $0.ledger.transfer(task.taskIdentifier) }?.sent(totalBytesSent)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let response = task.response as? HTTPURLResponse
            let answer = Answer(
                request: task.originalRequest, response: response,
                resumeData: (error as? URLError)?.downloadTaskResumeData)
            let failure = error.map { URLSessionFailure($0, phase: .receiving).error }
            switch state.withLock({ $0.ledger.end(task.taskIdentifier, failure, answer) }) {
            case .none: break
            case .conclude(let task, let ending): task.ended(response, ending.file, ending.body, ending.failure)
            case .deliverOrphan(let answer, let ending): deliver(answer, ending)
            }
        }

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
            for handler in state.withLock({ $0.ledger.finishEvents() }) { call(handler) }
        }
    }
#endif
