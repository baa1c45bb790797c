// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What tells one version of a file on a server from every other (RFC 9110, section 8.8).
package enum DownloadValidator: Hashable, Sendable, Codable {
    /// A strong entity tag, quotes included.
    case entityTag(String)
    /// The date of the last change, where it is strong.
    case date(String)

    /// How much older than the response a date must be: within one second a file may change twice.
    ///
    /// A minute, since the clock of the server that answers and that of the one that wrote the file may differ.
    private static let leastAge: TimeInterval = 60

    /// The validator of a response; nil if it has none that would show every change.
    package init?(of head: ResponseHead) {
        if let tag = head.headers["ETag"] {
            // A weak tag says that a change may not show: then the date would not show it either.
            guard Self.isStrong(tag), head.headers.values("ETag").count == 1 else { return nil }
            self = .entityTag(tag)
            return
        }
        guard let text = head.headers["Last-Modified"], head.headers.values("Last-Modified").count == 1,
            let sent = head.headers["Date"].flatMap({ HTTPDate.parse($0, now: Date()) }),
            let changed = HTTPDate.parse(text, now: sent), sent.timeIntervalSince(changed) >= Self.leastAge
        else { return nil }
        self = .date(text)
    }

    /// Whether it is one as responses have them.
    var isSound: Bool {
        switch self {
        case .entityTag(let tag): Self.isStrong(tag)
        case .date(let text): HTTPDate.parse(text, now: Date()) != nil
        }
    }

    /// The value of the `If-Range` field.
    package var field: String {
        switch self {
        case .entityTag(let text), .date(let text): text
        }
    }

    /// Whether a response names this version.
    ///
    /// A server that ignores `If-Range` may send the rest of any version, so a response that names no version proves
    /// nothing. A 206 must name its entity tag (RFC 9110, section 15.3.7). It may leave out the date if the request
    /// named it. The file is then requested again from its beginning.
    package func isProven(by head: ResponseHead) -> Bool {
        switch self {
        case .entityTag(let tag): head.headers.values("ETag") == [tag]
        case .date(let date): head.headers.values("Last-Modified") == [date]
        }
    }

    private static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return false }
        return bytes[1..<bytes.count - 1].allSatisfy { $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }
    }
}
