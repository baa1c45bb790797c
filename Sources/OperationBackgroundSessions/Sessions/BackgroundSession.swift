// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation
    import OperationCore
    import OperationNetworking

    #if canImport(ExceptionGuard)
        import ExceptionGuard
    #endif

    /// A session whose transfers continue while the program is suspended, and after the system has terminated it.
    ///
    /// Background transfers require a session delegate, so OperationKit creates the session, one for each identifier.
    /// While the program runs, the tasks behave like the tasks of any ``NetworkSession``. The system writes the
    /// response to a file, and the task delivers the response when it is complete.
    ///
    /// A transfer that ends after the program was launched again no longer has an operation. The session passes such a
    /// transfer as an ``Orphan`` to the closure of ``session(_:configure:onOrphan:)``. Create the session early after
    /// each launch, for example in the app delegate, because the system delivers finished transfers only to an existing
    /// session.
    ///
    /// ```text
    /// func application(
    ///     _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     let session = BackgroundSession.session(identifier, onOrphan: { Library.shared.take($0) })
    ///     session.handleEvents { completionHandler() }
    /// }
    /// ```
    ///
    /// ``transfers()`` returns the transfers of an earlier run that are still in progress. You can cancel each of them,
    /// or attach an operation to it.
    ///
    /// ```text
    /// for transfer in await session.transfers() {
    ///     guard let url = transfer.request?.url else { continue }
    ///     let download = NetworkDownloadOperation<URL>(url: url, urlSession: transfer) { file, _ in file }
    ///     download.destination = .folder(folder)
    ///     download.start()
    /// }
    /// ```
    ///
    /// A download that failed in this run of the program resumes where it stopped if a request with the same method,
    /// URL and headers is sent again, for example by a retry. The server must support resuming.
    ///
    /// The system itself follows redirects in such a session. The system sends bodies from files only, so any other
    /// body is first written to a file. The timeouts of a request are not used, because the device may sleep. Set
    /// `timeoutIntervalForResource` of the configuration instead.
    public final class BackgroundSession: NetworkSession {
        /// The end of a transfer that no operation waits for, such as a transfer of an earlier run of the program.
        public struct Orphan: Sendable {
            /// The request.
            public let request: URLRequest?
            /// The response of the server.
            public let response: HTTPURLResponse?
            /// The body of a download, or the body of the response to an upload if it has more than 64 KiB.
            ///
            /// The file is removed when the closure returns. Move it if you need it.
            public let file: URL?
            /// The body of the response to an upload, if it has at most 64 KiB.
            public let body: Data?
            /// The error with which the transfer ended.
            ///
            /// The value is `nil` if the response is complete, regardless of its status.
            public let error: NetworkError?
            /// The data with which the system can continue a failed download, or `nil` if the download cannot continue.
            public let resumeData: Data?
            /// A Boolean value that indicates whether the transfer was an upload.
            public let isUpload: Bool

            fileprivate init(_ orphan: BackgroundTransfers.Orphan) {
                (request, response, file) = (orphan.request, orphan.response, orphan.file?.url)
                (body, error, resumeData) = (orphan.body, orphan.error, orphan.resumeData)
                isUpload = orphan.isUpload
            }
        }

        /// A transfer in progress that no operation waits for.
        ///
        /// To attach an operation to the transfer, pass the transfer to the operation as its session. The first request
        /// of the operation is then not sent, and gets the response of the transfer instead. Its method and URL must be
        /// those of the transfer. All later requests, such as retries, are sent in the ``BackgroundSession``. If the
        /// transfer has ended before the operation starts, the operation fails with
        /// ``NetworkError/Code/sessionUnavailable``, and the session passes the end of the transfer to
        /// ``BackgroundSession/onOrphan``.
        public final class Transfer: NetworkSession {
            private let task: any SystemTask & ProgressReporting
            private let session: BackgroundSession
            private let isAttached = Locked(false)

            fileprivate init(_ task: any SystemTask & ProgressReporting, _ session: BackgroundSession) {
                self.task = task
                self.session = session
            }

            /// The request.
            public var request: URLRequest? { task.originalRequest }
            /// The progress of the transfer.
            public var progress: Progress { task.progress }

            /// Continues a transfer that was suspended when the earlier run of the program ended.
            public func resume() { task.resume() }

            /// Cancels the transfer.
            ///
            /// The transfer ends as a ``BackgroundSession/Orphan`` with the error ``NetworkError/Code/cancelled``.
            public func cancel() { task.cancel() }

            /// Creates a task that waits for this transfer.
            ///
            /// Only the first task waits for the transfer. Later tasks send their requests in the
            /// ``BackgroundSession``.
            public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
                let wasAttached = isAttached.withLock { isAttached in
                    defer { isAttached = true }
                    return isAttached
                }
                if wasAttached { return session.makeTask(with: request, receiver: receiver) }
                return session.engine.makeTask(with: request, receiver: receiver, attachedTo: task)
            }
        }

        private static let made = Locked<[String: BackgroundSession]>([:])

        private let engine: BackgroundTransfers
        private let rule = Locked<(@Sendable (Orphan) -> Void)?>(nil)

        private init(_ identifier: String) { engine = BackgroundTransfers(identifier) }

        /// Returns the session with an identifier, which is created on the first call.
        ///
        /// The identifier must not be empty. If the identifier is empty, each task of the session ends with
        /// ``NetworkError/Code/sessionUnavailable``.
        ///
        /// - Parameters:
        ///   - identifier: The identifier, which is the same in each run of the program. An app extension needs its own
        ///     identifier.
        ///   - configure: A closure that changes the configuration. It is called on the calling thread, and only if
        ///     this call creates the session. An existing session keeps its configuration.
        ///   - onOrphan: A closure that is called with each transfer that ended without an operation. The default is
        ///     `nil`, which keeps the current closure. Without a closure, the session keeps such transfers until you
        ///     set ``onOrphan``.
        public static func session(
            _ identifier: String, configure: (URLSessionConfiguration) -> Void = { _ in },
            onOrphan: (@Sendable (Orphan) -> Void)? = nil
        ) -> BackgroundSession {
            let fresh = made.withLock { $0[identifier] } == nil ? BackgroundSession(identifier) : nil
            // The system does not allow two sessions with one identifier at the same time.
            let (session, isNew) = made.withLock { made in
                if let known = made[identifier] { return (known, false) }
                let session = fresh ?? BackgroundSession(identifier)
                made[identifier] = session
                return (session, true)
            }
            if let onOrphan { session.onOrphan = onOrphan }
            if isNew {
                session.connect(identifier, configure)
            } else {
                // Another thread was faster.
                fresh?.engine.connect(.failure(URLSessionAdapter.closed))
            }
            return session
        }

        /// Creates the session of the system, without holding a lock.
        private func connect(_ identifier: String, _ configure: (URLSessionConfiguration) -> Void) {
            guard !identifier.isEmpty else {
                return engine.connect(
                    .failure(
                        NetworkError(
                            code: .sessionUnavailable, phase: .waiting,
                            message:
                                "The identifier of a background session is empty. Pass one that is the same in each run "
                                + "of the program.")))
            }
            let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
            configure(configuration)
            let session = URLSession(
                configuration: configuration, delegate: BackgroundReporter(engine), delegateQueue: nil)
            engine.connect(
                .success(BackgroundURLSession(session: session)),
                lifetime: configuration.timeoutIntervalForResource + 86_400)
        }

        /// The closure that is called with each transfer that ended without an operation.
        ///
        /// The closure is called on a queue of the session, one call at a time, in the order in which the transfers
        /// ended. The closure does not delay the system's events. The handlers that you pass to
        /// ``handleEvents(completion:)`` are called after the closure has returned.
        ///
        /// The session keeps up to 1,000 transfers that end while the property is `nil`. If there are more, the session
        /// removes the oldest ones and calls the closure once with the error ``NetworkError/Code/resourcesExhausted``.
        /// If the program ends before you set the closure, the kept transfers are lost.
        public var onOrphan: (@Sendable (Orphan) -> Void)? {
            get { rule.withLock { $0 } }
            set {
                var old = newValue
                rule.withLock { swap(&$0, &old) }
                // If two threads set the closure, the engine uses the one that is stored.
                engine.setRule(self.engineRule)
            }
        }

        private var engineRule: BackgroundTransfers.Rule? {
            guard let closure = onOrphan else { return nil }
            return { closure(Orphan($0)) }
        }

        /// Keeps the completion handler of the app delegate, and calls it on the main actor when the system has
        /// delivered all events and ``onOrphan`` has returned for each of them.
        ///
        /// Call this method before the method of the app delegate returns. If the system had already delivered all
        /// events, the session calls the handler after two seconds without an event. In any case, the session calls the
        /// handler after 20 seconds without an event. If you pass several handlers before that, the session calls all
        /// of them. The handler does not wait for the handlers of operations. On a watch, complete the
        /// `WKURLSessionRefreshBackgroundTask` in the handler.
        public func handleEvents(completion: @escaping @MainActor @Sendable () -> Void) {
            engine.keep(completion)
        }

        /// Returns the transfers in progress that no operation waits for, such as the transfers of an earlier run of
        /// the program.
        public func transfers() async -> [Transfer] {
            await engine.findOrphans().compactMap { task in
                (task as? any SystemTask & ProgressReporting).map { Transfer($0, self) }
            }
        }

        /// Restarts a failed download from where it stopped if the orphan has resume data, and otherwise from the first
        /// byte.
        ///
        /// The new transfer also ends as an orphan.
        ///
        /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotRepeatable`` if the orphan was an
        ///   upload, because its body is no longer available. The code is ``NetworkError/Code/invalidURL`` if the
        ///   orphan has no request.
        public func restart(_ orphan: Orphan) throws(NetworkError) {
            try engine.restart(orphan.request, resumeData: orphan.resumeData, isUpload: orphan.isUpload)
        }

        /// Creates a task that waits for its first `resume()`.
        public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            engine.makeTask(with: request, receiver: receiver)
        }
    }

    private struct BackgroundURLSession: BackgroundSystem {
        let session: URLSession

        func makeDownload(_ request: URLRequest) throws(NetworkError) -> any SystemTask {
            try session.makingTask { try FoundationTasks.downloadTask(in: session, request: request) }
        }

        func makeDownload(continuing resumeData: Data) throws(NetworkError) -> any SystemTask {
            try session.makingTask { try FoundationTasks.downloadTask(in: session, resumeData: resumeData) }
        }

        func makeUpload(_ request: URLRequest, from file: URL) throws(NetworkError) -> any SystemTask {
            try session.makingTask { try FoundationTasks.uploadTask(in: session, request: request, file: file) }
        }

        func findTasks(_ completion: @escaping @Sendable ([any SystemTask]) -> Void) {
            session.getAllTasks { completion($0) }
        }
    }

    /// The delegate of a background session, which forwards the events of the system.
    private final class BackgroundReporter: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, Sendable {
        private let transfers: BackgroundTransfers

        init(_ transfers: BackgroundTransfers) { self.transfers = transfers }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {
            transfers.saved(downloadTask.taskIdentifier, location)
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
            expectedTotalBytes: Int64
        ) {
            transfers.continued(downloadTask.taskIdentifier)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            transfers.received(dataTask.taskIdentifier, data)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) {
            transfers.sent(task.taskIdentifier, totalBytesSent)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            transfers.measured(task.taskIdentifier, TransferMetrics(metrics))
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            transfers.ended(task, error, resumeData: (error as? URLError)?.downloadTaskResumeData)
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            // For example, another process uses the identifier. Creating a task in this session would crash the
            // program.
            transfers.close()
        }

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
            transfers.finishedEvents()
        }
    }
#endif
