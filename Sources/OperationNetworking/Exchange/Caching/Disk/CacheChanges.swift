// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What was forgotten last in a folder: whoever began to fetch a response before that must not bring it back.
///
/// On disk it is a line with the number of the last change, and one for each of the last keys.
package struct CacheChanges: Equatable, Sendable {
    /// A moment between two changes.
    package typealias Moment = UInt64

    private static let limit = 64
    private static let everything = "*"

    /// How many changes there were, ever.
    package private(set) var moment: Moment = 0
    /// The keys of the last of them.
    private var keys: [String] = []

    package init() {}

    /// Reads them; what cannot be read tells of no change.
    package init(_ bytes: [UInt8]) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        guard let first = lines.first, let number = Moment(first), UInt64(lines.count) - 1 <= number else { return }
        moment = number
        keys = Array(lines.dropFirst())
    }

    package var encoded: [UInt8] { Array(([String(moment)] + keys).joined(separator: "\n").utf8) }

    /// Notes that a key was forgotten; nil for all of them.
    package mutating func forget(_ key: String?) {
        moment &+= 1
        keys.append(key ?? Self.everything)
        if keys.count > Self.limit { keys.removeFirst() }
    }

    /// Whether a key may have been forgotten since a moment.
    package func hasForgotten(_ key: String, since past: Moment) -> Bool {
        if past == moment { return false }
        // They were begun anew, or more of them came than are known.
        guard past < moment, moment - past <= UInt64(keys.count) else { return true }
        return keys.suffix(Int(moment - past)).contains { $0 == key || $0 == Self.everything }
    }
}
