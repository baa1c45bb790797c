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
    /// Where cookies are kept; nowhere unless changed.
    public var cookies: CookieJar?
    /// Where responses are kept; nowhere unless changed.
    public var cache: HTTPCache?
    /// How much a server may send.
    public var limits = ExchangeLimits()
    /// How long one exchange may take, redirects, challenges and pauses included; nil, unless changed, for ever.
    public var deadline: Duration?
    /// Measures the deadline.
    public var clock: any OperationClock = .system
    /// What time it is, for dates of cookies and responses.
    public var now: @Sendable () -> Date = { Date() }

    /// Makes a configuration with the stated defaults.
    public init() {}
}
