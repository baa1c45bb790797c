// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation
    import OperationCore

    /// The delegate of a session for the background.
    final class BackgroundReporter: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, Sendable {
        private struct State {
            var tasks: [Int: BackgroundTask] = [:]
            /// Where the bodies of transfers lie whose end was not told yet, or why they could not be kept.
            var files: [Int: Result<SpooledFile, NetworkError>] = [:]
            /// The bodies of responses to uploads, which the system keeps in memory.
            var bodies: [Int: Data] = [:]
            var onOrphan: (@Sendable (BackgroundSession.Orphan) -> Void)?
            /// Of the application's delegate: the system may ask again before it was told that all is done.
            var completions: [@Sendable () -> Void] = []
        }

        private let state = Locked(State())

        var onOrphan: (@Sendable (BackgroundSession.Orphan) -> Void)? {
            get { state.withLock { $0.onOrphan } }
            set {
                var rule = newValue
                state.withLock { swap(&$0.onOrphan, &rule) }
            }
        }

        func keep(_ completion: @escaping @Sendable () -> Void) {
            state.withLock { $0.completions.append(completion) }
        }

        func listen(to task: URLSessionTask, for background: BackgroundTask) {
            state.withLock { $0.tasks[task.taskIdentifier] = background }
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {
            // The system removes its file when this returns.
            let file = SpooledFile.taking(location)
            state.withLock { $0.files[downloadTask.taskIdentifier] = file }
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            state.withLock { $0.bodies[dataTask.taskIdentifier, default: Data()] += data }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) {
            state.withLock { $0.tasks[task.taskIdentifier] }?.sent(totalBytesSent)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let number = task.taskIdentifier
            let (known, kept, body, onOrphan) = state.withLock { state in
                (
                    state.tasks.removeValue(forKey: number), state.files.removeValue(forKey: number),
                    state.bodies.removeValue(forKey: number), state.onOrphan
                )
            }
            var (file, failure): (SpooledFile?, NetworkError?)
            switch kept {
            case .success(let kept)?: file = kept
            case .failure(let error)?: failure = error
            case nil: break
            }
            if let error { failure = URLSessionFailure(error, phase: .receiving).error }
            let response = task.response as? HTTPURLResponse
            if let known { return known.ended(response, file, body, failure) }
            onOrphan?(
                .init(request: task.originalRequest, response: response, file: file?.url, body: body, error: failure))
            withExtendedLifetime(file) {}
        }

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
            let completions = state.withLock { exchange(&$0.completions, with: []) }
            for completion in completions { DispatchQueue.main.async(execute: completion) }
        }
    }
#endif
