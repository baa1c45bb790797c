// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How fast those go on that were postponed: in the order in which they came, so many at a time.
public struct PostponementPace: Sendable, Hashable {
    /// How many go on at once; at least one.
    public let count: Int
    /// How long after these the next ones go.
    public let interval: Duration

    /// Makes a pace.
    public init(_ count: Int, every interval: Duration) {
        self.count = max(count, 1)
        self.interval = max(interval, .zero)
    }

    /// 50 at once, and 50 more every 50 milliseconds: a thousand a second.
    public static let standard = PostponementPace(50, every: .milliseconds(50))
    /// All at once.
    public static let atOnce = PostponementPace(.max, every: .zero)
}
