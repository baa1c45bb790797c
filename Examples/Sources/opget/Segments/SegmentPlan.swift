// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// How a file is cut up.
enum SegmentPlan {
    /// A piece that is smaller is not worth a connection of its own.
    static let smallest: Int64 = 1 << 20

    /// Pieces of nearly the same length, one after another, that make up the whole: as many as wanted, or fewer.
    static func ranges(total: Int64, count: Int, smallest: Int64 = smallest) -> [Range<Int64>] {
        guard total > 0 else { return [] }
        let count = max(min(Int64(count), total / max(smallest, 1)), 1)
        guard count > 1 else { return [0..<total] }
        // Each piece ends at the end of a page, so that no two pieces share a page. A server may announce a total of up
        // to `Int64.max`. The sums cannot overflow, because each of two or more pieces is at most slightly longer
        // than half of that.
        let pages = quotientRoundedUp(quotientRoundedUp(total, count), 4_096)
        let length = pages * 4_096
        var ranges: [Range<Int64>] = []
        var start: Int64 = 0
        while start < total {
            let end = total - start > length ? start + length : total
            ranges.append(start..<end)
            start = end
        }
        return ranges
    }

    private static func quotientRoundedUp(_ number: Int64, _ divisor: Int64) -> Int64 {
        number / divisor + (number % divisor == 0 ? 0 : 1)
    }
}

/// What says that two responses are of the same version of a file: strong, or it says nothing.
struct SegmentValidator: Codable, Sendable, Equatable {
    /// What `If-Range` says.
    let field: String
    private let isTag: Bool

    /// How much older than the response a date must be, for within a second a file may change twice.
    private static let leastAge: TimeInterval = 60

    init?(_ headers: HeaderFields) {
        if let tag = headers["ETag"] {
            guard tag.hasPrefix("\""), tag.hasSuffix("\""), tag.utf8.count > 1, headers.values("ETag").count == 1 else {
                return nil
            }
            (field, isTag) = (tag, true)
        } else if let text = headers["Last-Modified"], let changed = Self.date(text),
            let sent = headers["Date"].flatMap(Self.date), sent.timeIntervalSince(changed) >= Self.leastAge
        {
            (field, isTag) = (text, false)
        } else {
            return nil
        }
    }

    /// Whether the headers of a response name this version.
    ///
    /// A server that ignores `If-Range` may send a part of any version, so a response that names no version proves
    /// nothing.
    func isProven(by headers: HeaderFields) -> Bool { values(headers) == [field] }

    /// Whether the headers of a response name another version.
    ///
    /// A response that names no version may be of any.
    func contradicts(_ headers: HeaderFields) -> Bool { values(headers).contains { $0 != field } }

    private func values(_ headers: HeaderFields) -> [String] { headers.values(isTag ? "ETag" : "Last-Modified") }

    private static func date(_ text: String) -> Date? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.date(from: text)
    }
}

/// What `Content-Range` says: which bytes, of how many.
struct SegmentRange: Equatable {
    let bytes: Range<Int64>
    let total: Int64

    init?(_ headers: HeaderFields) {
        let fields = headers.values("Content-Range")
        guard fields.count == 1, fields[0].hasPrefix("bytes ") else { return nil }
        let halves = fields[0].dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let total = Int64(halves[1]) else { return nil }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]), first >= 0, first <= last,
            last < total
        else { return nil }
        bytes = first..<last + 1
        self.total = total
    }
}
