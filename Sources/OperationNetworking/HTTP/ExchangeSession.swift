// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session that adds redirects, authentication, cookies, caching and limits to a transport session.
///
/// These features work in the same way with every transport session. The following function creates a session with
/// cookies, a size limit and credentials:
///
/// ```swift
/// func makeSession(over transport: any NetworkSession) -> ExchangeSession {
///     var configuration = ExchangeConfiguration()
///     configuration.cookies = CookieJar()
///     configuration.maximumBodyBytes = 10 << 20
///     configuration.challenges = ChallengePolicy { question in
///         // Other servers, for example after a redirect, get no credential.
///         guard question.url.host() == "example.com",
///             question.url.scheme == "https", question.refused.isEmpty
///         else { return nil }
///         return .password(user: "anna", password: "secret")
///     }
///     return ExchangeSession(over: transport, configuration: configuration)
/// }
/// ```
///
/// The session does not deliver a redirect that it follows or a challenge to which it responds. The ``ResponseHead``
/// and the metrics belong to the final request, so ``ResponseHead/url`` is the URL of that request. If a request has
/// its own `Cookie` or `Authorization` header, the session does not replace the header.
///
/// Guide: `Docs/Guides/HTTPFeatures.md`
public final class ExchangeSession: NetworkSession {
    /// The transport session, which sends the requests.
    package let transport: any NetworkSession
    /// The configuration of the session's redirects, authentication, cookies, cache and limits.
    package let configuration: ExchangeConfiguration
    private let memory = Locked(ProofMemory())
    #if canImport(FoundationNetworking)
        /// Whether cookies are lost, because there is no jar and the cookies of a `URLSession` are not used on Linux.
        private let losesCookies: Bool
    #endif
    /// Runs a closure that calls a receiver, away from the thread that ended a pause.
    let deliverLater: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// The addresses that are being revalidated while a stored response is served.
    private let revalidating = Locked<Set<String>>([])

    /// Creates a session that sends its requests with a transport session.
    ///
    /// - Parameters:
    ///   - transport: The session that sends the requests.
    ///   - configuration: The configuration, which you cannot change later. By default, the session follows redirects,
    ///     but does not respond to challenges or use cookies or a cache.
    public convenience init(
        over transport: any NetworkSession, configuration: ExchangeConfiguration = ExchangeConfiguration()
    ) {
        self.init(over: transport, configuration: configuration) { DispatchQueue.global().async(execute: $0) }
    }

    package init(
        over transport: any NetworkSession, configuration: ExchangeConfiguration,
        deliverLater: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.transport = transport
        self.configuration = configuration
        self.deliverLater = deliverLater
        #if canImport(FoundationNetworking)
            losesCookies = configuration.cookies == nil && transport is URLSession
        #endif
        if configuration.rateLimit != nil { RateLimit.isUsedBySessions.store(true, ordering: .relaxed) }
    }

    /// Creates a task that sends a request when you first call the task's `resume()` method.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        ExchangeTask(request, session: self, receiver: receiver)
    }

    /// Removes the credentials that the session remembers for later requests.
    ///
    /// For example, call this method when the user signs out. If a server later accepts a credential that a request in
    /// progress already uses, the session does not remember the credential again.
    public func forgetCredentials() {
        memory.withLock { $0.forgetAll() }
    }

    /// Whether the transport may keep cookies and add them to requests, as a `URLSession` does on Apple platforms.
    var hasHiddenCookies: Bool {
        #if OPERATIONKIT_LIBCURL
            if transport is CurlSession || transport is URLSession { return false }
        #endif
        guard configuration.cookies == nil else { return false }
        guard let session = transport as? URLSession else { return true }
        let options = session.configuration
        return options.httpShouldSetCookies && options.httpCookieStorage != nil
    }

    /// Stores the cookies that a response sets.
    func keepCookies(of head: ResponseHead) {
        configuration.cookies?.receive(head.headers.values("Set-Cookie"), from: head.url)
        #if canImport(FoundationNetworking)
            guard losesCookies, head.headers.contains("Set-Cookie"), let session = transport as? URLSession else {
                return
            }
            URLSessionAdapter.of(session).reportLostCookies()
        #endif
    }

    /// The number of times that the session has forgotten its credentials.
    ///
    /// Read it before you ask a rule for a credential.
    var proofGeneration: Int { memory.withLock { $0.generation } }

    func useProof(for hop: Hop) -> (proof: Proof, value: String)? {
        guard configuration.challenges?.remembers == true else { return nil }
        return memory.withLock { $0.use(for: hop) }
    }

    func remember(_ proof: Proof, acceptedBy prepared: PreparedHop) {
        guard configuration.challenges?.remembers == true else { return }
        memory.withLock {
            $0.remember(proof, acceptedBy: prepared.hop, isFromMemory: prepared.isProofFromMemory)
        }
    }

    func forget(_ proof: Proof) {
        memory.withLock { $0.forget(proof) }
    }

    /// Revalidates a stored response while it is being served, at most once at a time for each address.
    func revalidate(_ request: NetworkRequest, resource: String) {
        guard revalidating.withLock({ $0.insert(resource).inserted }) else { return }
        // Only the cache uses the response.
        let receiver = SilentReceiver { [weak self] in
            _ = self?.revalidating.withLock { $0.remove(resource) }
        }
        makeTask(with: request, receiver: receiver).resume()
    }
}

