// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A policy that decides whether an ``ExchangeSession`` follows redirects.
///
/// ```swift
/// var policy = RedirectPolicy.deciding { proposal in
///     proposal.url.host == "example.com"
///         ? .follow : .refuse("It leads to a stranger.")
/// }
/// policy.maximumCount = 3
/// policy.secretHeaders = ["X-Customer"]
/// ```
///
/// These rules apply to every policy:
///
/// - If the URL of a redirect has no fragment, ``RedirectProposal/url`` keeps the fragment of the previous redirect, if
///   there is one. The session does not send fragments.
/// - The session ignores a user name and a password in the URL of a redirect.
/// - If a redirect changes the scheme, host or port, the session removes secret headers from the new request. For a
///   list of these headers, see ``secretHeaders``. The session does not add the headers again if a later redirect leads
///   back to the original origin.
public struct RedirectPolicy: Sendable {
    package enum Rule: Sendable {
        case follow
        case stop
        case ask(@Sendable (RedirectProposal) async -> RedirectDecision)
    }

    /// The maximum number of redirects that the session follows for a request.
    ///
    /// The default is 10. If the server sends another redirect, the request fails with
    /// ``NetworkError/Code/tooManyRedirects``.
    public var maximumCount = 10
    /// A Boolean value that indicates whether the session follows redirects from `https` to `http`.
    ///
    /// The default is `false`, which makes a request with such a redirect fail with
    /// ``NetworkError/Code/insecureRedirect``.
    public var allowsDowngrade = false
    /// The names of additional headers that the session removes when a redirect leads to another origin.
    ///
    /// The default is an empty array. If a redirect leads to another origin, the session also removes `Authorization`,
    /// `Proxy-Authorization`, `WWW-Authenticate`, `Cookie`, `Cookie2`, `Origin` and `Referer`. The session also removes
    /// every header that ``LogRedaction/secrets`` hides because of its name, such as `X-Api-Key`, or because of its
    /// value, such as `Bearer …`.
    ///
    /// The session keeps the `Idempotency-Key` header, so that the other origin also recognizes repeated requests. If
    /// you add `Idempotency-Key` to this array, a retry can make the other origin process a request twice.
    ///
    /// To send a credential to another origin, create a separate request to that origin.
    public var secretHeaders: [String] = []
    package let rule: Rule

    private init(_ rule: Rule) {
        self.rule = rule
    }

    /// A policy with which the session follows at most ``maximumCount`` valid redirects for a request.
    public static let follow = RedirectPolicy(.follow)
    /// A policy with which the session delivers each redirect as the response instead of following it.
    public static let stop = RedirectPolicy(.stop)

    /// Creates a policy that calls a closure to decide whether the session follows each valid redirect.
    ///
    /// - Parameter decide: A closure that returns whether the session follows the redirect, delivers it as the
    ///   response, or makes the request fail. The closure can take any amount of time and is not isolated to an actor.
    ///   The session waits for the closure before it continues.
    public static func deciding(
        _ decide: @escaping @Sendable (RedirectProposal) async -> RedirectDecision
    ) -> RedirectPolicy {
        RedirectPolicy(.ask(decide))
    }
}

/// A description of a redirect, which the closure of a ``RedirectPolicy`` receives.
public struct RedirectProposal: Sendable {
    /// The position of the redirect among all redirects for the request, starting at 1.
    public let count: Int
    /// The status and headers of the response that redirects the request.
    public let response: ResponseHead
    /// The HTTP method of the new request.
    public let method: String
    /// The URL of the new request, including the fragment.
    public let url: URL
    /// The headers of the new request, without the cookies and credentials that the session adds.
    public let headers: HeaderFields
    /// A Boolean value that indicates whether the new request contains the body of the original request.
    public let keepsBody: Bool
    /// A Boolean value that indicates whether the scheme, host or port of the new URL differs from that of the current
    /// URL.
    ///
    /// If the value is `true`, the session removes secret headers from the new request. For a list of these headers,
    /// see ``RedirectPolicy/secretHeaders``.
    public let changesOrigin: Bool
}

