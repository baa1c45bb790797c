// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session that operations use unless you create them with another session.
///
/// OperationKit provides two default sessions, which share their connections:
///
/// - Operations that you create without a session use ``standard``. This session does not store cookies, because a
///   server process would otherwise mix the cookies of its users.
/// - Operations that you create with `urlSession: .shared` use a session that stores cookies. The jar ``sharedCookies``
///   keeps these cookies in memory until the process ends.
///
/// Both sessions follow redirects, as an ``ExchangeSession`` with the default configuration does. The sessions send
/// requests through a ``CurlSession`` on Linux and through a `URLSession` on Apple platforms. If OperationKit cannot
/// use libcurl on Linux, it reports a notice once and uses a `URLSession` instead.
public final class DefaultNetworkSession: NetworkSession {
    /// The session that operations use if you create them without a session.
    public static let standard = DefaultNetworkSession(cookies: nil)

    /// The session of `.shared`.
    fileprivate static let withCookies = DefaultNetworkSession(cookies: sharedCookies)

    /// The cookie jar of the `.shared` session, which keeps cookies only in memory.
    ///
    /// When the user signs out, remove the cookies from the jar.
    public static let sharedCookies = CookieJar()

    /// The session that transfers data on this platform, without redirects, cookies or a cache.
    ///
    /// To add redirects, cookies or a cache to this session, pass it to ``ExchangeSession/init(over:configuration:)``.
    public static let platformTransport: any NetworkSession = makeTransport()

    /// The session that replaces both default sessions, if one was set.
    private static let chosen = Locked<(any NetworkSession)?>(nil)
    private let builtIn: any NetworkSession

    private init(cookies: CookieJar?) {
        var configuration = ExchangeConfiguration()
        configuration.cookies = cookies
        builtIn = ExchangeSession(over: Self.platformTransport, configuration: configuration)
    }

    /// The session that replaces both default sessions, or this default session's built-in session if you have not set
    /// another session.
    ///
    /// Set this property once, when the program starts. The new session also determines whether cookies are stored. To
    /// restore the built-in sessions, set this property to `nil`.
    ///
    /// The new session must not send its requests to a `DefaultNetworkSession`, because the two sessions would pass
    /// each request to each other forever. Instead, use ``platformTransport`` as the transport of the new session. If
    /// you set an ``ExchangeSession`` that sends its requests to a `DefaultNetworkSession`, directly or through other
    /// exchange sessions, OperationKit replaces the `DefaultNetworkSession` with ``platformTransport``.
    public var session: (any NetworkSession)? {
        get { Self.chosen.withLock { $0 ?? builtIn } }
        set {
            var session = newValue.flatMap(withoutCycle)
            Self.chosen.withLock { swap(&$0, &session) }
        }
    }

    private func withoutCycle(_ session: any NetworkSession) -> (any NetworkSession)? {
        if session is DefaultNetworkSession { return nil }
        guard let exchange = session as? ExchangeSession else { return session }
        let transport = withoutCycle(exchange.transport) ?? Self.platformTransport
        return transport === exchange.transport
            ? exchange : ExchangeSession(over: transport, configuration: exchange.configuration)
    }

    /// Creates a task that sends a request with the current ``session``.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        (session ?? builtIn).makeTask(with: request, receiver: receiver)
    }

    /// Whether the current ``session`` ``NetworkSession/startsTasksBriefly``.
    ///
    /// The value is read under the lock. A reference that is held longer could be the last one, and would free a
    /// user's session here.
    var isBrief: Bool { Self.chosen.withLock { ($0 ?? builtIn).startsTasksBriefly } }

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
    /// The default session that stores cookies.
    ///
    /// The session stores cookies in memory until the process ends and sends the cookies with later requests. To
    /// replace the session, set ``DefaultNetworkSession/session``.
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
        TaskCreation.current?.recordBoundTask()
        return session.makeTask(with: request, receiver: receiver)
    }

    func makeBoundTask(with request: NetworkRequest) -> any NetworkTask {
        TaskCreation.current?.recordBoundTask()
        return session.makeTask(with: request, receiver: receiver)
    }
}

extension NetworkSession {
    /// The session itself, or an ``ExchangeSession`` over a `URLSession`, which is expected to follow redirects.
    var followingRedirects: any NetworkSession { self is URLSession ? ExchangeSession(over: self) : self }

    /// Creates a task that delivers its response to a network operation.
    ///
    /// In an override of ``NetworkOperation/createTask(with:using:)->NetworkTask``, call this method on the session
    /// that the override receives. The override can also return a task from another session if the override has not
    /// called any method of the task. OperationKit discards the response to a task that no operation uses.
    public func makeTask(with request: NetworkRequest) -> any NetworkTask {
        guard let bound = self as? BoundSession else { return UnboundTask(self, request) }
        return bound.isOutdated ? UnboundTask(bound.session, request) : bound.makeBoundTask(with: request)
    }
}
