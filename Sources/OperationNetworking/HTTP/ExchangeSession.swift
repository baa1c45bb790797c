// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session that does what no session does itself: redirects, challenges, cookies, caching and bounds, the same way
/// whichever session moves the bytes.
///
/// ```swift
/// func makeSession(over transport: any NetworkSession) -> ExchangeSession {
///     var configuration = ExchangeConfiguration()
///     configuration.cookies = CookieJar()
///     configuration.limits.bodyBytes = 10 << 20
///     configuration.challenges = ChallengePolicy { question in
///         // Whoever else asks, after a redirect perhaps, gets nothing.
///         guard question.space.origin.host == "example.com", question.space.origin.isSecure,
///             question.refused.isEmpty
///         else { return nil }
///         return .password(user: "anna", password: "secret")
///     }
///     return ExchangeSession(over: transport, configuration: configuration)
/// }
/// ```
///
/// Its tasks keep to the protocol like any other: one head, the bytes of one body, one end. Redirects that are followed
/// and challenges that are answered are not seen; the head's `url` tells where the answer came from. The metrics are
/// those of the last request. A `Cookie` or `Authorization` field of the request's own takes the place of the jar's and
/// the rule's.
public final class ExchangeSession: NetworkSession {
    /// What moves the bytes.
    public let transport: any NetworkSession
    /// What is done above it.
    public let configuration: ExchangeConfiguration
    private let memory = Locked(ProofMemory())
    #if canImport(FoundationNetworking)
        /// Whether the session is over a `URLSession`, whose own cookies are not used on Linux, and has no cookies itself.
        private let losesCookies: Bool
    #endif
    /// Where a receiver is told what a caller of one of the brakes sets free.
    let tellLater: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// The addresses that are asked about while what is kept is served.
    private let revalidating = Locked<Set<String>>([])

    /// Makes a session over another.
    public convenience init(
        over transport: any NetworkSession, configuration: ExchangeConfiguration = ExchangeConfiguration()
    ) {
        self.init(over: transport, configuration: configuration) { DispatchQueue.global().async(execute: $0) }
    }

    package init(
        over transport: any NetworkSession, configuration: ExchangeConfiguration,
        tellLater: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.transport = transport
        self.configuration = configuration
        self.tellLater = tellLater
        #if canImport(FoundationNetworking)
            losesCookies = configuration.cookies == nil && transport is URLSession
        #endif
        if configuration.rateLimit != nil { RateLimit.isUsedBySessions.store(true, ordering: .relaxed) }
    }

    /// Makes a task that waits for its first `resume()`.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        ExchangeTask(request, session: self, receiver: receiver)
    }

    /// Forgets the credentials that servers accepted, as when the user signs out.
    public func forgetCredentials() {
        memory.withLock { $0.forgetAll() }
    }

    /// Keeps the cookies that a response sets.
    func keepCookies(of head: ResponseHead) {
        configuration.cookies?.receive(head.headers.values("Set-Cookie"), from: head.url)
        #if canImport(FoundationNetworking)
            guard losesCookies, head.headers.contains("Set-Cookie"), let session = transport as? URLSession else {
                return
            }
            URLSessionAdapter.of(session).noteLostCookies()
        #endif
    }

    func useProof(for hop: Hop) -> (proof: Proof, value: String)? {
        guard configuration.challenges?.remembers == true else { return nil }
        return memory.withLock { $0.use(for: hop) }
    }

    func remember(_ proof: Proof, acceptedBy hop: Hop) {
        guard configuration.challenges?.remembers == true else { return }
        memory.withLock { $0.remember(proof, acceptedBy: hop) }
    }

    func forget(_ proof: Proof) {
        memory.withLock { $0.forget(proof) }
    }

    /// Asks the server whether a response still holds that is being served; once at a time for each address.
    func revalidate(_ request: NetworkRequest, resource: String) {
        guard revalidating.withLock({ $0.insert(resource).inserted }) else { return }
        let receiver = RevalidationReceiver { [weak self] in
            _ = self?.revalidating.withLock { $0.remove(resource) }
        }
        makeTask(with: request, receiver: receiver).resume()
    }
}

