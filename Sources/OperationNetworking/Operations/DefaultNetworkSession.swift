// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session that operations use to which no other is given: that of the platform, until you set another.
///
/// `urlSession: .shared` means this one. It follows redirects and keeps limits (``ExchangeSession``): on Linux over a
/// ``CurlSession``, on Apple's systems, and where libcurl cannot be found, over a `URLSession`.
public final class DefaultNetworkSession: NetworkSession {
    /// The one there is.
    public static let standard = DefaultNetworkSession()

    private let chosen = Locked<(any NetworkSession)?>(nil)
    private let platform: any NetworkSession

    private init() {
        platform = ExchangeSession(over: Self.transport)
    }

    /// The session that does the work: set it once, when the program starts; nil brings the platform's back.
    public var session: (any NetworkSession)? {
        get { chosen.withLock { $0 } ?? platform }
        set {
            var session = newValue
            chosen.withLock { swap(&$0, &session) }
        }
    }

    /// Makes a task with the session that is set now.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        (session ?? platform).makeTask(with: request, receiver: receiver)
    }

    private static var transport: any NetworkSession {
        #if os(Linux)
            if CurlSession.problem == nil { return CurlSession.shared }
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
