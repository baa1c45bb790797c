// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation
    import OperationCore

    /// A session whose transfers continue while the program is suspended, and after the system has ended it.
    ///
    /// The system requires a session delegate for that, so OperationKit makes the session. There is one for each identifier.
    /// While the program runs, its tasks are like those of any ``NetworkSession``: the system writes the response to a file,
    /// and the task delivers it when it is complete.
    ///
    /// A transfer that ends after the program was started again has no operation any more. It is an ``Orphan``, and goes to
    /// the closure that you pass to ``session(_:configure:onOrphan:)``. Make the session early after each launch, for
    /// example in the application's delegate, because the system delivers what ended only to a session that exists.
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
    /// The system follows redirects itself in such a session. It sends bodies from files: any other body is written to a file
    /// first.
    public final class BackgroundSession: NetworkSession {
        /// The end of a transfer that an earlier run of the program started.
        public struct Orphan: Sendable {
            /// The request.
            public let request: URLRequest?
            /// The response of the server.
            public let response: HTTPURLResponse?
            /// The body of a download, in a file that is removed after the closure returns: move it.
            public let file: URL?
            /// The body of the response to an upload.
            public let body: Data?
            /// The error with which the transfer ended; nil if it was complete.
            public let error: NetworkError?
            /// What the system needs to continue a download that failed, if it can be continued.
            public let resumeData: Data?
        }

        private static let made = Locked<[String: BackgroundSession]>([:])

        private let reporter = BackgroundReporter()
        private let session: URLSession

        private init(_ configuration: URLSessionConfiguration) {
            session = URLSession(configuration: configuration, delegate: reporter, delegateQueue: nil)
        }

        /// Returns the session with an identifier, which is made at the first call.
        ///
        /// - Parameters:
        ///   - identifier: The identifier, which is the same in each run of the program.
        ///   - configure: Changes the configuration. It is called only if the session is made.
        ///   - onOrphan: A closure that is called on the session's queue with each transfer of an earlier run that ended.
        ///     If it is nil, such transfers are kept until you set ``onOrphan``. A later call replaces an earlier closure.
        public static func session(
            _ identifier: String, configure: (URLSessionConfiguration) -> Void = { _ in },
            onOrphan: (@Sendable (Orphan) -> Void)? = nil
        ) -> BackgroundSession {
            let background = Self.session(identifier, configuredBy: configure)
            if let onOrphan { background.onOrphan = onOrphan }
            return background
        }

        private static func session(
            _ identifier: String, configuredBy configure: (URLSessionConfiguration) -> Void
        ) -> BackgroundSession {
            if let known = made.withLock({ $0[identifier] }) { return known }
            let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
            configure(configuration)
            return made.withLock { made in
                // The system does not allow two at a time.
                if let known = made[identifier] { return known }
                let session = BackgroundSession(configuration)
                made[identifier] = session
                return session
            }
        }

        /// The closure that is called with each transfer of an earlier run that ended.
        ///
        /// Transfers that ended while it was nil are delivered on the calling thread as soon as you set it.
        public var onOrphan: (@Sendable (Orphan) -> Void)? {
            get { reporter.onOrphan }
            set { reporter.onOrphan = newValue }
        }

        /// Keeps the completion handler of the application's delegate, and calls it when the system has delivered all events.
        ///
        /// If the system has done so already, the handler is called immediately. If the application was woken more than once
        /// until then, all handlers are called.
        public func handleEvents(completion: @escaping @MainActor @Sendable () -> Void) {
            reporter.keep(completion)
        }

        /// Starts the download of an orphan that failed again: from where it stopped if the orphan has resume data,
        /// otherwise from its first byte.
        ///
        /// Its end is an orphan, too. Does nothing if the orphan was an upload, whose body is not known any more.
        public func restart(_ orphan: Orphan) {
            if let resumeData = orphan.resumeData {
                session.downloadTask(withResumeData: resumeData).resume()
            } else if let request = orphan.request, (request.httpMethod ?? "GET") == "GET" {
                session.downloadTask(with: request).resume()
            }
        }

        /// Makes a task that waits for its first `resume()`.
        public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            BackgroundTask(request, receiver, session, reporter)
        }
    }
#endif
