// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How much a jar of cookies holds.
public struct CookieLimits: Hashable, Sendable {
    /// The bytes of a name and its value; 4096 unless changed, and larger cookies are refused.
    public var size = 4096
    /// The cookies of one domain; 50 unless changed.
    public var perDomain = 50
    /// The cookies in all; 3000 unless changed.
    public var total = 3000
    /// The cookies that one response may set; 50 unless changed, and what comes after is refused.
    public var perResponse = 50

    /// The limits that browsers have.
    public init() {}
}
