// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The dates of cookies, which are read more leniently than any other (RFC 6265bis, section 5.1.1).
package enum CookieDate {
    /// Reads a date: a time, a day, a month and a year, in whatever order and among whatever else.
    package static func parse(_ text: String) -> Date? {
        var parts = Parts()
        for token in text.utf8.split(whereSeparator: isDelimiter) { parts.take(token) }
        return parts.moment
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// What was found so far; each part is taken from the first token that can be it.
    private struct Parts {
        private var time: [Int]?
        private var day: Int?
        private var month: Int?
        private var year: Int?

        mutating func take(_ token: Substring.UTF8View) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = Self.number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = Self.month(token) {
                month = found
            } else if year == nil, let found = Self.number(token, digits: 2...4) {
                year = found
            }
        }

        var moment: Date? {
            guard let time, let day, let month, var year else { return nil }
            if (70...99).contains(year) { year += 1900 }
            if (0...69).contains(year) { year += 2000 }
            guard year >= 1601, time[2] <= 59 else { return nil }
            return CivilDate.moment(
                year: year, month: month, day: day, hour: time[0], minute: time[1], second: time[2])
        }

        /// Three numbers of one or two digits with colons between, and then anything but a digit.
        private static func time(_ token: Substring.UTF8View) -> [Int]? {
            let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0].allSatisfy(\.isDigit), parts[1].allSatisfy(\.isDigit) else { return nil }
            let numbers = parts.compactMap { number($0, digits: 1...2) }
            return numbers.count == 3 ? numbers : nil
        }

        private static func month(_ token: Substring.UTF8View) -> Int? {
            let start = String(decoding: token.prefix(3), as: UTF8.self).asciiLowercased
            return CivilDate.months.firstIndex(of: start).map { $0 + 1 }
        }

        /// So many digits, and then anything but a digit.
        private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
            let found = token.prefix { $0.isDigit }
            guard digits.contains(found.count) else { return nil }
            return found.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        }
    }
}
