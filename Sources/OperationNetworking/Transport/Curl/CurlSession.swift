// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// A session for Linux that sends requests with libcurl.
    ///
    /// The session uses the libcurl library that FoundationNetworking requires, so you do not need to install another
    /// library. All tasks of the session share one thread. The session reuses connections and can send several requests
    /// over an HTTP/2 connection at the same time.
    ///
    /// If you release a session, it ends after its last task. If you create a session before a call to `fork`, the
    /// session does not work in the child process, where its tasks end with ``NetworkError/Code/sessionUnavailable``.
    public final class CurlSession: NetworkSession {
        /// The shared session of the process, which has the default configuration.
        public static let shared = CurlSession()

        /// The error that explains why libcurl sessions do not work on this system, or `nil` if they work.
        public static var problem: NetworkError? {
            if case .failure(let error) = CurlLibrary.shared { error } else { nil }
        }

        /// The versions of libcurl and its TLS library as text for a log, or `nil` if libcurl is not usable.
        package static var libraryVersion: String? { try? CurlLibrary.shared.get().version }

        /// A Boolean value that indicates whether libcurl reports which requests an HTTP/2 server did not process.
        package static var reportsRefusals: Bool { (try? CurlLibrary.shared.get().reportsRefusals) ?? false }

        private let engine: CurlEngine

        /// Creates a session whose thread starts when you first resume a task.
        ///
        /// - Parameter configuration: The configuration of the session, which you cannot change later.
        public init(configuration: Configuration = Configuration()) {
            engine = CurlEngine(configuration)
        }

        /// Creates a session for tests, whose clock is ahead of the clock of the system.
        ///
        /// The session notices a jump of the clock at its next event.
        package init(configuration: Configuration, clockOffset: @escaping @Sendable () -> Duration) {
            engine = CurlEngine(configuration, clockOffset: clockOffset)
        }

        deinit {
            engine.finish()
        }

        /// The configuration that you passed to the initializer of the session.
        public var configuration: Configuration { engine.configuration }

        /// Creates a task that sends a request when you first call the task's `resume()` method.
        public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            CurlTask(request, receiver, engine, CurlEngine.Extras())
        }

        /// Ends all tasks of the session with ``NetworkError/Code/sessionClosed`` and closes all connections.
        ///
        /// The method returns immediately, and the thread of the session ends the tasks. Tasks that you resume later
        /// also end with `sessionClosed`.
        public func close() {
            engine.close()
        }

        /// Closes the session and waits until its thread has ended.
        ///
        /// If you call the method on the session's thread, for example in a method of a ``NetworkReceiver``, the method
        /// does not wait.
        @available(*, noasync, message: "This method blocks the thread. Call close() instead.")
        package func closeAndWait() {
            engine.close()
            engine.waitForThread()
        }
    }
#endif