/// A receiver that ignores a response.
final class SilentReceiver: NetworkReceiver {
    private let whenDone: @Sendable () -> Void

    init(whenDone: @escaping @Sendable () -> Void = {}) {
        self.whenDone = whenDone
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) { whenDone() }
}

/// The settings of an ``ExchangeSession`` for redirects, authentication, cookies, caching and limits.
public struct ExchangeConfiguration: Sendable {
    /// The policy that decides whether the session follows redirects.
    ///
    /// The default is ``RedirectPolicy/follow``.
    public var redirects = RedirectPolicy.follow
    /// The policy that provides credentials when a server responds with the status code 401.
    ///
    /// The default is `nil`, which delivers the 401 response.
    public var challenges: ChallengePolicy?
    /// The jar that stores the cookies from responses and adds them to requests.
    ///
    /// The default is `nil`, which means that the session neither stores nor adds cookies.
    public var cookies: CookieJar?
    /// The cache that stores responses for later requests.
    ///
    /// The default is `nil`, which disables caching.
    public var cache: HTTPCache?
    /// The maximum size of a response body after decompression, in bytes.
    ///
    /// A request with a larger response body fails with ``NetworkError/Code/bodyTooLarge``.
    ///
    /// The default is `nil`, which does not limit the size.
    public var maximumBodyBytes: Int64?
    /// The limit on the number of requests that the session sends in a period of time.
    ///
    /// The default is `nil`, which does not limit the requests.
    ///
    /// The limit also applies to requests that follow a redirect. Responses from the cache do not count toward the
    /// limit. Requests from an operation or a base that has its own limit do not count toward the limit of the session.
    public var rateLimit: RateLimit?
    /// The maximum duration of a request, including redirects, challenges, waits and suspensions.
    ///
    /// The default is `nil`, which does not limit the duration.
    public var deadline: Duration?
    /// The clock that measures the ``deadline``.
    ///
    /// The default is the system clock.
    public var clock: any OperationClock = .system
    /// A closure that returns the current date, which the session uses to calculate the age of responses.
    ///
    /// The session can call the closure on any thread. The default closure returns the system's current date.
    package var now: @Sendable () -> Date = { Date() }

    /// Creates a configuration with the default values.
    public init() {}
}

/// One request of an exchange, as the user or a redirect specifies it.
///
/// The value does not include the additions of cookies, credentials and the cache, which are never carried over to the
/// next request.
package struct Hop: Sendable {
    package var method: String
    package var headers: HeaderFields
    private let target: Target
    // The following two values are nil if they are those of the original.
    @Boxed private var otherBody: RequestBody?
    @Boxed private var otherOptions: TransferOptions?

    private enum Target: Sendable {
        /// The user's own request, whose URL was checked when the request was created.
        case original(NetworkRequest)
        indirect case address(WebAddress)
    }

    /// The user's own request, which needs no new checks while it is unchanged.
    private var original: NetworkRequest? {
        if case .original(let request) = target { request } else { nil }
    }

    /// The address, which is created at each call from the URL of the user's own request.
    package var address: WebAddress {
        switch target {
        case .original(let request): WebAddress(of: request)
        case .address(let address): address
        }
    }

    package var body: RequestBody {
        get { otherBody ?? original?.body ?? .none }
        set { otherBody = newValue }
    }

    package var options: TransferOptions {
        get { otherOptions ?? original?.options ?? .standard }
        set { if newValue != options { otherOptions = newValue } }
    }

    package init(
        method: String, address: WebAddress, headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) {
        (self.method, self.headers, target) = (method, headers, .address(address))
        otherBody = body.isNone ? nil : body
        otherOptions = options == .standard ? nil : options
    }

    /// Creates a hop from the user's own request.
    package init(_ request: NetworkRequest) {
        (method, headers, target) = (request.method, request.headers, .original(request))
    }

    /// Returns the same hop to another address.
    package func moved(to address: WebAddress) -> Hop {
        Hop(method: method, address: address, headers: headers, body: body, options: options)
    }

    /// Returns a checked request with these headers.
    package func request(headers: HeaderFields) throws(NetworkError) -> NetworkRequest {
        if let original, otherBody == nil, otherOptions == nil, original.headers == headers { return original }
        guard let url = address.url else {
            throw NetworkError(
                code: .invalidURL, phase: .checking,
                message: "The address \(address.origin) cannot be converted to a URL.")
        }
        return try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
    }
}
