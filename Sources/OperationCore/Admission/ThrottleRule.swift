// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The least time between two runs, and what becomes of a run that comes too early.
public struct ThrottleRule: Sendable {
    /// What is done with an operation that comes before its key may run.
    ///
    /// New ways may be added.
    public struct Early: Hashable, Sendable, CustomStringConvertible {
        /// The name of the way.
        public let description: String

        private init(_ name: String) { description = name }

        /// It is cancelled with the cause `throttled`, which names the moment from which the key may run.
        public static let drop = Early("drop")
        /// It waits, behind those that wait already.
        public static let wait = Early("wait")
        /// It waits in the place of those that wait, which are cancelled with the cause `replaced`.
        public static let replace = Early("replace")
    }

    /// What runs: operations of one key count as runs of the same.
    public let key: String
    /// How long the key rests after a run of this operation, counted from its end; below zero counts as zero.
    ///
    /// With zero, runs of the key only never overlap.
    public let interval: Duration
    /// What is done with the operation if it comes early.
    public let early: Early
    /// Where runs of the key are noted.
    public let registry: OperationThrottle

    /// Makes a rule.
    ///
    /// - Parameters:
    ///   - key: What runs: operations of one key count as runs of the same.
    ///   - interval: How long the key rests after a run of this operation, counted from its end.
    ///   - early: What is done with the operation if it comes early.
    ///   - registry: Where runs of the key are noted: the process's own unless you made another.
    public init(key: String, interval: Duration, early: Early = .drop, in registry: OperationThrottle = .shared) {
        self.key = key
        self.interval = max(interval, .zero)
        self.early = early
        self.registry = registry
    }
}
