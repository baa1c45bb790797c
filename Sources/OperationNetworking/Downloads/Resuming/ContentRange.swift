// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which part of a file a response has (RFC 9110, section 14.4).
package struct ContentRange: Hashable, Sendable {
    /// The bytes; nil where the server says that it cannot give those that were asked for.
    package let bytes: ClosedRange<Int64>?
    /// How many the file has; nil if the server does not say.
    package let total: Int64?

    /// Reads `bytes 0-499/1234`, `bytes 0-499/*` and `bytes */1234`; nil if it is none of them, or contradicts itself.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        guard halves[1] == "*" || Self.number(halves[1]) != nil else { return nil }
        total = Self.number(halves[1])
        guard halves[0] != "*" else {
            guard total != nil else { return nil }
            bytes = nil
            return
        }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < total ?? .max else {
            return nil
        }
        bytes = first...last
    }

    private static func number(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(text)
    }
}
