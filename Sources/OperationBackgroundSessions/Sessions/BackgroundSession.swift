// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation
    import OperationCore
    import OperationNetworking

    #if canImport(ExceptionGuard)
        import ExceptionGuard
    #endif

    /// A session whose transfers continue while the program is suspended and after the system has terminated the
    /// program.
    ///
    /// OperationKit creates a `URLSession` with its own delegate for each identifier. While the program runs, the tasks
    /// behave like the tasks of any ``NetworkSession``, but they deliver a response only when the response is complete.
    ///
    /// When the program is relaunched, the operations of transfers from the earlier launch no longer exist. For each of
    /// these transfers that ends, even before the relaunch, the session passes an ``Orphan`` to the `onOrphan` closure
    /// of ``session(_:configure:onOrphan:)``. Create the session soon after each launch, for example in the app
    /// delegate, because the system delivers finished transfers only to an existing session.
    ///
    /// ```text
    /// func application(
    ///     _ application: UIApplication,
    ///     handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     let session = BackgroundSession.session(
    ///         identifier, onOrphan: { Library.shared.take($0) })
    ///     session.handleEvents { completionHandler() }
    /// }
    /// ```
    ///
    /// The ``transfers()`` method returns the transfers in progress from an earlier launch of the program. You can
    /// cancel these transfers or attach operations to them:
    ///
    /// ```text
    /// for transfer in await session.transfers() {
    ///     guard let url = transfer.request?.url else { continue }
    ///     let download = NetworkDownloadOperation<URL>(
    ///         url: url, urlSession: transfer
    ///     ) { file, _ in file }
    ///     download.destination = .folder(folder)
    ///     download.start()
    /// }
    /// ```
    ///
    /// A failed `GET` download without a `Range` header resumes if an operation sends a request with the same URL and
    /// headers before the program ends. The server must support resuming.
    ///
    /// The system automatically follows redirects. The system sends bodies only from files, so the session first writes
    /// other bodies to a file. The session ignores the timeouts of requests, because the device might sleep. Set
    /// `timeoutIntervalForResource` on the configuration instead.
    public final class BackgroundSession: NetworkSession {
        /// The result of a transfer that no operation waits for, such as a transfer from an earlier launch of the
        /// program.
        public struct Orphan: Sendable {
            /// The request of the transfer, or `nil` if the system does not provide the request.
            public let request: URLRequest?
            /// The server's response, or `nil` if there was no response.
            public let response: HTTPURLResponse?
            /// The URL of the file that contains the response body, or `nil` if there is no file.
            ///
            /// For an upload, the property is `nil` if the response body is not larger than 64 KiB. The session removes
            /// the file after the ``BackgroundSession/onOrphan`` closure returns. To keep the file, move it before the
            /// closure returns.
            public let file: URL?
            /// The body of the response to an upload, or `nil` if the transfer is a download or the body exceeds 64
            /// KiB.
            public let body: Data?
            /// The error with which the transfer failed, or `nil` if the transfer received a complete response.
            ///
            /// A complete response can have any status code.
            public let error: NetworkError?
            /// The data that the system can use to resume a failed download, or `nil` if the system cannot resume the
            /// download.
            public let resumeData: Data?
            /// A Boolean value that indicates whether the transfer was an upload.
            public let isUpload: Bool

            fileprivate init(_ orphan: BackgroundTransfers.Orphan) {
                (request, response, file) = (orphan.request, orphan.response, orphan.file?.url)
                (body, error, resumeData) = (orphan.body, orphan.error, orphan.resumeData)
                isUpload = orphan.isUpload
            }
        }

        /// A transfer in progress that no operation waits for, such as a transfer from an earlier launch of the
        /// program.
        ///
        /// To attach an operation to the transfer, pass the transfer to the operation as its session. The operation's
        /// first request must have the same method and URL as the transfer. The operation receives the transfer's
        /// response without sending this request. The ``BackgroundSession`` sends later requests, such as retries.
        ///
        /// If the transfer ends before the operation starts, the operation fails with
        /// ``NetworkError/Code/sessionUnavailable``. The session passes an orphan for the transfer to
        /// ``BackgroundSession/onOrphan``.
        public final class Transfer: NetworkSession {
            private let task: any SystemTask & ProgressReporting
            private let session: BackgroundSession
            private let isAttached = Locked(false)

            fileprivate init(_ task: any SystemTask & ProgressReporting, _ session: BackgroundSession) {
                self.task = task
                self.session = session
            }

            /// The request of the transfer, or `nil` if the system does not provide the request.
            public var request: URLRequest? { task.originalRequest }
            /// The progress of the transfer.
            public var progress: Progress { task.progress }

            /// Resumes the transfer if the transfer was suspended when the earlier process ended.
            public func resume() { task.resume() }

            /// Cancels the transfer.
            ///
            /// If no operation is attached to the transfer, the session then passes an orphan to
            /// ``BackgroundSession/onOrphan``.
            ///
            /// The code of the orphan's ``BackgroundSession/Orphan/error`` is ``NetworkError/Code/cancelled``.
            public func cancel() { task.cancel() }

            /// Creates a task that receives the transfer's response if no earlier task was created for the transfer.
            ///
            /// Later tasks send their requests with the ``BackgroundSession``.
            ///
            /// - Parameters:
            ///   - request: The request, which must have the same method and URL as the transfer.
            ///   - receiver: The object that receives the events of the task.
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

        /// Returns the background session with the given identifier and creates the session on the first call.
        ///
        /// If the identifier is empty, each task of the session fails with ``NetworkError/Code/sessionUnavailable``.
        ///
        /// - Parameters:
        ///   - identifier: The identifier of the session, which must be the same in each launch of the program. An app
        ///     extension needs its own identifier.
        ///   - configure: A closure that changes the configuration of a new session. If the method creates a session,
        ///     it calls the closure on the calling thread. The default closure changes nothing.
        ///   - onOrphan: A closure that receives an orphan for each transfer that ended without an operation. The
        ///     default is `nil`, which keeps the current value of ``onOrphan``.
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

        /// A closure that receives an orphan for each transfer that ended without an operation, or `nil` to store the
        /// orphans.
        ///
        /// The session calls the closure on a serial queue, in the order in which the transfers ended. The session
        /// calls the handlers from ``handleEvents(completion:)`` after the closure has returned for each transfer.
        ///
        /// While the property is `nil`, the session stores up to 1,000 orphans, and passes them to the closure when you
        /// set it. If there are more orphans, the session removes the oldest ones. The closure then also receives one
        /// orphan whose error has the code ``NetworkError/Code/resourcesExhausted``. If the program ends before you set
        /// a closure, the stored orphans are lost.
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

        /// Stores the app delegate's completion handler until the session has handled all events.
        ///
        /// The session calls the handler on the main actor when the system has delivered all events and ``onOrphan``
        /// has returned for every orphan. The session does not wait for the handlers of operations. If you pass several
        /// handlers, the session calls all of them.
        ///
        /// Call this method before `application(_:handleEventsForBackgroundURLSession:completionHandler:)` returns. If
        /// the system has already delivered all events, the session calls the handler after two seconds without an
        /// event. If the system does not report the end of the events, the session calls the handler after 20 seconds
        /// without an event. On watchOS, complete the `WKURLSessionRefreshBackgroundTask` in the handler.
        ///
        /// - Parameter completion: The completion handler that the system passed to the app delegate.
        public func handleEvents(completion: @escaping @MainActor @Sendable () -> Void) {
            engine.keep(completion)
        }

        /// Returns the transfers in progress that no operation waits for, such as transfers from an earlier launch of
        /// the program.
        public func transfers() async -> [Transfer] {
            await engine.findOrphans().compactMap { task in
                (task as? any SystemTask & ProgressReporting).map { Transfer($0, self) }
            }
        }

        /// Restarts an orphan's failed download.
        ///
        /// If the orphan has resume data, the download resumes. Otherwise, the download starts from the first byte.
        /// When the new transfer ends, the session passes another orphan to ``onOrphan``.
        ///
        /// - Parameter orphan: The orphan whose download to restart.
        /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotRepeatable`` if the orphan is an
        ///   upload, because the body is no longer available. If the orphan has neither a request nor resume data, the
        ///   code is ``NetworkError/Code/invalidURL``.
        public func restart(_ orphan: Orphan) throws(NetworkError) {
            try engine.restart(orphan.request, resumeData: orphan.resumeData, isUpload: orphan.isUpload)
        }

        /// Creates a task that sends a request when you first call the task's `resume()` method.
        ///
        /// - Parameters:
        ///   - request: The request to send.
        ///   - receiver: The object that receives the events of the task.
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