/// A decision that a ``RedirectPolicy`` makes about a redirect.
///
/// Future versions may add cases.
public enum RedirectDecision: Sendable, Hashable {
    /// The session sends the request that the server proposes.
    case follow
    /// The session delivers the redirect as the response, with its status, headers and body.
    case stop
    /// The request fails with ``NetworkError/Code/redirectRefused``, and the error message contains the associated
    /// reason. The session replaces common secrets in the reason with `***`.
    case refuse(String)
}

/// The reason why the exchange fails at a redirect.
package enum RedirectFailure: Error, Hashable, Sendable {
    case tooMany(limit: Int)
    case loop
    case ambiguous
    case badAddress(WebAddress.Flaw)
    case downgrade
    case bodyCannotBeSentAgain
    /// The rule of the policy refused the redirect for a reason.
    case refused(String)

    package var code: NetworkError.Code {
        switch self {
        case .tooMany: .tooManyRedirects
        case .loop: .redirectLoop
        case .ambiguous, .badAddress: .invalidRedirect
        case .downgrade: .insecureRedirect
        case .bodyCannotBeSentAgain: .bodyNotRepeatable
        case .refused: .redirectRefused
        }
    }

    package var message: String {
        switch self {
        case .tooMany(let limit):
            "The server redirected more than \(limit) times. If you expect so many redirects, raise maximumCount of "
                + "the redirect policy."
        case .loop:
            "The server redirected to a URL that was already requested. Report the problem to the owner of the server."
        case .ambiguous: "The redirect contains several URLs. Report the problem to the owner of the server."
        case .badAddress(.scheme(let scheme)):
            "The server redirected to a URL with the scheme “\(scheme.quoted(limit: 40))”. "
                + "The session follows only redirects to http and https."
        case .badAddress: "The URL of the redirect is not valid. Report the problem to the owner of the server."
        case .downgrade:
            "The server redirected from https to http, which is not encrypted. "
                + "To allow this, set the allowsDowngrade property of the redirect policy to true."
        case .bodyCannotBeSentAgain:
            "The redirect requires the body again, but the body can be read only once. "
                + "Use a body that can be read again, or request the new URL directly."
        // The reason may contain the URL of the redirect.
        case .refused(let reason): "A redirect was refused: \(reason.quoted(limit: 1_000))"
        }
    }
}

