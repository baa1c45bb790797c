// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session that operations use to which no other is given: that of the platform, until you set another.
///
/// `urlSession: .shared` means this one. It follows redirects and keeps limits (``ExchangeSession``): on Linux over a
/// ``CurlSession``, and over a `URLSession` on Apple platforms and where libcurl cannot be used. In the last case a
/// notice says so, once per process: see `OperationDiagnostics`.
public final class DefaultNetworkSession: NetworkSession {
    /// The one there is.
    public static let standard = DefaultNetworkSession()

    /// What moves the bytes on this platform, to be built upon: a session with cookies is
    /// `ExchangeSession(over: DefaultNetworkSession.platformTransport, configuration: withCookies)`.
    public static let platformTransport: any NetworkSession = makeTransport()

    private let chosen = Locked<(any NetworkSession)?>(nil)
    private let platform: any NetworkSession = ExchangeSession(over: platformTransport)

    private init() {}

    /// The session that does the work: set it once, when the program starts; nil brings the platform's back.
    ///
    /// What is set must not itself send its requests to this session, which would be an endless circle; build upon
    /// ``platformTransport``. This session itself, and an ``ExchangeSession`` over it, are taken as over that one.
    public var session: (any NetworkSession)? {
        get { chosen.withLock { $0 ?? platform } }
        set {
            var session = newValue.flatMap(withoutCircle)
            chosen.withLock { swap(&$0, &session) }
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
    var isBrief: Bool { chosen.withLock { ($0 ?? platform).startsTasksBriefly } }

    private static func makeTransport() -> any NetworkSession {
        #if os(Linux)
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
    /// The default session of the platform, or the one that took its place: see ``DefaultNetworkSession``.
    public static var shared: DefaultNetworkSession { .standard }
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
