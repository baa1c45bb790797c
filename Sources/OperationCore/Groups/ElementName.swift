// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What an error or a log may show of an element of a map.
///
/// An element may hold a password. So only numbers, short plain texts, cases of enumerations and addresses without their query
/// are shown, and no text in which a value follows a name. For other elements, the name of the type is shown. A short password
/// that is a text by itself looks like any other word, and is shown.
struct ElementName {
    private static let longestText = 80
    /// Keys and tokens are longer than words are, and have no gaps.
    private static let longestWord = 24

    let text: String?

    init(_ element: Any) {
        switch element {
        case let url as URL: text = Self.name(of: url)
        case let string as any StringProtocol: text = Self.name(of: String(string))
        case let value as any Numeric: text = String(describing: value)
        case let value as Bool: text = String(value)
        case let value as UUID: text = value.uuidString
        default:
            let mirror = Mirror(reflecting: element)
            let isPlainCase = mirror.displayStyle == .enum && mirror.children.isEmpty
            text = isPlainCase ? Self.name(of: String(describing: element)) : String(describing: type(of: element))
        }
    }

    /// The address without user, password, query and fragment.
    private static func name(of url: URL) -> String? {
        guard url.isFileURL || url.host != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else {
            return nil
        }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        guard let text = parts.string, isPlain(text, signs: "-_./:%+,") else { return url.host.map { "…://\($0)/…" } }
        return String(text.prefix(longestText))
    }

    private static func name(of text: String) -> String? {
        if text.contains("://") { return URL(string: text).flatMap(name(of:)) }
        return isPlain(text, signs: " -_./,+()#") ? String(text.prefix(longestText)) : nil
    }

    /// Whether a text has only words, and signs that stand between the parts of a name.
    private static func isPlain(_ text: String, signs: String) -> Bool {
        let lowercased = text.lowercased()
        guard !lowercased.contains("bearer "), !lowercased.contains("basic ") else { return false }
        var length = 0
        for character in text {
            if character.isLetter || character.isNumber {
                length += 1
                guard length <= longestWord else { return false }
            } else {
                guard signs.contains(character) else { return false }
                length = 0
            }
        }
        return true
    }
}