/// A state machine that decides whether a response of an exchange is a redirect to follow.
package struct RedirectMachine: Sendable {
    package enum Action: Sendable {
        /// Deliver the response.
        case deliver
        /// Discard the body, and then send this request.
        case follow(Hop)
        /// Ask the rule of the user, and send this request if the rule agrees.
        case ask(RedirectProposal, Hop)
        /// Fail the exchange.
        case fail(RedirectFailure)
    }

    /// The properties of a request by which a redirect loop is detected.
    private struct Visit: Hashable {
        let method: String
        let resource: String
        let cookies: String?
        let credential: Credential?
    }

    private let policy: RedirectPolicy
    private var visits: Set<Visit> = []
    private var count = 0

    package init(policy: RedirectPolicy) {
        self.policy = policy
    }

    /// Returns the action for a response.
    ///
    /// - Parameters:
    ///   - head: The response headers.
    ///   - hop: The request that got the response.
    ///   - cookies: The value of the `Cookie` header that was sent with the request.
    ///   - credential: The credential that the challenge policy added to the request. The default is `nil`.
    ///   - hasHiddenCookies: Whether the transport may add the cookies that it keeps to requests without this header.
    ///     The default is `false`.
    package mutating func receive(
        _ head: ResponseHead, to hop: Hop, cookies: String?, credential: Credential? = nil,
        hasHiddenCookies: @autoclosure () -> Bool = false
    ) -> Action {
        guard Self.statuses.contains(head.status) else { return .deliver }
        let locations = head.headers.values("Location")
        guard let location = locations.first else { return .deliver }
        if cookies == nil, head.headers.contains("Set-Cookie"), hasHiddenCookies() {
            // The same request may now be sent with other cookies, so that only the maximum count ends a loop.
            visits = []
        } else {
            visits.insert(visit(hop, cookies, credential))
        }
        if case .stop = policy.rule { return .deliver }
        guard locations.allSatisfy({ $0 == location }) else { return .fail(.ambiguous) }
        guard count < policy.maximumCount else { return .fail(.tooMany(limit: policy.maximumCount)) }
        do {
            let next = try self.next(after: hop, status: head.status, location: location)
            return action(for: next, after: hop, head)
        } catch {
            return .fail(error)
        }
    }

    /// Records that a proposed request is about to be sent with these cookies and this credential, or returns the
    /// reason not to send it.
    package mutating func follow(_ hop: Hop, cookies: String?, credential: Credential? = nil) -> RedirectFailure? {
        count += 1
        // The transport may have read the body after the response arrived.
        guard hop.body.canBeSentNow else { return .bodyCannotBeSentAgain }
        return visits.contains(visit(hop, cookies, credential)) ? .loop : nil
    }

    private func visit(_ hop: Hop, _ cookies: String?, _ credential: Credential?) -> Visit {
        Visit(method: hop.method, resource: hop.address.resource, cookies: cookies, credential: credential)
    }

    private func action(for next: Hop, after hop: Hop, _ head: ResponseHead) -> Action {
        guard case .ask = policy.rule, let url = next.address.url else { return .follow(next) }
        let proposal = RedirectProposal(
            count: count + 1, response: head, method: next.method, url: url, headers: next.headers,
            keepsBody: !next.body.isNone, changesOrigin: next.address.origin != hop.address.origin)
        return .ask(proposal, next)
    }

    private func next(after hop: Hop, status: Int, location: String) throws(RedirectFailure) -> Hop {
        let address = hop.address
        var next: Hop
        do {
            next = hop.moved(to: try WebAddress(location, foundAt: address))
        } catch {
            throw .badAddress(error)
        }
        let isDowngrade = address.origin.isSecure && !next.address.origin.isSecure
        guard policy.allowsDowngrade || !isDowngrade else { throw .downgrade }
        next.method = Self.method(after: hop.method, status: status)
        if next.method != hop.method {
            next.body = .none
            for name in Self.bodyHeaders { next.headers.remove(name) }
        }
        guard next.body.canBeSentNow else { throw .bodyCannotBeSentAgain }
        if next.address.origin != address.origin {
            next.headers = next.headers.withoutSecrets(named: policy.secretHeaders)
        }
        return next
    }

    /// Returns the method of the next request (RFC 9110, section 15.4, and the common behavior of clients).
    private static func method(after method: String, status: Int) -> String {
        switch (status, method) {
        case (301, "POST"), (302, "POST"): "GET"
        case (303, "HEAD"): "HEAD"
        case (303, _): "GET"
        default: method
        }
    }

    private static let statuses: Set = [301, 302, 303, 307, 308]

    private static let bodyHeaders = [
        "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location", "Content-MD5",
        "Content-Digest", "Repr-Digest", "Digest", "Last-Modified", "Transfer-Encoding", "Trailer", "Expect",
    ]
}

extension HeaderFields {
    private static let secretNames = [
        "Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "WWW-Authenticate", "Origin", "Referer",
    ]

    /// Returns the headers that may be sent to another origin than the one for which they were written.
    ///
    /// - Parameter names: The names of additional headers that contain secrets.
    package func withoutSecrets(named names: [String] = []) -> HeaderFields {
        var rest = self
        for name in Self.secretNames + names { rest.remove(name) }
        // A retry relies on the key, which gives no access to anything.
        for header in rest where !header.isNamed(IdempotencyKey.field) && LogRedaction.secrets.hides(header) {
            rest.remove(header.name)
        }
        return rest
    }
}