/// Lets a response go by: what it is good for happens in the cache.
private final class RevalidationReceiver: NetworkReceiver {
    private let whenDone: @Sendable () -> Void

    init(whenDone: @escaping @Sendable () -> Void) {
        self.whenDone = whenDone
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) { whenDone() }
}

/// What an ``ExchangeSession`` does above the session that moves the bytes.
public struct ExchangeConfiguration: Sendable {
    /// What becomes of redirects: they are followed unless changed.
    public var redirects = RedirectPolicy.follow
    /// Who answers when a server asks who one is; nobody unless changed.
    public var challenges: ChallengePolicy?
    /// The jar in which cookies are kept.
    ///
    /// The default is `nil`, so that no cookie is kept or sent.
    public var cookies: CookieJar?
    /// Where responses are kept; nowhere unless changed.
    public var cache: HTTPCache?
    /// How much a server may send.
    public var limits = ExchangeLimits()
    /// The limit on how many requests the session sends in a time.
    ///
    /// The default is `nil`, which disables it.
    ///
    /// Each request that is sent counts, including those that follow a redirect. A response from the cache takes no token. A
    /// request of an operation or a base with a limit of its own takes no token of this one. See ``RateLimit``.
    public var rateLimit: RateLimit?
    /// How long one exchange may take, redirects, challenges and pauses included; nil, unless changed, for ever.
    public var deadline: Duration?
    /// Measures the deadline.
    public var clock: any OperationClock = .system
    /// What time it is, for dates of cookies and responses.
    public var now: @Sendable () -> Date = { Date() }

    /// Makes a configuration with the stated defaults.
    public init() {}
}

/// How much a server may send, for all requests of an ``ExchangeSession``.
///
/// The sizes that only a session can enforce are handed to it with each request, where they are smaller than those of
/// the request itself.
public struct ExchangeLimits: Hashable, Sendable {
    /// The bytes of the head of a response; 64 KiB unless changed.
    public var headerBytes = 64 << 10
    /// The bytes of a body as they are handed over, decompressed; nil, unless changed, for as many as come.
    public var bodyBytes: Int64?
    /// How many times as large as what was received a decompressed body may become; 100 unless changed.
    public var expansion = 100

    /// Makes the limits that are stated.
    public init() {}

    /// The options of a request, no wider than the limits.
    func narrowed(_ options: TransferOptions) -> TransferOptions {
        var options = options
        options.maximumHeaderSize = min(options.maximumHeaderSize, max(headerBytes, 1))
        options.maximumExpansion = min(options.maximumExpansion, max(expansion, 1))
        return options
    }
}

/// One request of an exchange, as the user or a redirect means it: what the jar, the challenges and the cache add to it
/// comes later, and is never carried over to the next.
package struct Hop: Sendable {
    package var method: String
    package var address: WebAddress
    package var headers: HeaderFields
    package var body: RequestBody
    package var options: TransferOptions
    /// The user's own request, which need not be checked again as long as nothing is changed in it.
    private var original: NetworkRequest?

    package init(
        method: String, address: WebAddress, headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) {
        self.method = method
        self.address = address
        self.headers = headers
        self.body = body
        self.options = options
    }

    /// What a request asks for; nil for an address that cannot be taken apart.
    package init?(_ request: NetworkRequest) {
        guard let address = WebAddress(request.url) else { return nil }
        self.init(
            method: request.method, address: address, headers: request.headers, body: request.body,
            options: request.options)
        original = request
    }

    /// The hop to another address.
    package func moved(to address: WebAddress) -> Hop {
        Hop(method: method, address: address, headers: headers, body: body, options: options)
    }

    /// The request with these header fields, checked like any other.
    package func request(headers: HeaderFields) throws(NetworkError) -> NetworkRequest {
        if let original, original.options == options, original.headers == headers { return original }
        guard let url = address.url else {
            throw NetworkError(
                code: .invalidURL, phase: .checking, message: "The address \(address.origin) cannot be made a URL.")
        }
        return try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
    }
}
