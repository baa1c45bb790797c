// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation
    import OperationCore

    /// A session whose transfers go on while the program is suspended or was ended by the system.
    ///
    /// The system wants a session delegate for that, so the session is made here; there is one for each identifier. Its
    /// tasks are a `NetworkSession`'s like any other as long as the program runs: the response is written to a file by the
    /// system and handed over at its end. What ends after the program was started anew has no receiver any more, and goes
    /// to ``onOrphan``.
    ///
    /// ```text
    /// func application(
    ///     _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     BackgroundSession.session(identifier).handleEvents { completionHandler() }
    /// }
    /// ```
    ///
    /// The system follows redirects by itself there. Bodies are sent from files: others are written to one first.
    public final class BackgroundSession: NetworkSession {
        /// What a transfer gave of which this run of the program knows nothing.
        public struct Orphan: Sendable {
            /// What was asked for.
            public let request: URLRequest?
            /// What the server said.
            public let response: HTTPURLResponse?
            /// The body, in a file that is removed after the call: move it.
            public let file: URL?
            /// The body of a response to an upload.
            public let body: Data?
            /// Why it failed.
            public let error: NetworkError?
        }

        private static let made = Locked<[String: BackgroundSession]>([:])

        private let reporter = BackgroundReporter()
        private let session: URLSession

        private init(_ configuration: URLSessionConfiguration) {
            session = URLSession(configuration: configuration, delegate: reporter, delegateQueue: nil)
        }

        /// The session of that identifier, which is made when it is asked for first.
        ///
        /// - Parameters:
        ///   - identifier: What the system calls it by, the same in each run of the program.
        ///   - configure: Changes its configuration; only heeded when the session is made.
        public static func session(
            _ identifier: String, configure: (URLSessionConfiguration) -> Void = { _ in }
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

        /// What to do with transfers that were begun in an earlier run.
        ///
        /// Set it before anything else is done.
        public var onOrphan: (@Sendable (Orphan) -> Void)? {
            get { reporter.onOrphan }
            set { reporter.onOrphan = newValue }
        }

        /// Keeps the completion handler of the application's delegate, and calls it on the main queue when all events
        /// were told; all of them, if the application was woken more than once until then.
        public func handleEvents(completion: @escaping @Sendable () -> Void) {
            reporter.keep(completion)
        }

        /// Makes a task that waits for its first `resume()`.
        public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            BackgroundTask(request, receiver, session, reporter)
        }
    }
#endif
