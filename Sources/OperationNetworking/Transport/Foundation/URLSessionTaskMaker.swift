// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#elseif canImport(ExceptionGuard)
    import ExceptionGuard
#endif

/// An object that creates Foundation's tasks for an adapter, on the queue of the adapter.
package protocol URLSessionTaskMaking: Sendable {
    /// Whether the tasks outlive the process.
    ///
    /// Such tasks send bodies from files only, receive bodies in files, and have no time limits.
    var isInBackground: Bool { get }

    /// Creates a task.
    ///
    /// - Parameter existing: A task that the system already carries out, and that is used instead.
    func makeWork(
        _ request: NetworkRequest, _ body: URLSessionTransferBody, _ existing: (any SystemTask)?,
        _ handler: @escaping URLSessionEvent.Handler
    ) throws(NetworkError) -> URLSessionWork

    /// Records that there is work.
    func wake()
    /// Records that there is no more work, and calls `action` if that does not change for a while.
    func idle(_ action: @escaping @Sendable () -> Void)
    /// Closes the idle connections.
    func rest()
}

extension URLSessionTaskMaker: URLSessionTaskMaking {
    var isInBackground: Bool { false }
}

#if canImport(FoundationNetworking)
    /// An object that creates Foundation's tasks in private sessions, whose configuration leaves out all unsafe
    /// options.
    ///
    /// If a kept connection breaks, Foundation sends the request again over a new one, but without the body. So a request
    /// with a body, and a request that is not idempotent, gets its own session and connection.
    final class URLSessionTaskMaker: Sendable {
        private static let idleLifetime = Duration.seconds(60)

        // Sendable: what is not a constant is only used on the carrier's queue.
        private let configuration: URLSessionConfiguration
        private let fields: HeaderFields
        private let name: String
        /// Whether the user's session would store the cookies that servers set.
        private let wantsCookies: Bool
        private let hasReportedCookies = Atomic(false)
        private nonisolated(unsafe) var kept: (session: URLSession, reporter: URLSessionReporter)?
        private nonisolated(unsafe) var timer: (any OperationTimer)?

        init(_ session: URLSession) {
            let configuration = session.configuration
            fields = HeaderFields(fieldsOf: configuration)
            name = session.sessionDescription ?? "URLSession"
            wantsCookies =
                configuration.httpCookieStorage != nil && configuration.httpShouldSetCookies
                && configuration.httpCookieAcceptPolicy != .never
            let hasCookies = wantsCookies && configuration.httpCookieStorage?.cookies?.isEmpty == false
            let hasCredentials = configuration.urlCredentialStorage?.allCredentials.isEmpty == false
            configuration.httpAdditionalHeaders = nil
            configuration.urlCache = nil
            configuration.urlCredentialStorage = nil
            // A server could crash the program through Foundation's parser, so cookies are ignored completely.
            configuration.httpCookieStorage = nil
            configuration.httpCookieAcceptPolicy = .never
            configuration.httpShouldSetCookies = false
            configuration.timeoutIntervalForRequest = URLRequest.longInterval
            self.configuration = configuration
            if hasCookies { reportLostCookies() }
            guard hasCredentials else { return }
            report(
                "On Linux, OperationKit does not use the credentials in the session's urlCredentialStorage. "
                    + "Set the challenges of an ExchangeConfiguration, or set urlCredentialStorage to nil.")
        }

        /// Reports once that the session has cookies that its requests do not use.
        func reportLostCookies() {
            guard wantsCookies, !hasReportedCookies.exchange(true, ordering: .relaxed) else { return }
            report(
                "On Linux, OperationKit does not use the cookies in the session's httpCookieStorage, and stores no "
                    + "cookies from servers. Create an ExchangeSession over the session and set the cookies of its "
                    + "configuration to a CookieJar, or set httpCookieStorage to nil.")
        }

        private func report(_ message: String) {
            // The handler belongs to the user, and this thread may belong to a session.
            DispatchQueue.global().async { [name] in
                OperationDiagnostics.report(.sessionStorage, by: name, message)
            }
        }

        deinit {
            timer?.cancel()
            kept?.session.finishTasksAndInvalidate()
        }

        static func maximumPerHost(_ session: URLSession) -> Int {
            max(session.configuration.httpMaximumConnectionsPerHost, 1)
        }

        func makeWork(
            _ request: NetworkRequest, _ body: URLSessionTransferBody, _ existing: (any SystemTask)?,
            _ handler: @escaping URLSessionEvent.Handler
        ) throws(NetworkError) -> URLSessionWork {
            let plain = URLRequest(carrying: request, adding: fields, timeout: URLRequest.longInterval)
            // A request that goes ahead of others must not wait for the requests of the kept session.
            if case .none = body, request.isIdempotent, !request.options.isAhead {
                let (session, reporter) = keptSession()
                let task = session.dataTask(with: plain)
                reporter.listen(to: task, handler)
                return URLSessionWork(task: task)
            }
            let (session, reporter) = newSession()
            let task: URLSessionTask =
                switch body {
                case .none: session.dataTask(with: plain)
                case .data(let data): session.uploadTask(with: plain, from: data)
                case .file(let region): session.uploadTask(with: plain, fromFile: region.url)
                case .temporary(let file): session.uploadTask(with: plain, fromFile: file.url)
                }
            task.priority = request.options.priority.foundation
            reporter.listen(to: task, handler)
            return URLSessionWork(task: task, session: session)
        }

        private func keptSession() -> (URLSession, URLSessionReporter) {
            if let kept { return kept }
            let made = newSession()
            kept = made
            return made
        }

        private func newSession() -> (URLSession, URLSessionReporter) {
            let reporter = URLSessionReporter()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            return (URLSession(configuration: configuration, delegate: reporter, delegateQueue: queue), reporter)
        }

        func wake() {
            timer?.cancel()
            timer = nil
        }

        func idle(_ action: @escaping @Sendable () -> Void) {
            wake()
            timer = SystemClock.shared.schedule(after: Self.idleLifetime, action)
        }

        func rest() {
            wake()
            kept?.session.finishTasksAndInvalidate()
            kept = nil
        }
    }
