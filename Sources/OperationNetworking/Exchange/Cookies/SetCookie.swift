// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
