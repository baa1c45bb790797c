// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A cookie: what a server asked to be sent back to it.
public struct Cookie: Hashable, Sendable, Codable {
    /// Whether a cookie goes along with requests that another site caused.
    ///
    /// A program that is no browser has no other sites: the attribute is kept for whoever looks at the jar, and changes
    /// nothing in what is sent.
    ///
    /// No case will be added.
    public enum SameSite: String, Sendable, Codable {
        /// Only with requests that its own site caused.
        case strict
        /// Also where the user followed a link to the site.
        case lax
        /// With all requests.
        case none
    }

    /// The name; empty for a value without one.
    public var name: String
    /// The value, with quotation marks if it came with such.
    public var value: String
    /// The host, or the domain with all hosts in it, in lower case.
    public var domain: String
    /// Whether it goes to that very host only, not to others in the domain.
    public var isHostOnly: Bool
    /// The path under which it is sent.
    public var path: String
    /// When it ends; nil if with the session.
    public var expires: Date?
    /// Whether it is sent over encrypted connections only.
    public var isSecure: Bool
    /// Whether scripts in pages may not see it.
    public var isHTTPOnly: Bool
    /// What the server said about other sites; nil if nothing.
    public var sameSite: SameSite?
    /// When it was set first.
    public var created: Date
    /// When it was last sent or set.
    public var lastUsed: Date

    /// Makes a cookie of your own.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    ///   - domain: The host that gets it.
    ///   - path: The path under which it is sent.
    ///   - expires: When it ends; nil for the end of the session.
    public init(name: String, value: String, domain: String, path: String = "/", expires: Date? = nil) {
        self.name = name
        self.value = value
        // The zone of an IPv6 address is the name of an interface, so its letter case is kept.
        let zone = domain.firstIndex(of: "%") ?? domain.endIndex
        self.domain = String(domain[..<zone]).asciiLowercased + domain[zone...]
        self.isHostOnly = true
        self.path = path
        self.expires = expires
        isSecure = false
        isHTTPOnly = false
        created = Date()
        lastUsed = created
    }

    /// Whether it is over at that moment.
    public func isExpired(at moment: Date) -> Bool { expires.map { $0 <= moment } ?? false }

    /// The cookie as it stands in a request.
    var pair: String { name.isEmpty ? value : "\(name)=\(value)" }

    /// Whether it can stand in a request: else one made by hand could bring further fields with it.
    var isWritable: Bool { !pair.utf8.contains { $0.isControl && $0 != 0x09 || $0 == UInt8(ascii: ";") } }
}

extension Cookie: CustomStringConvertible {
    /// Name, domain and path; never the value, which is a secret.
    public var description: String { "\(name) of \(domain)\(path)".printable() }
}

extension Cookie: CustomReflectable {
    /// What debuggers and `dump` show: never the value, which is a secret.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: ["name": name, "domain": domain, "path": path, "expires": expires as Any, "isSecure": isSecure],
            displayStyle: .struct)
    }
}

/// What one `Set-Cookie` field says, before it is known whether its sender may say so.
package struct SetCookie: Equatable, Sendable {
    package var name: String
    package var value: String
    /// When it ends by `Max-Age`, else by `Expires`; nil if neither is there.
    package var expires: Date?
    /// The domain without a dot at its start; empty where none is named.
    package var domain = ""
    /// The path; nil where the sender's own counts.
    package var path: String?
    package var isSecure = false
    package var isHTTPOnly = false
    package var sameSite: Cookie.SameSite?

    /// The longest time that a cookie lasts: 400 days.
    package static let ageLimit: TimeInterval = 400 * 86_400
    private static let attributeLimit = 1024

    /// Reads a field as RFC 6265bis, section 5.6, says; nil if it is to be ignored.
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
        // More digits than a number holds are more than the limit, too.
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

/// How much a jar of cookies holds.
public struct CookieLimits: Hashable, Sendable {
    /// The bytes of a name and its value; 4096 unless changed, and larger cookies are refused.
    public var size = 4096
    /// The cookies of one domain; 50 unless changed.
    public var perDomain = 50
    /// The cookies in all; 3000 unless changed.
    public var total = 3000
    /// The cookies that one response may set; 50 unless changed, and what comes after is refused.
    public var perResponse = 50

    /// The limits that browsers have.
    public init() {}
}