#else
    /// An object that creates Foundation's tasks in the user's session.
    final class URLSessionTaskMaker: Sendable {
        private let session: WeakReference<URLSession>

        init(_ session: URLSession) {
            self.session = WeakReference(session)
        }

        /// Returns no limit, because Foundation has its own queue.
        static func maximumPerHost(_ session: URLSession) -> Int { .max }

        func makeWork(
            _ request: NetworkRequest, _ body: URLSessionTransferBody, _ existing: (any SystemTask)?,
            _ handler: @escaping URLSessionEvent.Handler
        ) throws(NetworkError) -> URLSessionWork {
            guard let session = session.object, session.configuration.identifier == nil else {
                throw NetworkError(
                    code: .sessionUnavailable, phase: .waiting,
                    message: "A background URLSession cannot send this request. Use a BackgroundSession.")
            }
            let plain = URLRequest(carrying: request, timeout: URLRequest.longInterval)
            let task = try session.makingTask {
                switch body {
                case .none: try FoundationTasks.dataTask(in: session, request: plain)
                case .data(let data): try FoundationTasks.uploadTask(in: session, request: plain, data: data)
                case .file(let region): try FoundationTasks.uploadTask(in: session, request: plain, file: region.url)
                case .temporary(let file): try FoundationTasks.uploadTask(in: session, request: plain, file: file.url)
                }
            }
            task.priority = request.options.priority.foundation
            let reporter = URLSessionReporter()
            reporter.listen(to: task, handler)
            task.delegate = reporter
            return URLSessionWork(task: task)
        }

        func wake() {}
        func idle(_ action: @escaping @Sendable () -> Void) {}
        func rest() {}
    }

    extension URLSession {
        /// Creates a task of the session.
        ///
        /// - Throws: An error with the code `sessionClosed` if the session is invalidated, and `preparationFailed` if
        ///   Foundation refuses to create the task for another reason.
        package func makingTask(_ make: () throws -> URLSessionTask) throws(NetworkError) -> URLSessionTask {
            do { return try make() } catch { throw .refusedTask(because: error.localizedDescription) }
        }
    }

    #if canImport(ExceptionGuard)
        package typealias FoundationTasks = OKTaskMaker
    #else
        /// A replacement for the Objective-C target, in which an exception ends the process.
        package enum FoundationTasks {
            static func dataTask(in session: URLSession, request: URLRequest) throws -> URLSessionTask {
                session.dataTask(with: request)
            }

            static func uploadTask(in session: URLSession, request: URLRequest, data: Data) throws -> URLSessionTask {
                session.uploadTask(with: request, from: data)
            }

            package static func uploadTask(in session: URLSession, request: URLRequest, file: URL) throws
                -> URLSessionTask
            {
                session.uploadTask(with: request, fromFile: file)
            }

            package static func downloadTask(in session: URLSession, request: URLRequest) throws -> URLSessionTask {
                session.downloadTask(with: request)
            }

            package static func downloadTask(in session: URLSession, resumeData: Data) throws -> URLSessionTask {
                session.downloadTask(withResumeData: resumeData)
            }
        }
    #endif
