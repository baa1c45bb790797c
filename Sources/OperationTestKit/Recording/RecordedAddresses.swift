// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Addresses without user and password, and without the secret values in their queries and fragments.
struct RecordedAddresses {
    let redaction: LogRedaction

    /// One address, to its end: what has no name in its query or its fragment is left out, too.
    func redacted(_ address: String) -> String {
        redacted(address[...], hidesNameless: true)
    }

    /// A text in which addresses may stand: of those, what has no name stays.
    ///
    /// A fragment such as `#intro` is a part of what an app shows or compares; that of an answer to a sign-in has
    /// names.
    ///
    /// Nothing here goes by characters: a sign that joins the one before would make another one of that.
    func redacted(in text: String) -> String {
        guard text.utf8.contains(where: { "?#@".utf8.contains($0) }) else { return text }
        var result = ""
        var rest = text.unicodeScalars[...]
        while let first = rest.first {
            let word = Substring(word(rest))
            if word.isEmpty {
                result.unicodeScalars.append(first)
                rest = rest.dropFirst()
            } else {
                result += redacted(word, hidesNameless: false)
                rest = rest[word.endIndex...]
            }
        }
        return result
    }

    /// The pairs of a query, a fragment or a form.
    func pairs(_ text: Substring, hidesNameless: Bool = false) -> String {
        let pairs = text.unicodeScalars.split(separator: "&", omittingEmptySubsequences: false)
        // One pair may say that the value of another is secret: name=password&value=…
        let hidesValue = pairs.contains { pair in
            pair.firstIndex(of: "=").map {
                redaction.hidesNeighbours(meant(pair[..<$0]), meant(pair[$0...].dropFirst()))
            }
                ?? false
        }
        return pairs.map { pair in
            guard let equals = pair.firstIndex(of: "=") else {
                let isHidden = hidesNameless && !pair.isEmpty || hidesPart(of: meant(pair))
                return isHidden ? RecordingRedactor.stars : String(pair)
            }
            // In a fragment there may be a path and a query, as in `#/signed-in?code=1`.
            let plain = pair[..<equals].split(separator: "?").last.map(meant) ?? ""
            let isHidden =
                redaction.hides(plain) || hidesValue && LogRedaction.isValue(plain)
                || hidesPart(of: meant(pair[equals...].dropFirst()))
            return isHidden ? String(pair[...equals]) + RecordingRedactor.stars : String(pair)
        }.joined(separator: "&")
    }

    private func meant(_ text: Substring.UnicodeScalarView) -> String {
        let text = Substring(text).replacing("+", with: " ")
        return text.removingPercentEncoding ?? String(text)
    }

    /// Whether the value itself shows that a part of it is secret, as JSON or a URL with a password does.
    private func hidesPart(of value: String) -> Bool {
        redaction.withoutSecrets(inHeader: value) != value || withoutUser(value.unicodeScalars[...]) != value
    }

    /// What belongs together at the beginning of a text: behind a question mark or a number sign, all but blanks and
    /// what closes brackets and quotes may be a part of a secret.
    private func word(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView {
        var isBehindMark = false
        return text.prefix { letter in
            if letter.properties.isWhitespace || ["\"", "<", ">"].contains(letter) { return false }
            if letter == "?" || letter == "#" { isBehindMark = true }
            return isBehindMark || letter != "'" && letter != ","
        }
    }

    private func redacted(_ address: Substring, hidesNameless: Bool) -> String {
        let scalars = address.unicodeScalars
        let mark = scalars.firstIndex { $0 == "?" || $0 == "#" } ?? address.endIndex
        let place = redaction.withoutSecrets(inPath: withoutUser(scalars[..<mark]))
        let number = scalars[mark...].firstIndex(of: "#") ?? address.endIndex
        let query = shown(scalars[mark..<number], hidesNameless)
        return place + query + shown(scalars[number...], hidesNameless)
    }

    /// A query or a fragment with its mark, if there is one.
    private func shown(_ text: Substring.UnicodeScalarView, _ hidesNameless: Bool) -> String {
        guard let mark = text.first else { return "" }
        return String(mark) + pairs(Substring(text.dropFirst()), hidesNameless: hidesNameless)
    }

    private func withoutUser(_ place: Substring.UnicodeScalarView) -> String {
        guard let start = place.firstRange(of: ["/", "/"])?.upperBound else { return String(place) }
        let end = place[start...].firstIndex(of: "/") ?? place.endIndex
        guard let at = place[start..<end].lastIndex(of: "@") else { return String(place) }
        return String(place[..<start]) + RecordingRedactor.stars + String(place[at...])
    }
}
