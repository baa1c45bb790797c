// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Leaves the secrets out of exchanges, by the names that a ``LogRedaction`` hides, and keeps all else as it is: what is
/// recorded must still be an answer.
struct RecordingRedactor: Sendable {
    static let stars = "***"

    let redaction: LogRedaction

    /// A URL with the values of secret names in its query left out.
    func url(_ url: URL) -> String {
        let text = url.absoluteString
        guard !redaction.keepsSecrets, let mark = text.firstIndex(of: "?") else { return text }
        return text[...mark] + items(text[text.index(after: mark)...], hidesNameless: true)
    }

    /// Header fields without the secret values, and without those in addresses among the others.
    func fields(_ fields: HeaderFields) -> HeaderFields {
        guard !redaction.keepsSecrets else { return fields }
        return HeaderFields(
            fields.map { field in
                if field.isNamed("Set-Cookie") { return HeaderFields.Field(field.name, cookie(field.value)) }
                return HeaderFields.Field(
                    field.name, redaction.hides(field.name) ? Self.stars : withoutSecretAddresses(field.value))
            })
    }

    /// A body without the secrets; nil if it cannot be looked into.
    func body(_ data: Data, type: String?, encoding: String? = nil) -> Data? {
        guard !redaction.keepsSecrets, !data.isEmpty else { return data }
        if let encoding, encoding.lowercased() != "identity" { return nil }
        let kind = type?.lowercased() ?? ""
        if kind.hasPrefix("application/x-www-form-urlencoded") {
            return String(data: data, encoding: .utf8).map { Data(items($0[...], hidesNameless: false).utf8) } ?? data
        }
        if kind.hasPrefix("multipart/"), let boundary = RecordedMultipart.boundary(in: type ?? "") {
            return RecordedMultipart(data, boundary: boundary).redacted { redaction.hides($0) }
        }
        return RecordedJSON(data)?.redacted(hides: redaction.hides, text: withoutSecretAddresses) ?? data
    }

    /// The type of a body without the boundary, which is another one each time.
    func type(_ type: String) -> String {
        guard let boundary = RecordedMultipart.boundary(in: type) else { return type }
        return type.replacing(boundary, with: RecordedMultipart.usualBoundary)
    }

    /// The pairs of a query or a form.
    private func items(_ text: Substring, hidesNameless: Bool) -> String {
        let (pairs, fragment) = text.firstIndex(of: "#").map { (text[..<$0], text[$0...]) } ?? (text, "")
        let shown = pairs.split(separator: "&", omittingEmptySubsequences: false).map { pair -> String in
            guard let equals = pair.firstIndex(of: "=") else {
                return hidesNameless && !pair.isEmpty ? Self.stars : String(pair)
            }
            let name = pair[..<equals]
            let isHidden = redaction.hides(name.removingPercentEncoding ?? String(name))
            return isHidden ? "\(name)=\(Self.stars)" : String(pair)
        }
        return shown.joined(separator: "&") + fragment
    }

    /// A cookie with its name and what is said of it, and without its value.
    private func cookie(_ value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        guard let equals = value[..<end].firstIndex(of: "=") else { return Self.stars }
        return value[...equals] + Self.stars + value[end...]
    }

    /// A text in which addresses may stand: without user and password, and without secret values in queries.
    private func withoutSecretAddresses(_ text: String) -> String {
        guard text.contains(where: { "?@".contains($0) }) else { return text }
        let ends: Set<Character> = [" ", "\t", "\r", "\n", "\r\n", "\"", "<", ">", "\\", "'", ","]
        var result = ""
        var rest = text[...]
        while let first = rest.first {
            if ends.contains(first) {
                result.append(rest.removeFirst())
                continue
            }
            let word = rest.prefix { !ends.contains($0) }
            rest = rest.dropFirst(word.count)
            result += address(word)
        }
        return result
    }

    private func address(_ word: Substring) -> String {
        var word = word
        if let start = word.range(of: "://"), let at = word[start.upperBound...].firstIndex(of: "@"),
            !word[start.upperBound..<at].contains("/")
        {
            word = word[..<start.upperBound] + Self.stars + word[at...]
        }
        guard let mark = word.firstIndex(of: "?"), word[mark...].contains("=") else { return String(word) }
        return word[...mark] + items(word[word.index(after: mark)...], hidesNameless: false)
    }
}
