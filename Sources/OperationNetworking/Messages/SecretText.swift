// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A parser that replaces the values that a string itself marks as secret.
///
/// The marked values are those of pairs with a secret name: `name=value`, `name: value`, `"name":"value"` and arguments
/// of GraphQL. The parser also replaces the credentials that ``CredentialText`` finds.
///
/// If the end of a secret is unclear, more text is hidden. For example, `name: value` is hidden to the end of the line.
/// A value that already consists of three asterisks does not change.
struct SecretText {
    private typealias Scalars = [Unicode.Scalar]

    private static let stars = "***"
    private static let quotes: Set<Unicode.Scalar> = ["\"", "'"]
    /// The maximum length of a name.
    private static let longestName = 64

    private let hides: (String) -> Bool
    private let text: Scalars
    private var index = 0
    private var shown = String.UnicodeScalarView()

    private init(_ text: String.UnicodeScalarView, _ hides: @escaping (String) -> Bool) {
        (self.text, self.hides) = (Scalars(text), hides)
    }

    /// Returns the text without secrets, or the same text if there are none.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - isHeader: Whether the text is the value of a header, which may consist of only a credential.
    ///   - hides: A closure that returns whether a name is the name of a secret.
    static func shown(_ text: String, isHeader: Bool = false, hides: @escaping (String) -> Bool) -> String {
        var result = text
        if text.utf8.contains(where: { $0 == 0x3D || $0 == 0x3A || $0 == 0x25 }) {
            var pairs = SecretText(text.unicodeScalars, hides)
            pairs.readPairs()
            result = String(pairs.shown)
        }
        return CredentialText.shown(result, isHeader: isHeader)
    }

    private mutating func readPairs() {
        while index < text.count {
            let start = index
            guard let (sign, end) = self.sign(at: start) else {
                shown.append(text[start])
                index += 1
                continue
            }
            shown.append(contentsOf: text[start..<end])
            index = end
            guard let isQuoted = isSecret(before: start, sign) else { continue }
            // An arrow or a second equals sign may follow the sign before the value, and JSON may break the line there.
            copy {
                Self.isBlank($0) || isQuoted && ($0 == "\n" || $0 == "\r") || sign == "=" && ($0 == ">" || $0 == "=")
            }
            hideValue(after: sign, isQuoted, from: start)
        }
    }

    /// Returns the equals sign or colon at a position, and its end.
    ///
    /// The sign may be percent-encoded, even repeatedly.
    private func sign(at start: Int) -> (sign: Unicode.Scalar, end: Int)? {
        let first = text[start]
        if first == "=" || first == ":" { return (first, start + 1) }
        guard first == "%" else { return nil }
        var digits = start + 1
        while text[digits...].starts(with: ["2", "5"]) { digits += 2 }
        return switch String(scalars: text[digits...].prefix(2)).uppercased() {
        case "3D": ("=", digits + 2)
        case "3A": (":", digits + 2)
        default: nil
        }
    }

    /// Returns whether the secret name before a sign is in quotation marks, or `nil` if the name is not secret.
    private func isSecret(before start: Int, _ sign: Unicode.Scalar) -> Bool? {
        var end = start
        while end > 0, Self.isBlank(text[end - 1]) { end -= 1 }
        let isQuoted = end > 0 && Self.quotes.contains(text[end - 1])
        if isQuoted {
            end -= 1
            while end > 0, text[end - 1] == "\\" { end -= 1 }
        }
        let name = word(before: end)
        // The declaration of a GraphQL variable does not contain its value.
        let isVariable = sign == ":" && name.startIndex > 0 && text[name.startIndex - 1] == "$"
        guard !isVariable, name.contains(where: { $0.properties.isAlphabetic }) else { return nil }
        if isHost(name, before: start) { return nil }
        let plain = String(scalars: name)
        guard hides(name.contains("%") ? plain.removingPercentEncoding ?? plain : plain) else { return nil }
        // In a sentence such as "error code: 5", a code is not a secret.
        if !isQuoted, name.startIndex > 1, text[name.startIndex - 1] == " " {
            let before = String(scalars: word(before: name.startIndex - 1))
            if plain.lowercased() == "code", !before.isEmpty, !hides("\(before) \(plain)") { return nil }
        }
        return isQuoted
    }

    /// Returns whether the name is the host of a URL and a port follows it.
    private func isHost(_ name: ArraySlice<Unicode.Scalar>, before sign: Int) -> Bool {
        guard name.startIndex > 1, text[(name.startIndex - 2)..<name.startIndex].allSatisfy({ $0 == "/" }) else {
            return false
        }
        let port = text[(sign + 1)...].prefix { ("0"..."9").contains($0) }
        return text[sign] == ":" && (1...5).contains(port.count)
            && (port.endIndex == text.count || !Self.isOfName(text[port.endIndex]))
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }

    private func word(before end: Int) -> ArraySlice<Unicode.Scalar> {
        var start = end
        while start > 0, end - start < Self.longestName, Self.isOfName(text[start - 1]) { start -= 1 }
        return text[start..<end]
    }

    private static func isOfName(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isAlphabetic || scalar.isJoined || ("0"..."9").contains(scalar)
            || "_-.%[]+*".unicodeScalars.contains(scalar)
    }

