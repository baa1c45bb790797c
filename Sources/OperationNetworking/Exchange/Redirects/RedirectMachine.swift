// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
