// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// The session of this package on Linux: libcurl on one thread of its own, with one event loop for all its tasks.
    ///
    /// It uses the libcurl that every program with FoundationNetworking has in it; nothing is to be installed. Connections
    /// are kept and used again, also while HTTP/2 carries many requests over one.
    ///
    /// A session that is let go of ends after its last task. In a child process made by `fork` without `exec` sessions made
    /// before do not work: their tasks end with ``NetworkError/Code/sessionUnavailable``.
    public final class CurlSession: NetworkSession {
        /// The session that everybody in the process shares, with the standard configuration; it is never closed by itself.
        public static let shared = CurlSession()

        /// Why sessions of this kind cannot work on this system; nil if they can.
        public static var problem: NetworkError? {
            if case .failure(let error) = CurlLibrary.shared { error } else { nil }
        }

        /// The library beneath and its version, for logs.
        public static var libraryVersion: String? { try? CurlLibrary.shared.get().version }

        /// A Boolean value that indicates whether libcurl tells which requests an HTTP/2 server did not process.
        package static var tellsRefusals: Bool { (try? CurlLibrary.shared.get().tellsRefusals) ?? false }

        private let engine: CurlEngine

        /// Makes a session; its thread begins with the first task.
        public init(configuration: Configuration = Configuration()) {
            engine = CurlEngine(configuration)
        }

        /// Makes a session for tests, whose time limits are kept by a clock that is ahead of the system's.
        ///
        /// What it does about a leap of the clock, it does with the next thing that happens in it.
        package init(configuration: Configuration, lead: @escaping @Sendable () -> Duration) {
            engine = CurlEngine(configuration, lead: lead)
        }

        deinit {
            engine.finish()
        }

        /// How the session was set up.
        public var configuration: Configuration { engine.configuration }

        /// Makes a task that waits for its first `resume()`.
        public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            CurlTask(request, receiver, engine, CurlEngine.Extras())
        }

        /// Ends all tasks with ``NetworkError/Code/sessionClosed`` and closes all connections, soon, on the session's thread.
        ///
        /// Tasks that are resumed later end in the same way.
        public func close() {
            engine.close()
        }

        /// Closes the session and waits until its thread is gone; on that thread itself it does not wait.
        @available(*, noasync, message: "It blocks the thread. Call close() instead.")
        public func closeAndWait() {
            engine.close()
            engine.waitForThread()
        }
    }
#endif
