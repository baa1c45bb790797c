// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A redactor that removes secrets from exchanges, by the names that a ``LogRedaction`` hides and by the form of a
/// text.
///
/// The redactor changes nothing else, because a recording must still work as a response.
struct RecordingRedactor: Sendable {
    static let stars = "***"
    /// The headers whose whole value is a URL.
    private static let addressFields = ["Location", "Content-Location", "Referer"]

    let redaction: LogRedaction

    /// Returns a URL without secrets.
    func url(_ url: URL) -> String {
        redaction.keepsSecrets ? url.absoluteString : addresses.redacted(url.absoluteString)
    }

    /// Returns a message in the form in which it is recorded and compared.
    ///
    /// The headers and the body contain no secrets, and a multipart body has a fixed boundary. The body is nil if it
    /// cannot be redacted.
    ///
    /// - Parameters:
    ///   - headers: The headers.
    ///   - body: The body, or nil if it is not available.
    ///   - isDecoded: Whether the body was decompressed, regardless of the headers.
    func message(
        _ headers: HeaderFields, _ body: Data?, isDecoded: Bool = false
    ) -> (headers: HeaderFields, body: Data?) {
        var shown = fields(headers)
        let encoding = headers["Content-Encoding"]?.lowercased() ?? "identity"
        guard isDecoded || encoding == "identity" else {
            return (shown, redaction.keepsSecrets || body?.isEmpty == true ? body : nil)
        }
        guard let type = headers["Content-Type"], let range = RecordedMultipart.boundary(in: type) else {
            return (shown, body.flatMap { self.body($0, type: headers["Content-Type"]) })
        }
        let rewritten = body.flatMap { multipart($0, String(type[range]), boundary: RecordedMultipart.usualBoundary) }
        // The headers and the body must be consistent, even if the body turns out not to be multipart.
        if let body, rewritten == nil, !body.isEmpty { return (shown, redaction.keepsSecrets ? body : nil) }
        shown["Content-Type"] = type.replacingCharacters(in: range, with: RecordedMultipart.usualBoundary)
        return (shown, rewritten ?? body)
    }

    /// Returns a checksum of a body that cannot be redacted, which does not depend on the multipart boundary.
    func checksum(_ headers: HeaderFields, _ body: Data) -> String {
        PlaybackKey.body(RecordingRedactor(redaction: .none).message(headers, body).body ?? body)
    }

    /// Returns headers without secret values, and without secrets in the URLs of other headers.
    func fields(_ fields: HeaderFields) -> HeaderFields {
        guard !redaction.keepsSecrets else { return fields }
        return HeaderFields(fields.map { HeaderFields.Field($0.name, value(of: $0)) })
    }

    private func value(of field: HeaderFields.Field) -> String {
        if field.isNamed("Set-Cookie") { return RecordedCookies.redacted(field.value) }
        if redaction.hides(field.name) { return Self.stars }
        let isAddress = Self.addressFields.contains { field.isNamed($0) }
        if isAddress { return addresses.redacted(field.value) }
        return redaction.withoutSecrets(inHeader: addresses.redacted(in: field.value))
    }

