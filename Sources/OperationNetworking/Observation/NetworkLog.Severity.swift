// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkLog {
    /// How much an entry matters; others may be added.
    ///
    /// Their names are those of the levels of swift-log.
    public struct Severity: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// The name.
        public let description: String
        private let rank: Int

        private init(_ name: String, _ rank: Int) { (description, self.rank) = (name, rank) }

        /// A request, an answer, a result.
        public static let debug = Severity("debug", 0)
        /// The request waits, or goes on.
        public static let info = Severity("info", 1)
        /// What is done about a failure; a cancellation.
        public static let notice = Severity("notice", 2)
        /// An attempt failed.
        public static let error = Severity("error", 3)

        /// Whether the left one matters less.
        public static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }
    }
}
