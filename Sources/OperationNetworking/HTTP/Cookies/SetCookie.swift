// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The contents of one `Set-Cookie` header, before it is known whether the server may set the cookie.
package struct SetCookie: Equatable, Sendable {
    package var name: String
    package var value: String
    /// The expiration date from `Max-Age`, otherwise from `Expires`, or `nil` if the header has neither.
    package var expires: Date?
    /// The domain without a dot at its start, or an empty string if the header names none.
    package var domain = ""
    /// The path, or `nil` if the default path applies.
    package var path: String?
    package var isSecure = false
    package var isHTTPOnly = false
    package var sameSite: Cookie.SameSite?

    /// The maximum lifetime of a cookie, which is 400 days.
    package static let ageLimit: TimeInterval = 400 * 86_400
    private static let attributeLimit = 1024

    /// Parses a header (RFC 6265bis, section 5.6), or returns `nil` if the header must be ignored.
    package init?(_ text: String, now: Date, sizeLimit: Int = 4096) {
        let bytes = Array(text.utf8)
        guard !bytes.contains(where: { $0.isControl && $0 != 0x09 }) else { return nil }
        var parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
        let pair = parts.popFirst() ?? []
        let (name, value) = Self.cut(pair)
        // A pair without an equals sign is a value without a name.
        (self.name, self.value) = value.map { (name, $0) } ?? ("", name)
        guard self.name.utf8.count + self.value.utf8.count <= sizeLimit else { return nil }
        guard !(self.name.isEmpty && self.value.isEmpty) else { return nil }
        var byAge: Date?
        for part in parts {
            let (name, value) = Self.cut(part)
            take(name.asciiLowercased, value ?? "", now: now, byAge: &byAge)
        }
        expires = byAge ?? expires
    }

    private mutating func take(_ name: String, _ value: String, now: Date, byAge: inout Date?) {
        guard value.utf8.count <= Self.attributeLimit else { return }
        switch name {
        case "expires":
            guard let date = CookieDate.parse(value) else { return }
            expires = min(date, now.addingTimeInterval(Self.ageLimit))
        case "max-age":
            byAge = Self.end(after: value, now: now) ?? byAge
        case "domain":
            domain = (value.hasPrefix(".") ? String(value.dropFirst()) : value).asciiLowercased
        case "path":
            path = value.hasPrefix("/") ? value : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "samesite": sameSite = Cookie.SameSite(rawValue: value.asciiLowercased)
        default: break
        }
    }

    private static func end(after value: String, now: Date) -> Date? {
        let isNegative = value.utf8.first == UInt8(ascii: "-")
        let digits = isNegative ? value.utf8.dropFirst() : value.utf8[...]
        guard digits.allSatisfy(\.isDigit), isNegative || !digits.isEmpty else { return nil }
        if isNegative { return .distantPast }
        // A number with too many digits for `Int` is above the limit as well.
        let seconds = Double(Int(String(decoding: digits, as: UTF8.self)) ?? .max)
        return seconds == 0 ? .distantPast : now.addingTimeInterval(min(seconds, ageLimit))
    }

    private static func cut(_ part: ArraySlice<UInt8>) -> (String, String?) {
        let equals = part.firstIndex(of: UInt8(ascii: "="))
        let name = String(decoding: part[..<(equals ?? part.endIndex)].withoutBlanksAround, as: UTF8.self)
        let value = equals.map { String(decoding: part[($0 + 1)...].withoutBlanksAround, as: UTF8.self) }
        return (name, value)
    }
}

/// The dates of cookies, which are parsed more leniently than other dates (RFC 6265bis, section 5.1.1).
package enum CookieDate {
    /// Parses a date that consists of a time, a day, a month and a year in any order, among any other text.
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

    /// The parts that have been found so far, each in the first token that matches.
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

        /// Parses three numbers of one or two digits with colons between them, and ignores what follows the last digit.
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

        /// Parses a number with a permitted count of digits, and ignores what follows the last digit.
        private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
            let found = token.prefix { $0.isDigit }
            guard digits.contains(found.count) else { return nil }
            return found.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        }
    }
}