    private mutating func hideValue(after sign: Unicode.Scalar, _ isNameQuoted: Bool, from start: Int) {
        guard index < text.count, !isHidden(after: sign) else { return }
        if sign == ":", !isNameQuoted, isVariable(index) { return }
        if let end = endOfQuoted(index) {
            shown.append(contentsOf: text[index..<end.inside.lowerBound])
            shown.append(contentsOf: Self.stars.unicodeScalars)
            shown.append(contentsOf: text[end.inside.upperBound..<end.all])
            index = end.all
        } else if text[index] == "{" || text[index] == "[" {
            shown.append(contentsOf: (isNameQuoted ? "\"\(Self.stars)\"" : Self.stars).unicodeScalars)
            index = endOfBrackets(index)
        } else if isNameQuoted, let end = endOfWord(index) {
            hideWord(to: end)
        } else {
            let rest = text[index...]
            let end = rest.firstIndex { $0 == "\n" || $0 == "\r" || sign == "=" && $0 == "&" } ?? text.count
            if end > index { shown.append(contentsOf: Self.stars.unicodeScalars) }
            index = end
            hideFoldedLines(below: start)
        }
    }

    /// Hides the lines after a value that are indented more than the line of its name, because they belong to the
    /// value.
    private mutating func hideFoldedLines(below start: Int) {
        guard index < text.count, text[index] != "&" else { return }
        let lineStart = text[..<start].lastIndex { $0 == "\n" || $0 == "\r" }.map { $0 + 1 } ?? 0
        let depth = text[lineStart...].prefix(while: Self.isBlank).count
        while index < text.count, text[index] == "\n" || text[index] == "\r" {
            let isPair = text[index] == "\r" && index + 1 < text.count && text[index + 1] == "\n"
            let blanks = text[(index + (isPair ? 2 : 1))...].prefix(while: Self.isBlank)
            let end = text[blanks.endIndex...].firstIndex { $0 == "\n" || $0 == "\r" } ?? text.count
            guard blanks.count > depth, end > blanks.endIndex else { return }
            shown.append(contentsOf: text[index..<blanks.endIndex])
            shown.append(contentsOf: Self.stars.unicodeScalars)
            index = end
        }
    }

    /// Returns whether the value is already three asterisks, such as in a URL whose query was hidden before.
    private func isHidden(after sign: Unicode.Scalar) -> Bool {
        let stars = Scalars(Self.stars.unicodeScalars)
        guard text[index...].starts(with: stars) else { return false }
        let next = index + stars.count
        return next == text.count || "\"'\\)]}>&,;\r\n".unicodeScalars.contains(text[next])
            || sign == "=" && text[next] == " "
    }

    /// Returns whether a GraphQL variable, whose value is elsewhere, begins at a position.
    private func isVariable(_ start: Int) -> Bool {
        guard text[start] == "$" else { return false }
        let name = text[(start + 1)...].prefix { $0.isASCII && Self.isOfName($0) }
        guard let first = name.first, first.properties.isAlphabetic || first == "_",
            let next = text[name.endIndex...].first(where: { !$0.properties.isWhitespace })
        else { return false }
        return ",)}]".unicodeScalars.contains(next)
    }

    /// Returns the end of a JSON number, `true`, `false` or `null` at a position, or `nil` for anything else.
    private func endOfWord(_ start: Int) -> Int? {
        let word = text[start...].prefix { !",}] \t\r\n".unicodeScalars.contains($0) }
        let plain = String(scalars: word)
        guard ["true", "false", "null"].contains(plain) || Double(plain) != nil else { return nil }
        guard let next = text[word.endIndex...].first(where: { $0 != " " && $0 != "\t" }) else { return word.endIndex }
        return ",}]\r\n".unicodeScalars.contains(next) ? word.endIndex : nil
    }

    private mutating func hideWord(to end: Int) {
        let plain = String(scalars: text[index..<end])
        let instead = ["true", "false", "null"].contains(plain) ? plain : "0"
        shown.append(contentsOf: instead.unicodeScalars)
        index = end
    }

    /// Returns the content of a quoted text and its end, or `nil` if no quotation mark is at the position.
    private func endOfQuoted(_ start: Int) -> (inside: Range<Int>, all: Int)? {
        let isEscaped = text[start] == "\\"
        let mark = start + (isEscaped ? 1 : 0)
        guard mark < text.count, Self.quotes.contains(text[mark]) else { return nil }
        let quote = text[mark]
        // Three quotation marks begin a text of several lines.
        let length = !isEscaped && isQuote(quote, times: 3, at: mark) ? 3 : 1
        var end = mark + length
        while end < text.count {
            if text[end] == "\\" {
                if isEscaped, end + 1 < text.count, text[end + 1] == quote { return (mark + 1..<end, end + 2) }
                // Within escaped quotation marks, every other escape is escaped, too.
                end += isEscaped && end + 1 < text.count && text[end + 1] == "\\" ? 4 : 2
            } else if !isEscaped, isQuote(quote, times: length, at: end) {
                return (mark + length..<end, end + length)
            } else {
                end += 1
            }
        }
        return (mark + length..<text.count, text.count)
    }

    private func isQuote(_ quote: Unicode.Scalar, times count: Int, at start: Int) -> Bool {
        let signs = text[start...].prefix(count)
        return signs.count == count && signs.allSatisfy { $0 == quote }
    }

    /// Returns the position after the matching closing bracket, or the end of the text if there is none.
    private func endOfBrackets(_ start: Int) -> Int {
        var (depth, position) = (0, start)
        while position < text.count {
            switch text[position] {
            case "{", "[": depth += 1
            case "}", "]": depth -= 1
            case "\"", "'", "\\":
                if let end = endOfQuoted(position) {
                    position = end.all
                    continue
                }
            default: break
            }
            position += 1
            if depth == 0 { return position }
        }
        return text.count
    }

    private mutating func copy(while isSo: (Unicode.Scalar) -> Bool) {
        while index < text.count, isSo(text[index]) {
            shown.append(text[index])
            index += 1
        }
    }
}
