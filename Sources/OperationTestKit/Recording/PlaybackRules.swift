// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a request must have in common with a recorded one to get its answer.
///
/// From the start that is the method, the whole URL and the body, each without its secrets. Of several recorded
/// exchanges that fit, the first that was not used yet is taken.
public struct PlaybackRules: Sendable, Hashable {
    /// Whether scheme, host and port must be the same; not for a server of which each test has its own.
    public var comparesHost = true
    /// Names in the query that may differ or be missing: a time, a number that is drawn.
    public var ignoredQueryNames: Set<String> = []
    /// Whether the body must be the same.
    ///
    /// A form in several parts that is longer than what a recording keeps never is: its boundary is another each
    /// time. One that was not sent to its end when it was recorded, or of which the file could not be read, fits any.
    public var comparesBody = true
    /// Header fields that must be the same, such as `Range` or `Accept-Language`; a secret one cannot be compared.
    public var comparedHeaders: Set<String> = []

    /// Method, URL and body.
    public static let standard = PlaybackRules()

    /// Makes the rules that hold if nothing is said.
    public init() {}
}
