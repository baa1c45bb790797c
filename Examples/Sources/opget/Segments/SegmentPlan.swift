// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A namespace for the division of a file into segments.
enum SegmentPlan {
    /// The minimum size of a segment, because a smaller segment does not justify a separate connection.
    static let smallest: Int64 = 1 << 20

    /// Returns consecutive ranges of nearly equal length that cover the whole file, at most as many as requested.
    static func ranges(total: Int64, count: Int, smallest: Int64 = smallest) -> [Range<Int64>] {
        guard total > 0 else { return [] }
        let count = max(min(Int64(count), total / max(smallest, 1)), 1)
        guard count > 1 else { return [0..<total] }
        // Each range ends at the end of a page, so that segments do not share a page. A server can announce a total of
        // up to `Int64.max`. The sums cannot overflow, because each of two or more ranges is at most slightly longer
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

/// A strong validator, which proves that two responses contain the same version of a file.
struct SegmentValidator: Codable, Sendable, Equatable {
    /// The value of the `If-Range` header.
    let field: String
    private let isTag: Bool

    /// The minimum age of a date compared with the response, because a file can change twice within a second.
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

    /// Returns whether the headers of a response contain this validator.
    ///
    /// A server that ignores `If-Range` can send a part of any version, so a response without a validator proves
    /// nothing.
    func isProven(by headers: HeaderFields) -> Bool { values(headers) == [field] }

    /// Returns whether the headers of a response contain a different validator.
    ///
    /// A response without a validator can be of any version.
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

/// The range and total length from a `Content-Range` header.
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
