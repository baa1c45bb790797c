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
            URLSessionCarrier.of(session).noteLostCookies()
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
