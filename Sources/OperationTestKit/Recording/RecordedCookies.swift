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
        cookies(in: field.unicodeScalars).map(cookie).joined(separator: ",")
    }

    // Not by characters: a sign that joins a comma would make another one of it.
    private typealias Text = Substring.UnicodeScalarView

    /// A cookie begins behind a comma where a name and an equals sign follow.
    private static func cookies(in field: String.UnicodeScalarView) -> [Text] {
        var cookies: [Text] = []
        var (start, search) = (field.startIndex, field.startIndex)
        while let comma = field[search...].firstIndex(of: ",") {
            search = field.index(after: comma)
            let name = field[search...].drop(while: \.properties.isWhitespace).prefix {
                !["=", ";", ","].contains($0) && !$0.properties.isWhitespace
            }
            if !name.isEmpty, name.endIndex < field.endIndex, field[name.endIndex] == "=" {
                cookies.append(field[start..<comma])
                start = search
            }
        }
        return cookies + [field[start...]]
    }

    private static func cookie(_ text: Text) -> String {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let pair = parts.first ?? Text()
        let name = pair.firstIndex(of: "=").map { String(pair[...$0]) } ?? ""
        return ([name + RecordingRedactor.stars] + parts.dropFirst().map(attribute)).joined(separator: ";")
    }

    private static func attribute(_ text: Text) -> String {
        let equals = text.firstIndex(of: "=") ?? text.endIndex
        let name = String(text[..<equals]).trimmingCharacters(in: .whitespaces).lowercased()
        let isKnown = attributes.contains(name) || text.allSatisfy(\.properties.isWhitespace)
        guard isKnown else { return " " + RecordingRedactor.stars }
        // Of a date the day of the week stands before a comma; behind any other there may be a cookie without a name.
        let value = text[equals...].dropFirst()
        let weekday = value.prefix {
            name == "expires" && ($0.properties.isAlphabetic || $0.properties.isWhitespace)
        }
        let date = value[weekday.endIndex...]
        let rest = !weekday.isEmpty && date.first == "," ? date.dropFirst() : value
        guard let comma = rest.firstIndex(of: ",") else { return String(text) }
        return String(text[...comma]) + " " + RecordingRedactor.stars
    }
}
