// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
