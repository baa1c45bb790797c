// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#elseif canImport(ExceptionGuard)
    import ExceptionGuard
#endif

/// Makes Foundation's tasks for a carrier, on its queue.
protocol URLSessionTaskMaking: Sendable {
    /// Whether the tasks outlive the process. They then send bodies from files only, receive theirs in files, and have no time
    /// limits.
    var isInBackground: Bool { get }

    /// Makes a task.
    ///
    /// - Parameter existing: A task that the system carries out already, which is to be used instead.
    func makeWork(
        _ request: NetworkRequest, _ body: URLSessionTransferBody.Form, _ existing: (any SystemTask)?,
        _ tell: @escaping URLSessionReporter.Tell
    ) throws(NetworkError) -> URLSessionWork

    /// There is something to do.
    func wake()
    /// There is nothing to do any more: calls `action` if it stays so for long.
    func idle(_ action: @escaping @Sendable () -> Void)
    /// Closes the connections.
    func rest()
}

extension URLSessionTaskMaker: URLSessionTaskMaking {
    var isInBackground: Bool { false }
}

#if canImport(FoundationNetworking)
    /// Makes Foundation's tasks in private sessions, which have the configuration of the user's without all that does harm.
    ///
    /// A request with a body gets a session, and so a connection, of its own: over one that had been kept and broke,
    /// Foundation would send an empty body.
    final class URLSessionTaskMaker: Sendable {
        private static let idleLifetime = Duration.seconds(60)

        // Sendable: what is not a constant is only used on the carrier's queue.
        private let configuration: URLSessionConfiguration
        private let fields: HeaderFields
        private let name: String
        /// Whether the user's session would keep the cookies that servers set.
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
            // Its parser can be made to end the process, so cookies are not even to be looked at.
            configuration.httpCookieStorage = nil
            configuration.httpCookieAcceptPolicy = .never
            configuration.httpShouldSetCookies = false
            configuration.timeoutIntervalForRequest = URLRequest.longInterval
            self.configuration = configuration
            if hasCookies { noteLostCookies() }
            guard hasCredentials else { return }
            report(
                "The credentials in its urlCredentialStorage are not used on Linux. Set the challenges of an "
                    + "ExchangeConfiguration, or set urlCredentialStorage to nil.")
        }

        /// The session has cookies, or got one, that its requests do not use.
        func noteLostCookies() {
            guard wantsCookies, !hasReportedCookies.exchange(true, ordering: .relaxed) else { return }
            report(
                "The cookies of its httpCookieStorage are not used on Linux, and no cookie of a server is kept. Make an "
                    + "ExchangeSession over the session and set the cookies of its configuration to a CookieJar, or set "
                    + "httpCookieStorage to nil.")
        }

        private func report(_ message: String) {
            // The handler is the user's, and this thread may belong to a session.
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
            _ request: NetworkRequest, _ body: URLSessionTransferBody.Form, _ existing: (any SystemTask)?,
            _ tell: @escaping URLSessionReporter.Tell
        ) throws(NetworkError) -> URLSessionWork {
            let plain = URLRequest(carrying: request, adding: fields, timeout: URLRequest.longInterval)
            // What waits for nobody would wait for those of the session that is kept.
            if case .none = body, !request.options.isAhead {
                let (session, reporter) = keptSession()
                let task = session.dataTask(with: plain)
                reporter.listen(to: task, tell)
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
            reporter.listen(to: task, tell)
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
    /// Makes Foundation's tasks in the user's session.
    final class URLSessionTaskMaker: Sendable {
        private let session: WeakSession

        private struct WeakSession: @unchecked Sendable {
            // Sendable: written once.
            weak var session: URLSession?
        }

        init(_ session: URLSession) {
            self.session = WeakSession(session: session)
        }

        /// Foundation has a line of its own.
        static func maximumPerHost(_ session: URLSession) -> Int { .max }

        func makeWork(
            _ request: NetworkRequest, _ body: URLSessionTransferBody.Form, _ existing: (any SystemTask)?,
            _ tell: @escaping URLSessionReporter.Tell
        ) throws(NetworkError) -> URLSessionWork {
            guard let session = session.session, session.configuration.identifier == nil else {
                throw NetworkError(
                    code: .sessionUnavailable, phase: .waiting,
                    message: "A URLSession for the background cannot carry this. Make a BackgroundSession.")
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
            reporter.listen(to: task, tell)
            task.delegate = reporter
            return URLSessionWork(task: task)
        }

        func wake() {}
        func idle(_ action: @escaping @Sendable () -> Void) {}
        func rest() {}
    }

    extension URLSession {
        /// Makes a task of the session.
        ///
        /// - Throws: An error with the code `sessionClosed` if the session is invalidated, and `preparationFailed` if Foundation
        ///   refuses to make the task for another reason.
        func makingTask(_ make: () throws -> URLSessionTask) throws(NetworkError) -> URLSessionTask {
            do { return try make() } catch {
                let reason = error.localizedDescription
                // There is no documented way to ask a session before.
                if reason.contains("invalidated") { throw URLSessionAdapter.closed }
                throw NetworkError(
                    code: .preparationFailed, phase: .waiting, message: "URLSession does not make the task: \(reason)")
            }
        }
    }

    #if canImport(ExceptionGuard)
        typealias FoundationTasks = OKTaskMaker
    #else
        /// The same without the target in Objective-C: an exception ends the process.
        enum FoundationTasks {
            static func dataTask(in session: URLSession, request: URLRequest) throws -> URLSessionTask {
                session.dataTask(with: request)
            }

            static func uploadTask(in session: URLSession, request: URLRequest, data: Data) throws -> URLSessionTask {
                session.uploadTask(with: request, from: data)
            }

            static func uploadTask(in session: URLSession, request: URLRequest, file: URL) throws -> URLSessionTask {
                session.uploadTask(with: request, fromFile: file)
            }

            static func downloadTask(in session: URLSession, request: URLRequest) throws -> URLSessionTask {
                session.downloadTask(with: request)
            }

            static func downloadTask(in session: URLSession, resumeData: Data) throws -> URLSessionTask {
                session.downloadTask(withResumeData: resumeData)
            }
        }
    #endif
#endif

/// A task of Foundation's, and how it may be treated.
struct URLSessionWork {
    let task: any SystemTask
    /// A session that was made for this task alone.
    var session: URLSession?
    var hasEnded = false
    private let canBeSuspended: Bool
    private var brake = CountedSuspension()

    #if canImport(FoundationNetworking)
        /// On Linux Foundation would send the request again, and mix the bytes.
        static let canBeSuspended = false
    #else
        static let canBeSuspended = true
    #endif

    init(task: any SystemTask, session: URLSession? = nil, canBeSuspended: Bool = Self.canBeSuspended) {
        self.task = task
        self.session = session
        self.canBeSuspended = canBeSuspended
    }

    /// Ends it, if it has not ended by itself.
    func stop() {
        if !hasEnded { task.cancel() }
        session?.finishTasksAndInvalidate()
    }

    /// Starts the task, which Foundation makes as a suspended one.
    mutating func start(isSuspended: Bool) {
        brake = CountedSuspension(isSuspended: isSuspended && canBeSuspended)
        if !isSuspended || !canBeSuspended { task.resume() }
    }

    /// Stops both directions, where that can be done.
    mutating func setSuspended(_ isSuspended: Bool) {
        if canBeSuspended { brake.set(isSuspended, on: task) }
    }
}

/// What of a `URLSessionTask` a suspension needs.
package protocol SuspendableTask {
    func suspend()
    func resume()
}

/// The part of a `URLSessionTask` that carriers use, so that a script can take its place in tests.
package protocol SystemTask: AnyObject, SuspendableTask, Sendable {
    var taskIdentifier: Int { get }
    var originalRequest: URLRequest? { get }
    var response: URLResponse? { get }
    var taskDescription: String? { get set }
    var isUpload: Bool { get }
    var isFinished: Bool { get }
    func cancel()
}

extension URLSessionTask: SystemTask {
    package var isUpload: Bool { self is URLSessionUploadTask }
    package var isFinished: Bool { state == .completed }
}

/// Whether a running task of Foundation is suspended.
///
/// Foundation counts suspensions: a task that was suspended twice needs two calls of `resume()`. So the task is called only
/// when something changes.
package struct CountedSuspension {
    private var isSuspended: Bool

    package init(isSuspended: Bool = false) { self.isSuspended = isSuspended }

    package mutating func set(_ wanted: Bool, on task: some SuspendableTask) {
        guard wanted != isSuspended else { return }
        isSuspended = wanted
        wanted ? task.suspend() : task.resume()
    }
}
