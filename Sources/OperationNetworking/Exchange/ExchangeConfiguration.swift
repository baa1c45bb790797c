// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

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