    /// Returns a body without secrets, or nil if its type has secrets in known places but it cannot be parsed.
    private func body(_ data: Data, type: String?) -> Data? {
        guard !redaction.keepsSecrets, !data.isEmpty else { return data }
        let kind = (type ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        if kind == "application/x-www-form-urlencoded" {
            return String(data: data, encoding: .utf8).map { Data(addresses.pairs($0[...]).utf8) }
        }
        if let type, kind.hasPrefix("multipart/") {
            // Within a part, the boundary is kept, because the headers of the part do not change.
            let boundary = RecordedMultipart.boundary(in: type).map { String(type[$0]) }
            return boundary.flatMap { multipart(data, $0, boundary: $0) }
        }
        // JSON often has another content type.
        let isCalledJSON = kind.contains("json")
        let begins = data.first { ![9, 10, 13, 32, 0xEF, 0xBB, 0xBF].contains($0) }
        if isCalledJSON || begins == 0x7B || begins == 0x5B {
            if let clean = json(data) { return clean }
            if isCalledJSON { return nil }
        }
        return text(data, isText: kind.hasPrefix("text/") || kind.hasSuffix("xml"))
    }

    private func json(_ data: Data) -> Data? {
        SecretJSON.redacted(data, redaction, keepsKinds: true) { text in
            // JSON within JSON also contains names.
            if LogRedaction.isJSON(text), let clean = json(Data(text.utf8)) {
                return String(decoding: clean, as: UTF8.self)
            }
            return shown(text)
        }
    }

    /// Returns the end of an exchange, in which the texts of an error contain no secrets.
    func end(_ end: RecordedExchange.End) -> RecordedExchange.End {
        guard case .failed(let error) = end, !redaction.keepsSecrets else { return end }
        return .failed(error.rewording(shown))
    }

    private func shown(_ text: String) -> String { redaction.withoutNamedSecrets(addresses.redacted(in: text)) }

    /// Returns text without the secrets that it reveals, other data unchanged, and `nil` for text in two-byte
    /// characters.
    private func text(_ data: Data, isText: Bool) -> Data? {
        guard !data.contains(0) else { return isText ? nil : data }
        if let text = String(validating: data, as: UTF8.self) {
            let clean = shown(text)
            return clean == text ? data : Data(clean.utf8)
        }
        guard isText else { return data }
        // The keywords are ASCII, regardless of the encoding of the other bytes.
        let text = String(String.UnicodeScalarView(data.map { Unicode.Scalar($0) }))
        return Data(shown(text).unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
    }

    private func multipart(_ data: Data, _ old: String, boundary: String) -> Data? {
        let head = { (text: String) in redaction.withoutNamedSecrets(text) }
        let old = RecordedMultipart(data: data, boundary: old)
        return old.rewritten(boundary: boundary, head: head) { name, type, content in
            if let name, redaction.hides(name) { return Data(Self.stars.utf8) }
            return body(content, type: type)
        }
    }

    private var addresses: RecordedAddresses { RecordedAddresses(redaction: redaction) }
}

/// A redactor for URLs, which removes the user, the password, and the secret values in queries and fragments.
struct RecordedAddresses {
    let redaction: LogRedaction

    /// Returns a URL without secrets, and without query and fragment items that have no name.
    func redacted(_ address: String) -> String {
        redacted(address[...], hidesNameless: true)
    }

    /// Returns a string in which the URLs have no secrets, but keep the items that have no name.
    ///
    /// A fragment such as `#intro` may be shown or compared by an app. The fragment of a sign-in response has names.
    ///
    /// The text is processed by scalars, because a combining mark would change the character before it.
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

    /// Returns the redacted items of a query, a fragment or a form.
    func pairs(_ text: Substring, hidesNameless: Bool = false) -> String {
        let pairs = text.unicodeScalars.split(separator: "&", omittingEmptySubsequences: false)
        // An item may indicate that another one is secret, as in name=password&value=…
        let hidesValue = pairs.contains { pair in
            pair.firstIndex(of: "=").map {
                redaction.hidesNeighbours(decoded(pair[..<$0]), decoded(pair[$0...].dropFirst()))
            }
                ?? false
        }
        return pairs.map { pair in
            guard let equals = pair.firstIndex(of: "=") else {
                let isHidden = hidesNameless && !pair.isEmpty || hidesPart(of: decoded(pair))
                return isHidden ? RecordingRedactor.stars : String(pair)
            }
            // A fragment may contain a path and a query, as in `#/signed-in?code=1`.
            let plain = pair[..<equals].split(separator: "?").last.map(decoded) ?? ""
            let isHidden =
                redaction.hides(plain) || hidesValue && LogRedaction.isValue(plain)
                || hidesPart(of: decoded(pair[equals...].dropFirst()))
            return isHidden ? String(pair[...equals]) + RecordingRedactor.stars : String(pair)
        }.joined(separator: "&")
    }

    private func decoded(_ text: Substring.UnicodeScalarView) -> String {
        let text = Substring(text).replacing("+", with: " ")
        return text.removingPercentEncoding ?? String(text)
    }

    /// Returns whether a value itself reveals that a part of it is secret, such as JSON or a URL with a password.
    private func hidesPart(of value: String) -> Bool {
        redaction.withoutSecrets(inHeader: value) != value || withoutUser(value.unicodeScalars[...]) != value
    }

    /// Returns the first word of a string, which may be a URL.
    ///
    /// After a question mark or a number sign, every character except whitespace, double quotes and angle brackets
    /// may be part of a secret.
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

    /// Returns a redacted query or fragment with its mark, or an empty string if there is none.
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

/// A redactor for `Set-Cookie` headers, which removes the values of the cookies.
///
/// Some sessions join several such headers with commas, but dates contain commas too. Everything that is not known to
/// be harmless is removed.
enum RecordedCookies {
    private static let attributes: Set = [
        "path", "domain", "expires", "max-age", "samesite", "priority", "version", "secure", "httponly", "partitioned",
    ]

    /// Returns the header with the names and attributes of the cookies, but without their values.
    static func redacted(_ field: String) -> String {
        cookies(in: field.unicodeScalars).map(cookie).joined(separator: ",")
    }

    // The text is processed by scalars, because a combining mark would hide a comma.
    private typealias Text = Substring.UnicodeScalarView

    /// Splits a header into cookies, which begin after a comma that is followed by a name and an equals sign.
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
        // In a date, the weekday precedes a comma. After any other comma, there may be a cookie without a name.
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

/// A multipart body.
struct RecordedMultipart {
    /// The fixed boundary that replaces the random boundaries.
    static let usualBoundary = "recorded-boundary"

    let data: Data
    let boundary: String

    /// Returns the range of the boundary in a content type, or nil if the type is not multipart or has no boundary.
    static func boundary(in type: String) -> Range<String.Index>? {
        guard type.lowercased().hasPrefix("multipart/"),
            let start = type.range(of: "boundary=", options: .caseInsensitive)?.upperBound
        else { return nil }
        let value = type[start...]
        let text = value.first == "\"" ? value.dropFirst().prefix { $0 != "\"" } : value.prefix { !"; ".contains($0) }
        return text.isEmpty ? nil : text.startIndex..<text.endIndex
    }

    /// Returns the body with another boundary, and with other headers and contents of its parts.
    ///
    /// The result is nil if the body has no parts, or if there is no replacement for the content of a part. The body
    /// may be truncated.
    func rewritten(
        boundary new: String, head: (String) -> String, content: (_ name: String?, _ type: String?, Data) -> Data?
    ) -> Data? {
        let marks = marks()
        guard let first = marks.first else { return nil }
        var result = Data(data[data.startIndex..<first.lowerBound])
        for (number, mark) in marks.enumerated() {
            result += Data("--\(new)".utf8)
            let isLast = number + 1 == marks.count
            let end = isLast ? data.endIndex : marks[number + 1].lowerBound
            let piece = Data(data[mark.upperBound..<end])
            guard let part = part(piece, breaksOff: isLast, head, content) else { return nil }
            result += part
        }
        return result
    }

    /// Returns the ranges of the boundary lines.
    private func marks() -> [Range<Data.Index>] {
        let line = Data("--\(boundary)".utf8)
        var marks: [Range<Data.Index>] = []
        var start = data.startIndex
        while let found = data.range(of: line, in: start..<data.endIndex) {
            start = found.upperBound
            let isAtStart = found.lowerBound == data.startIndex || data[found.lowerBound - 1] == 0x0A
            let isWhole = start == data.endIndex || [0x0D, 0x0A, 0x2D, 0x20, 0x09].contains(data[start])
            if isAtStart && isWhole { marks.append(found) }
        }
        return marks
    }

    /// Returns a part with its headers, from one boundary to the next.
    ///
    /// The last part is only an end, or is truncated.
    private func part(
        _ part: Data, breaksOff: Bool, _ shownHead: (String) -> String,
        _ content: (_ name: String?, _ type: String?, Data) -> Data?
    ) -> Data? {
        if part.starts(with: Data("--".utf8)) { return part }
        // A part that is truncated within its headers has no content.
        guard let gap = part.range(of: Data("\r\n\r\n".utf8)) else { return breaksOff ? part : nil }
        let head = String(decoding: part[part.startIndex..<gap.lowerBound], as: UTF8.self)
        let lines = head.split(whereSeparator: \.isNewline)
        let line = Data("\r\n".utf8)
        var inside = part[gap.upperBound...]
        let end = !breaksOff && inside.suffix(2).elementsEqual(line) ? line : Data()
        inside = inside.dropLast(end.count)
        let type = Self.value("Content-Type", in: lines)
        guard let shown = content(Self.name(in: lines), type, Data(inside)) else { return nil }
        let clean = shownHead(head)
        if clean != head { return Data(clean.utf8) + Data("\r\n\r\n".utf8) + shown + end }
        return part[part.startIndex..<gap.upperBound] + shown + end
    }

    /// Returns the name of a form field.
    private static func name(in lines: [Substring]) -> String? {
        guard let value = value("Content-Disposition", in: lines),
            let start = value.range(of: #"(^|[;\s])name\s*="#, options: [.regularExpression, .caseInsensitive])
        else { return nil }
        let rest = value[start.upperBound...].drop { $0 == " " }
        return String(rest.first == "\"" ? rest.dropFirst().prefix { $0 != "\"" } : rest.prefix { $0 != ";" })
    }

    private static func value(_ name: String, in lines: [Substring]) -> String? {
        let line = lines.first { $0.prefix { $0 != ":" }.lowercased() == name.lowercased() }
        return line.map { $0.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces) }
    }
}
