// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session of the platform, which operations use unless they get another session.
///
/// There are two of them, which share their connections:
///
/// - ``standard`` is the session of operations that name none. It keeps no cookies, because in a server the cookies of one
///   process would be mixed among its users.
/// - `urlSession: .shared` keeps cookies in memory for the life of the process, as `URLSession.shared` does. A cookie that
///   one response sets is sent with the next request to that server. The cookies are in ``sharedCookies``.
///
/// Both follow redirects and keep limits (``ExchangeSession``): on Linux over a ``CurlSession``, and over a `URLSession` on
/// Apple platforms and where libcurl cannot be used. In the last case a notice says so, once per process: see
/// `OperationDiagnostics`.
public final class DefaultNetworkSession: NetworkSession {
    /// The session of operations that name none.
    ///
    /// It keeps no cookies.
    public static let standard = DefaultNetworkSession(cookies: nil)

    /// The session of `.shared`.
    fileprivate static let withCookies = DefaultNetworkSession(cookies: sharedCookies)

    /// The jar with the cookies of `.shared`, in memory.
    ///
    /// Remove them when the user signs out.
    public static let sharedCookies = CookieJar()

    /// What moves the bytes on this platform, to be built upon: a session with cookies is
    /// `ExchangeSession(over: DefaultNetworkSession.platformTransport, configuration: withCookies)`.
    public static let platformTransport: any NetworkSession = makeTransport()

    /// The session that was set, for both.
    private static let chosen = Locked<(any NetworkSession)?>(nil)
    private let platform: any NetworkSession

    private init(cookies: CookieJar?) {
        var configuration = ExchangeConfiguration()
        configuration.cookies = cookies
        platform = ExchangeSession(over: Self.platformTransport, configuration: configuration)
    }

    /// The session that does the work.
    ///
    /// Set it once, when the program starts. A session that you set takes the place of both default sessions, and whether
    /// cookies are kept depends on it. Setting `nil` restores the sessions of the platform.
    ///
    /// What is set must not itself send its requests to this session, which would be an endless circle; build upon
    /// ``platformTransport``. This session itself, and an ``ExchangeSession`` over it, are taken as over that one.
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

    /// Makes a task with the session that is set now.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        (session ?? platform).makeTask(with: request, receiver: receiver)
    }

    /// Whether the session that is set now ``NetworkSession/startsTasksBriefly``; under the lock, for to hold a session of the
    /// user's beyond it might mean to be the last who lets go of it.
    var isBrief: Bool { Self.chosen.withLock { ($0 ?? platform).startsTasksBriefly } }

    private static func makeTransport() -> any NetworkSession {
        #if OPERATIONKIT_LIBCURL
            guard let problem = CurlSession.problem else { return CurlSession.shared }
            // This is not done on this thread: others may wait for it, and the handler may ask for this very session.
            DispatchQueue.global().async {
                OperationDiagnostics.report(
                    .sessionFallback, by: "DefaultNetworkSession",
                    "\(problem.message) URLSession sends the requests of this process instead. Some responses of servers end "
                        + "a process that uses URLSession on Linux.")
            }
        #endif
        return URLSession(configuration: .bare)
    }
}

extension NetworkSession where Self == DefaultNetworkSession {
    /// The default session with cookies, or the session that took its place.
    ///
    /// A cookie that one response sets is sent with the next request, as by `URLSession.shared`. The cookies are kept in
    /// memory for the life of the process: see ``DefaultNetworkSession``.
    public static var shared: DefaultNetworkSession { .withCookies }
}

extension URLSessionConfiguration {
    /// Without all that is done above a session: cookies, credentials, caching.
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
    /// Whether it is known to make and start a task in a moment, without a word to code of the user's and without reading
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

    /// Whether the session sends over the network by the platform's own means.
    var isOfPlatform: Bool {
        if let exchange = self as? ExchangeSession { return exchange.transport.isOfPlatform }
        if let standard = self as? DefaultNetworkSession { return standard.session?.isOfPlatform ?? true }
        #if OPERATIONKIT_LIBCURL
            if self is CurlSession { return true }
        #endif
        return self is URLSession
    }

    /// The session itself, or the one that the default session uses, if it is an ``ExchangeSession``.
    var exchange: ExchangeSession? {
        if let exchange = self as? ExchangeSession { return exchange }
        return (self as? DefaultNetworkSession)?.session as? ExchangeSession
    }
}

/// The session that `createTask(with:using:)` gets: tasks made with it alone tell the operation what comes.
final class BoundSession: NetworkSession {
    let session: any NetworkSession
    private let receiver: AttemptReceiver

    init(_ session: any NetworkSession, _ receiver: AttemptReceiver) {
        self.session = session
        self.receiver = receiver
    }

    /// Whether its attempt is over.
    ///
    /// A hook that kept the session for a later attempt gets tasks that are not bound.
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
    /// The session with what is done above it, if it is one of Foundation's: of such one expects that it follows redirects.
    var withPolicy: any NetworkSession { self is URLSession ? ExchangeSession(over: self) : self }

    /// Makes a task whose response goes to the operation to which the session was handed.
    ///
    /// It is for ``NetworkOperation/createTask(with:using:)->NetworkTask``, which gets a session that is bound to its
    /// operation. The hook may also return a task that it made in this way with another session, as long as it does not
    /// call that task itself. The response to any other task that was made in this way is dropped.
    public func makeTask(with request: NetworkRequest) -> any NetworkTask {
        guard let bound = self as? BoundSession else { return UnboundTask(self, request) }
        return bound.isOutdated ? UnboundTask(bound.session, request) : bound.makeBoundTask(with: request)
    }
}
