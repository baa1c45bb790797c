// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The platform's session, which operations use unless they are created with another session.
///
/// There are two default sessions, which share their connections:
///
/// - ``standard`` is the session of operations that are created without one. This session does not store cookies,
///   because a server process would otherwise mix the cookies of its users.
/// - `urlSession: .shared` stores cookies in memory for the life of the process, as `URLSession.shared` does. A cookie
///   that a response sets is sent with the next request to that server. The cookies are in ``sharedCookies``.
///
/// Both sessions follow redirects and apply limits, as an ``ExchangeSession`` does. On Linux, they send requests
/// through a ``CurlSession``. On Apple platforms, and on Linux if libcurl cannot be used, they send requests through
/// a `URLSession`. If libcurl cannot be used, `OperationDiagnostics` reports a notice once per process.
public final class DefaultNetworkSession: NetworkSession {
    /// The session of operations that are created without a session.
    ///
    /// This session does not store cookies.
    public static let standard = DefaultNetworkSession(cookies: nil)

    /// The session of `.shared`.
    fileprivate static let withCookies = DefaultNetworkSession(cookies: sharedCookies)

    /// The cookie jar of `.shared`, which is in memory.
    ///
    /// Remove the cookies when the user signs out.
    public static let sharedCookies = CookieJar()

    /// The session that transfers the data on this platform.
    ///
    /// Build your own session on top of this session. For example,
    /// `ExchangeSession(over: DefaultNetworkSession.platformTransport, configuration: withCookies)` is a session with
    /// cookies.
    public static let platformTransport: any NetworkSession = makeTransport()

    /// The session that replaces both default sessions, if one was set.
    private static let chosen = Locked<(any NetworkSession)?>(nil)
    private let platform: any NetworkSession

    private init(cookies: CookieJar?) {
        var configuration = ExchangeConfiguration()
        configuration.cookies = cookies
        platform = ExchangeSession(over: Self.platformTransport, configuration: configuration)
    }

    /// The session that performs the requests.
    ///
    /// Set this property once, when the program starts. The session that you set replaces both default sessions, and
    /// determines whether cookies are stored. Setting `nil` restores the sessions of the platform.
    ///
    /// A session that you set must not send its requests to a `DefaultNetworkSession`, because the requests would
    /// circulate forever. Build it on ``platformTransport`` instead. If you set a `DefaultNetworkSession`, the sessions
    /// of the platform are restored. If you set an ``ExchangeSession`` over a `DefaultNetworkSession`, that session
    /// uses ``platformTransport`` instead.
    public var session: (any NetworkSession)? {
        get { Self.chosen.withLock { $0 ?? platform } }
        set {
            var session = newValue.flatMap(withoutCircle)
            Self.chosen.withLock { swap(&$0, &session) }
        }
    }

    private func withoutCircle(_ session: any NetworkSession) -> (any NetworkSession)? {
        if session is DefaultNetworkSession { return nil }
        guard let exchange = session as? ExchangeSession, exchange.transport is DefaultNetworkSession else {
            return session
        }
        return ExchangeSession(over: Self.platformTransport, configuration: exchange.configuration)
    }

    /// Creates a task with the current session.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        (session ?? platform).makeTask(with: request, receiver: receiver)
    }

    /// Whether the current ``session`` ``NetworkSession/startsTasksBriefly``.
    ///
    /// The value is read under the lock. A reference that is held longer could be the last one, and would free a
    /// user's session here.
    var isBrief: Bool { Self.chosen.withLock { ($0 ?? platform).startsTasksBriefly } }

    private static func makeTransport() -> any NetworkSession {
        #if OPERATIONKIT_LIBCURL
            guard let problem = CurlSession.problem else { return CurlSession.shared }
            // Another thread may wait for this initialization, and the handler may use this very session.
            DispatchQueue.global().async {
                OperationDiagnostics.report(
                    .sessionFallback, by: "DefaultNetworkSession",
                    "\(problem.message) URLSession sends the requests of this process instead. "
                        + "Some server responses crash a process that uses URLSession on Linux.")
            }
        #endif
        return URLSession(configuration: .bare)
    }
}

extension NetworkSession where Self == DefaultNetworkSession {
    /// The default session with cookies, or the session that replaced it.
    ///
    /// A cookie that a response sets is sent with the next request, as `URLSession.shared` does. The cookies are stored
    /// in memory for the life of the process. See ``DefaultNetworkSession``.
    public static var shared: DefaultNetworkSession { .withCookies }
}

extension URLSessionConfiguration {
    /// A configuration without cookies, credentials and a cache, which the layers above the session provide.
    fileprivate static var bare: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpShouldSetCookies = false
        return configuration
    }
}

extension NetworkSession {
    /// Whether the session is known to create and start a task quickly, without calling user code and without reading
    /// a file.
    var startsTasksBriefly: Bool {
        if let exchange = self as? ExchangeSession {
            let configuration = exchange.configuration
            return configuration.cache == nil && configuration.deadline == nil && configuration.rateLimit == nil
                && exchange.transport.startsTasksBriefly
        }
        if let standard = self as? DefaultNetworkSession { return standard.isBrief }
        #if OPERATIONKIT_LIBCURL
            return self is CurlSession
        #else
            return false
        #endif
    }

    /// Whether the session sends requests through `URLSession` or libcurl.
    var isOfPlatform: Bool {
        if let exchange = self as? ExchangeSession { return exchange.transport.isOfPlatform }
        if let standard = self as? DefaultNetworkSession { return standard.session?.isOfPlatform ?? true }
        #if OPERATIONKIT_LIBCURL
            if self is CurlSession { return true }
        #endif
        return self is URLSession
    }

    /// The session itself or the session behind a default session, if it is an ``ExchangeSession``.
    var exchange: ExchangeSession? {
        if let exchange = self as? ExchangeSession { return exchange }
        return (self as? DefaultNetworkSession)?.session as? ExchangeSession
    }
}

/// The session that `createTask(with:using:)` receives, whose tasks report to the operation.
final class BoundSession: NetworkSession {
    let session: any NetworkSession
    private let receiver: AttemptReceiver

    init(_ session: any NetworkSession, _ receiver: AttemptReceiver) {
        self.session = session
        self.receiver = receiver
    }

    /// Whether the attempt of this session is over.
    ///
    /// If a hook keeps the session for a later attempt, the tasks that it creates are unbound.
    var isOutdated: Bool { receiver.isOver }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        TaskCreation.current?.noteBoundTask()
        return session.makeTask(with: request, receiver: receiver)
    }

    func makeBoundTask(with request: NetworkRequest) -> any NetworkTask {
        TaskCreation.current?.noteBoundTask()
        return session.makeTask(with: request, receiver: receiver)
    }
}

extension NetworkSession {
    /// The session itself, or an ``ExchangeSession`` over a `URLSession`, which is expected to follow redirects.
    var withPolicy: any NetworkSession { self is URLSession ? ExchangeSession(over: self) : self }

    /// Creates a task whose response goes to the operation of the session.
    ///
    /// Call this method in an override of ``NetworkOperation/createTask(with:using:)->NetworkTask``, which receives a
    /// session that is bound to its operation. The override may also return a task that it created with another
    /// session, if it has not called any method of that task. The response to any other task that is created by this
    /// method is discarded.
    public func makeTask(with request: NetworkRequest) -> any NetworkTask {
        guard let bound = self as? BoundSession else { return UnboundTask(self, request) }
        return bound.isOutdated ? UnboundTask(bound.session, request) : bound.makeBoundTask(with: request)
    }
}
