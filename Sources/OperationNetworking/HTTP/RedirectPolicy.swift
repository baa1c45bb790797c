// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What is done when a server answers that something is to be found elsewhere.
///
/// ```swift
/// var policy = RedirectPolicy.deciding { proposal in
///     proposal.url.host == "example.com" ? .follow : .refuse("It leads to a stranger.")
/// }
/// policy.maximumCount = 3
/// policy.secretHeaders = ["X-Customer"]
/// ```
///
/// Whatever the policy: a fragment is carried over; user and password in an address are not used as credentials; secret
/// header fields are left out as soon as scheme, host or port change, and do not come back when a later redirect leads
/// home again.
public struct RedirectPolicy: Sendable {
    package enum Rule: Sendable {
        case follow
        case stop
        case ask(@Sendable (RedirectProposal) async -> RedirectDecision)
    }

    /// How many redirects one request may have: 10 unless changed.
    public var maximumCount = 10
    /// Whether a redirect from https to http is followed: it is not unless changed.
    public var allowsDowngrade = false
    /// The names of further headers that are secrets.
    ///
    /// A redirect to another origin always leaves out `Authorization`, `Cookie` and `Proxy-Authorization`, and every header that
    /// ``LogRedaction/secrets`` hides: by its name (`X-Api-Key`, `X-Auth-Token`, `X-Client-Cert`), or by its value
    /// (`Bearer …`, `Basic …`, `token=…`, a JSON web token), whatever its name. To send a credential to another origin on
    /// purpose, make a request to that origin.
    public var secretHeaders: [String] = []
    package let rule: Rule

    private init(_ rule: Rule) {
        self.rule = rule
    }

    /// Redirects are followed.
    public static let follow = RedirectPolicy(.follow)
    /// Redirects are answers like others.
    public static let stop = RedirectPolicy(.stop)

    /// Redirects that could be followed are decided by a closure of yours, which may take its time.
    public static func deciding(
        _ decide: @escaping @Sendable (RedirectProposal) async -> RedirectDecision
    ) -> RedirectPolicy {
        RedirectPolicy(.ask(decide))
    }
}

/// A redirect that waits for a decision: where it comes from, and which request would be made.
public struct RedirectProposal: Sendable {
    /// Which one it is, counted from one.
    public let count: Int
    /// The response that asks for it.
    public let response: ResponseHead
    /// The method that the new request would have.
    public let method: String
    /// The address that it would go to, with the fragment.
    public let url: URL
    /// The header fields that it would have, but for cookies of the jar and credentials.
    public let headers: HeaderFields
    /// Whether the body would be sent again.
    public let keepsBody: Bool
    /// Whether scheme, host or port change, so that secrets are left out.
    public let changesOrigin: Bool
}

/// What becomes of a redirect.
///
/// More cases may be added.
public enum RedirectDecision: Sendable, Hashable {
    /// The request is made that the server proposes.
    case follow
    /// The redirect itself is the answer: its status, header fields and body are delivered.
    case stop
    /// The exchange fails with ``NetworkError/Code/redirectRefused``, for this reason.
    case refuse(String)
}

/// Why a redirect is not followed though the policy would.
package enum RedirectFailure: Error, Hashable, Sendable {
    case tooMany(limit: Int)
    case loop
    case ambiguous
    case badAddress(WebAddress.Flaw)
    case downgrade
    case bodyCannotBeSentAgain

    package var code: NetworkError.Code {
        switch self {
        case .tooMany: .tooManyRedirects
        case .loop: .redirectLoop
        case .ambiguous, .badAddress: .invalidRedirect
        case .downgrade: .insecureRedirect
        case .bodyCannotBeSentAgain: .bodyNotRepeatable
        }
    }

    package var message: String {
        switch self {
        case .tooMany(let limit):
            "The server redirected more than \(limit) times. Raise maximumCount of the redirect policy if that is right."
        case .loop:
            "The server redirected to a request that was made before. Ask for another address, or tell its owner."
        case .ambiguous: "The server redirected to several addresses at once. Tell its owner."
        case .badAddress(.scheme(let scheme)):
            "The server redirected to an address of the scheme “\(scheme.quoted(limit: 40))”. Only http and https are followed."
        case .badAddress: "The server redirected to something that is no address. Tell its owner."
        case .downgrade:
            "The server redirected from https to http, where anybody can listen. Set allowsDowngrade of the redirect "
                + "policy if that is right."
        case .bodyCannotBeSentAgain:
            "The server redirected and wants the body again, which can be sent once only. Make one that can be sent "
                + "again, or ask the new address."
        }
    }
}

