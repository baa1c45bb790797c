// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A `Set-Cookie` field without the values of its cookies.
///
/// Some sessions join all fields of that name with commas; a comma is in dates, too. What is not known to be harmless
/// is left out.
enum RecordedCookies {
    private static let attributes: Set = [
        "path", "domain", "expires", "max-age", "samesite", "priority", "version", "secure", "httponly", "partitioned",
    ]

    /// The field with names and attributes, and without values.
    static func redacted(_ field: String) -> String {
        cookies(in: field).map(cookie).joined(separator: ",")
    }

    /// A cookie begins behind a comma where a name and an equals sign follow.
    private static func cookies(in field: String) -> [Substring] {
        var cookies: [Substring] = []
        var (start, search) = (field.startIndex, field.startIndex)
        while let comma = field[search...].firstIndex(of: ",") {
            search = field.index(after: comma)
            let name = field[search...].drop { $0.isWhitespace }.prefix { !"=;,".contains($0) && !$0.isWhitespace }
            if !name.isEmpty, name.endIndex < field.endIndex, field[name.endIndex] == "=" {
                cookies.append(field[start..<comma])
                start = search
            }
        }
        return cookies + [field[start...]]
    }

    private static func cookie(_ text: Substring) -> String {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let pair = parts.first ?? ""
        let name = pair.firstIndex(of: "=").map { String(pair[...$0]) } ?? ""
        return ([name + RecordingRedactor.stars] + parts.dropFirst().map(attribute)).joined(separator: ";")
    }

    private static func attribute(_ text: Substring) -> String {
        let equals = text.firstIndex(of: "=") ?? text.endIndex
        let name = text[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
        guard attributes.contains(name) || text.allSatisfy(\.isWhitespace) else { return " " + RecordingRedactor.stars }
        // Of a date the day of the week stands before a comma; behind any other there may be a cookie without a name.
        let value = text[equals...].dropFirst()
        let weekday = value.prefix { name == "expires" && ($0.isLetter || $0.isWhitespace) }
        let date = value[weekday.endIndex...]
        let rest = !weekday.isEmpty && date.first == "," ? date.dropFirst() : value
        guard let comma = rest.firstIndex(of: ",") else { return String(text) }
        return text[...comma] + " " + RecordingRedactor.stars
    }
}