#endif

extension NetworkError {
    /// Returns the error for the reason that `URLSession` gives when it does not create a task.
    package static func refusedTask(because reason: String) -> NetworkError {
        // There is no documented way to ask a session beforehand.
        if reason.contains("invalidated") { return URLSessionAdapter.closed }
        return NetworkError(
            code: .preparationFailed, phase: .waiting, message: "URLSession did not create the task: \(reason)")
    }
}

/// A task of Foundation, and the ways in which it can be controlled.
package struct URLSessionWork {
    let task: any SystemTask
    /// The session that was created for this task alone.
    var session: URLSession?
    var hasEnded = false
    private var suspension: CountedSuspension

    package init(
        task: any SystemTask, session: URLSession? = nil, canBeSuspended: Bool = CountedSuspension.isPossible
    ) {
        self.task = task
        self.session = session
        suspension = CountedSuspension(isSuspended: true, canSuspend: canBeSuspended)
    }

    /// Cancels the task, unless it has already ended.
    func stop() {
        if !hasEnded { task.cancel() }
        session?.finishTasksAndInvalidate()
    }

    /// Starts the task, which Foundation creates in the suspended state.
    mutating func start(isSuspended: Bool) {
        if !isSuspended || !suspension.canSuspend { suspension.set(false, on: task) }
    }

    /// Pauses both directions, if that is possible.
    mutating func setSuspended(_ isSuspended: Bool) {
        suspension.set(isSuspended, on: task)
    }
}

/// The part of a `URLSessionTask` that adapters use, so that a script can replace it in tests.
package protocol SystemTask: AnyObject, Sendable {
    var taskIdentifier: Int { get }
    var originalRequest: URLRequest? { get }
    var response: URLResponse? { get }
    var taskDescription: String? { get set }
    var isUpload: Bool { get }
    var isFinished: Bool { get }
    func suspend()
    func resume()
    func cancel()
}

extension URLSessionTask: SystemTask {
    package var isUpload: Bool { self is URLSessionUploadTask }
    package var isFinished: Bool { state == .completed }
}

/// A value that records whether a running task of Foundation is suspended.
///
/// Foundation counts suspensions: a task that was suspended twice needs two calls to `resume()`. So the task is called
/// only when something changes.
package struct CountedSuspension {
    #if canImport(FoundationNetworking)
        /// Whether a running task can be suspended.
        ///
        /// On Linux it cannot, because Foundation would send the request again and mix the bytes.
        package static let isPossible = false
    #else
        package static let isPossible = true
    #endif

    private var isSuspended: Bool
    let canSuspend: Bool

    package init(isSuspended: Bool = false, canSuspend: Bool = true) {
        (self.isSuspended, self.canSuspend) = (isSuspended, canSuspend)
    }

    package mutating func set(_ wanted: Bool, on task: some SystemTask) {
        guard wanted != isSuspended, !wanted || canSuspend else { return }
        isSuspended = wanted
        wanted ? task.suspend() : task.resume()
    }
}