/// Decides what becomes of each response of an exchange as far as redirects are concerned: responses in, actions out.
package struct RedirectMachine: Sendable {
    package enum Action: Sendable {
        /// It is the answer.
        case deliver
        /// The body is thrown away, and then this request made.
        case follow(Hop)
        /// The user's rule is asked; if it says so this request is made.
        case ask(RedirectProposal, Hop)
        /// The exchange fails.
        case fail(RedirectFailure)
    }

    /// What tells one request from another: the same one again is answered in the same way.
    private struct Visit: Hashable {
        let method: String
        let resource: String
        let cookies: String?
    }

    private let policy: RedirectPolicy
    private var visits: Set<Visit> = []
    private var count = 0

    package init(policy: RedirectPolicy) {
        self.policy = policy
    }

    /// How many redirects were followed.
    package var followed: Int { count }

    /// A response came.
    ///
    /// - Parameters:
    ///   - head: Its head.
    ///   - hop: The request to which it is the answer.
    ///   - cookies: The `Cookie` field that was sent with it.
    package mutating func receive(_ head: ResponseHead, to hop: Hop, cookies: String?) -> Action {
        guard Self.statuses.contains(head.status) else { return .deliver }
        let locations = head.headers.values("Location")
        guard let location = locations.first else { return .deliver }
        visits.insert(Visit(method: hop.method, resource: hop.address.resource, cookies: cookies))
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

    /// The request that was proposed is about to be made, with these cookies; returns why not, if it may not be made.
    package mutating func follow(_ hop: Hop, cookies: String?) -> RedirectFailure? {
        count += 1
        let visit = Visit(method: hop.method, resource: hop.address.resource, cookies: cookies)
        return visits.contains(visit) ? .loop : nil
    }

    private func action(for next: Hop, after hop: Hop, _ head: ResponseHead) -> Action {
        guard case .ask = policy.rule, let url = next.address.url else { return .follow(next) }
        let proposal = RedirectProposal(
            count: count + 1, response: head, method: next.method, url: url, headers: next.headers,
            keepsBody: !next.body.isNone, changesOrigin: next.address.origin != hop.address.origin)
        return .ask(proposal, next)
    }

    private func next(after hop: Hop, status: Int, location: String) throws(RedirectFailure) -> Hop {
        var next: Hop
        do {
            next = hop.moved(to: try WebAddress(location, foundAt: hop.address))
        } catch {
            throw .badAddress(error)
        }
        let isDowngrade = hop.address.origin.isSecure && !next.address.origin.isSecure
        guard policy.allowsDowngrade || !isDowngrade else { throw .downgrade }
        next.method = Self.method(after: hop.method, status: status)
        if next.method != hop.method {
            next.body = .none
            for name in Self.bodyHeaders { next.headers.remove(name) }
        }
        guard next.body.canBeSentAgain else { throw .bodyCannotBeSentAgain }
        if next.address.origin != hop.address.origin {
            next.headers = next.headers.withoutSecrets(named: policy.secretHeaders)
        }
        return next
    }

    /// The method of the next request (RFC 9110, section 15.4, and what all clients do).
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
    /// - Parameter names: The names of further headers that are secrets.
    package func withoutSecrets(named names: [String] = []) -> HeaderFields {
        var rest = self
        for name in Self.secretNames + names { rest.remove(name) }
        for header in rest where LogRedaction.secrets.hides(header) { rest.remove(header.name) }
        return rest
    }
}
