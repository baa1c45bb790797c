// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A rule that determines which secrets a log hides.
///
/// Unless you use ``none``, the log replaces each secret with three asterisks. The log recognizes secrets by the names
/// of headers, form fields and JSON keys. In any text, the log also recognizes secrets by their format, such as
/// `password=…`, `token: …`, `Bearer …`, `Basic …` and JSON web tokens. If the log cannot determine whether a value is
/// harmless, it also hides that value.
///
/// Unless you use ``none``, the log also hides the fragment and all query values of a URL, and omits bodies larger than
/// 1 MiB.
public struct LogRedaction: Sendable, Hashable {
    /// A Boolean value that indicates whether the log shows all values, including secrets.
    package private(set) var keepsSecrets = false
    /// The names that are hidden in addition to the standard names, in lowercase.
    package private(set) var names: Set<String> = []

    /// The headers whose value is a single URL.
    private static let addresses: Set = ["location", "content-location", "referer"]
    static let stars = "***"
    /// The maximum size of a body to search for secrets, because the search delays the response.
    static let mostBytes = 1 << 20

    /// A redaction that hides standard secrets, such as tokens, passwords, keys and cookies.
    public static let secrets = LogRedaction()

    /// A redaction that does not hide any values.
    ///
    /// Use this redaction only on a computer to which other people do not have access.
    public static let none: LogRedaction = {
        var redaction = LogRedaction()
        redaction.keepsSecrets = true
        return redaction
    }()

    /// Returns a redaction that hides standard secrets and the values of headers, form fields and JSON keys with the
    /// given names.
    ///
    /// - Parameter names: The names of additional headers, form fields and JSON keys, which are not case-sensitive.
    public static func secrets(and names: String...) -> LogRedaction { .secrets(andAll: names) }

    /// Returns a redaction that hides standard secrets and the values of headers, form fields and JSON keys with the
    /// given names.
    package static func secrets(andAll names: some Sequence<String>) -> LogRedaction {
        var redaction = LogRedaction()
        redaction.names = Set(names.map(plain))
        return redaction
    }

    /// Returns a Boolean value that indicates whether the redaction hides the values of headers, form fields and JSON
    /// keys with the given name.
    package func hides(_ name: String) -> Bool {
        guard !keepsSecrets else { return false }
        return !names.isEmpty && names.contains(Self.plain(name)) || SecretNames.contains(name)
    }

    /// Returns a name in lowercase, without combining and invisible characters.
    private static func plain(_ name: String) -> String {
        String(scalars: name.unicodeScalars.filter { !$0.isJoined }).lowercased()
    }

    /// Returns a Boolean value that indicates whether the redaction hides the value of a header.
    ///
    /// The redaction recognizes a secret by the name of the header or by the format of the value, such as `Bearer …` or
    /// `token=…`. When a redirect leads to another origin, an ``ExchangeSession`` removes headers from the new request
    /// if ``secrets`` hides them.
    public func hides(_ header: HeaderFields.Field) -> Bool {
        guard !keepsSecrets else { return false }
        if hides(header.name) { return true }
        // A log hides every query. Here, a query counts as a secret only if it contains a secret name.
        let shown = json(header.value, withoutNamedSecrets) ?? withoutSecrets(inText: header.value)
        return shown != header.value
    }

    package func value(of field: HeaderFields.Field) -> String {
        if keepsSecrets { return field.value }
        if hides(field.name) { return Self.stars }
        let isOneAddress = Self.addresses.contains(field.name.lowercased())
        return withoutSecrets(inHeader: Self.withoutQueries(field.value, isOneAddress: isOneAddress))
    }

    /// Returns a header without secrets and control characters, for a log or a terminal.
    func printable(_ field: HeaderFields.Field) -> HeaderFields.Field {
        // Remove invisible characters first, because they could hide a secret from the redaction.
        let plain = HeaderFields.Field(field.name.printable(), field.value.printable())
        return HeaderFields.Field(plain.name, value(of: plain))
    }

    /// Returns the value of a header without the secrets in its text.
    package func withoutSecrets(inHeader value: String) -> String {
        if keepsSecrets { return value }
        return json(value) { withoutNamedSecrets(Self.withoutQueries($0)) } ?? withoutSecrets(inText: value)
    }

    /// Returns the value of a header that is not JSON without its secrets.
    private func withoutSecrets(inText value: String) -> String {
        SecretText.shown(value, isHeader: true, hides: hides)
    }

    /// Returns the description of an error, in which this redaction also hides secrets in the path of the URL and
    /// in the texts of the error.
    package func text(of error: NetworkError) -> String {
        var error = error.rewording(withoutNamedSecrets)
        error.request = error.request.map { RequestSummary($0, self) }
        return "\(error)"
    }

    /// Returns the path of a URL without tokens and keys, and without the values of parameters with secret names.
    package func withoutSecrets(inPath path: String) -> String {
        guard !keepsSecrets, path.utf8.contains(0x3D) || path.utf8.count >= CredentialText.shortestKey else {
            return path
        }
        var result = String.UnicodeScalarView()
        for part in path.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false) {
            if part.startIndex > path.startIndex { result.append("/") }
            for parameter in part.split(separator: ";", omittingEmptySubsequences: false) {
                if parameter.startIndex > part.startIndex { result.append(";") }
                let name = parameter.firstIndex(of: "=").map { Substring(parameter[..<$0]) }
                if let name, hides(name.removingPercentEncoding ?? String(name)) {
                    result.append(contentsOf: "\(name)=\(Self.stars)".unicodeScalars)
                } else {
                    result.append(contentsOf: CredentialText.withoutTokens(String(parameter)).unicodeScalars)
                }
            }
        }
        return String(result)
    }

    /// Returns JSON text without its secrets, or `nil` if the text is not JSON.
    ///
    /// - Parameters:
    ///   - text: The JSON text.
    ///   - shown: A closure that returns a string within the JSON without its secrets.
    private func json(_ text: String, _ shown: @escaping (String) -> String) -> String? {
        guard Self.isJSON(text) else { return nil }
        let clean = SecretJSON.redacted(Data(text.utf8), self, keepsKinds: true) { json($0, shown) ?? shown($0) }
        return clean.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns a value without the parts of URLs that may be secret: queries, fragments, user names and passwords.
    ///
    /// In a value that is a single URL, everything after the first `?` or `#` is hidden. In any other text, the hidden
    /// part ends at the next space, or at the bracket or quotation mark that encloses the URL. All other characters may
    /// be part of the secret.
    ///
    /// The method compares scalars, because a combining character after the question mark would make it a different
    /// `Character`.
    private static func withoutQueries(_ value: String, isOneAddress: Bool = false) -> String {
        guard value.utf8.contains(where: { "?#@".utf8.contains($0) }) else { return value }
        var result: [Unicode.Scalar] = []
        /// The position after the last two slashes, and whether another slash follows.
        var place: (start: Int, isPath: Bool)?
        var (isHidden, isBracketed, isQuoted) = (false, false, false)
        for letter in value.unicodeScalars {
            if isHidden {
                let isEnd =
                    letter.properties.isWhitespace || letter == ">" && isBracketed || letter == "\"" && isQuoted
                guard isEnd, !isOneAddress else { continue }
                isHidden = false
            } else if letter == "?" || letter == "#" {
                result.append(letter)
                result += stars.unicodeScalars
                isHidden = true
                continue
            } else if letter == "@", let place, !place.isPath {
                // The text before the sign is user information, unless a path has begun.
                result.replaceSubrange(place.start..., with: stars.unicodeScalars)
            } else if letter == "/" {
                if result.last == "/" {
                    place = (start: result.count + 1, isPath: false)
                } else {
                    place?.isPath = true
                }
            }
            switch letter {
            case "<": isBracketed = true
            case ">": isBracketed = false
            case "\"": isQuoted.toggle()
            default: break
            }
            result.append(letter)
        }
        return String(scalars: result)
    }

    /// Returns the beginning of a body as text, or its length.
    ///
    /// If secrets are hidden, the method returns text only for JSON objects, JSON arrays and forms. A single JSON value
    /// has no name that would identify it as a secret.
    package func text(of body: Data, type: String?, limit: Int) -> String {
        let length = "(\(body.count) bytes)"
        let limit = max(limit, 0)
        if keepsSecrets {
            guard let text = Self.beginning(of: body, limit: limit) else { return length }
            return body.count > limit ? "\(text)… \(length)" : text
        }
        let form = type.flatMap { self.form(body, type: $0) }.map { Data($0.map(\.shown).joined(separator: "&").utf8) }
        if let bytes = form ?? withoutSecrets(body, isPrinted: true) {
            let text = Self.beginning(of: bytes, limit: limit) ?? ""
            return bytes.count > limit ? "\(text)… \(length)" : text
        }
        return length
    }

    /// Returns a JSON object or array without secrets, or `nil` if the body is anything else or is too long.
    package func json(of body: Data, limit: Int) -> String? {
        guard let bytes = withoutSecrets(body), bytes.count <= limit else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the JSON objects and arrays of a body without secrets, or `nil` for any other body.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - isPrinted: Whether invisible characters are removed before the search for secrets. Such a character could
    ///     hide a secret from the redaction, and the log would remove it later.
    private func withoutSecrets(_ body: Data, isPrinted: Bool = false) -> Data? {
        guard body.count <= Self.mostBytes,
            let clean = SecretJSON.redacted(
                body, self, keepsKinds: false,
                text: { text in
                    let text = isPrinted ? text.printable(keepsLines: true) : text
                    // JSON within a JSON text has names, too. If it cannot be read, all of it is hidden.
                    guard Self.isJSON(text) else { return withoutNamedSecrets(Self.withoutQueries(text)) }
                    let clean = withoutSecrets(Data(text.utf8), isPrinted: isPrinted)
                    return clean.map { String(decoding: $0, as: UTF8.self) } ?? Self.stars
                }),
            let value = try? JSONSerialization.jsonObject(with: clean),
            // The number may be too large to write.
            JSONSerialization.isValidJSONObject(value)
        else { return nil }
        return try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
    }

    /// Returns whether the value of a form field is shown.
    ///
    /// A value that is JSON or a URL with a query is not shown.
    func shows(_ value: String, of name: String) -> Bool {
        if keepsSecrets { return true }
        return !hides(name) && !Self.isJSON(value) && Self.withoutQueries(value) == value
            && withoutNamedSecrets(value) == value
    }

    /// Returns a string without the values that the string itself names as secrets.
    package func withoutNamedSecrets(_ text: String) -> String {
        keepsSecrets ? text : SecretText.shown(text, hides: hides)
    }

    package static func isJSON(_ text: String) -> Bool {
        text.unicodeScalars.first { !$0.properties.isWhitespace }.map { $0 == "{" || $0 == "[" } ?? false
    }

    /// Returns the beginning of the bytes as text, or `nil` if the bytes are not UTF-8.
    ///
    /// The limit may be in the middle of a character.
    private static func beginning(of bytes: Data, limit: Int) -> String? {
        let longest = bytes.count > limit ? 3 : 0
        for missing in 0...longest where missing <= limit {
            if let text = String(bytes: bytes.prefix(limit - missing), encoding: .utf8) { return text }
        }
        return nil
    }

    /// Returns whether an entry of an object names the object's value as a secret, as in
    /// `{"name": "password", "value": "…"}`.
    package func hidesNeighbours(_ key: String, _ text: String?) -> Bool {
        guard let text, Self.namesOfNames.contains(key.lowercased()) else { return false }
        return hides(text)
    }

    /// Returns whether a string in an array is the name of a secret that follows the string.
    ///
    /// Such an array is a list of names and values, as in `["X-Api-Key", "…", "Accept", "*/*"]`. A sentence is not a
    /// name.
    package func hidesText(after text: String) -> Bool { text.isToken && hides(text) }

    /// Returns whether a key in such an object holds the value.
    package static func isValue(_ key: String) -> Bool { namesOfValues.contains(key.lowercased()) }

    private static let namesOfNames: Set = [
        "name", "key", "field", "header", "k", "id", "label", "type", "param", "parameter", "property", "variable",
    ]
    private static let namesOfValues: Set = ["value", "values", "v", "val", "content"]
}

extension LogRedaction {
    /// A field of a form, without its secrets.
    package struct FormField: Sendable {
        /// The field in its encoded form.
        package let shown: String
        /// The decoded name.
        package let name: String
        /// The decoded value, or `nil` if the field has no equals sign.
        package let value: String?
    }

    /// Returns the fields of a form, or `nil` if the body is not a form or is too long.
    package func form(_ body: Data, type: String) -> [FormField]? {
        guard type.lowercased().hasPrefix("application/x-www-form-urlencoded"), body.count <= Self.mostBytes,
            let text = String(bytes: body, encoding: .utf8)
        else { return nil }
        if text.isEmpty { return [] }
        let parts = text.unicodeScalars.split(separator: "&", omittingEmptySubsequences: false).map { Substring($0) }
        // One field of a form may name another field as a secret: `name=password&value=…`.
        let hidesValue = parts.contains { part in
            guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return false }
            let value = Substring(part.unicodeScalars[equals...].dropFirst())
            return hidesNeighbours(Self.decoded(part[..<equals]), Self.decoded(value))
        }
        return parts.map { field($0, hidesValue) }
    }

    private func field(_ part: Substring, _ hidesValue: Bool) -> FormField {
        let equals = part.unicodeScalars.firstIndex(of: "=")
        let name = part[..<(equals ?? part.endIndex)]
        let value = equals.map { Self.decoded(Substring(part.unicodeScalars[$0...].dropFirst())) }
        if keepsSecrets || part.isEmpty {
            return FormField(shown: String(part), name: Self.decoded(name), value: value)
        }
        // The whole part may be a secret.
        guard shownName(ofPart: part) != nil else {
            return FormField(shown: Self.stars, name: Self.stars, value: nil)
        }
        let plain = Self.decoded(name)
        guard let value, !shows(value, of: plain) || hidesValue && Self.isValue(plain) else {
            return FormField(shown: String(part), name: plain, value: value)
        }
        return FormField(shown: "\(name)=\(Self.stars)", name: plain, value: Self.stars)
    }

    private static func decoded(_ text: Substring) -> String {
        let text = text.replacing("+", with: " ")
        return text.removingPercentEncoding ?? String(text)
    }
}

// The redaction of URLs.
extension LogRedaction {
    /// Returns a URL without its secrets, in which asterisks replace all values of the query.
    func withoutSecrets(in url: URL) -> String {
        let reference = AddressReference(url.absoluteString)
        let text = withoutSecrets(inPath: Self.place(of: reference) + reference.path)
        guard let query = reference.query else { return text }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            shownName(ofPart: item).map { "\($0)=***" } ?? (item.isEmpty ? "" : "***")
        }
        return "\(text)?\(items.joined(separator: "&"))"
    }

    /// Returns the normalized origin.
    ///
    /// If the URL has no valid origin, the function returns its scheme and its authority without user name and
    /// password.
    private static func place(of reference: AddressReference) -> String {
        if let origin = reference.origin { return origin }
        let scheme = reference.scheme.map { $0 + ":" } ?? ""
        guard let authority = reference.authority else { return scheme }
        let at = authority.lastIndex(of: "@")
        return scheme + "//" + (at.map { authority[$0...].dropFirst() } ?? authority[...])
    }

    /// Returns the name in one part of a query, or `nil` if the whole part may be a secret.
    ///
    /// A part without an equals sign may be a secret. So may a part that only ends with equals signs, as Base64 does,
    /// unless it is as short as a name.
    package func shownName(ofPart part: Substring) -> Substring? {
        // Compare scalars, because a combining character after the equals sign would make it a different `Character`.
        guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return nil }
        let (name, value) = (part[..<equals], part.unicodeScalars[equals...].dropFirst())
        if value.isEmpty { return name.utf8.count > Self.longestBareName ? nil : name }
        if value.allSatisfy({ $0 == "=" }) { return nil }
        // The text before the sign may be a pair itself, or a credential: `token%3D…=1`.
        let isPlain = !name.utf8.contains { "%+:".utf8.contains($0) }
        return isPlain || withoutNamedSecrets(String(name)) == name ? name : nil
    }

    private static let longestBareName = 16
}

extension Unicode.Scalar {
    /// Whether the scalar is invisible or displayed as part of the previous character.
    var isJoined: Bool {
        guard value > 0x7F else { return false }
        return switch properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark, .format: true
        default: false
        }
    }
}

extension String {
    init(scalars: some Sequence<Unicode.Scalar>) {
        self.init(String.UnicodeScalarView(scalars))
    }

    /// Returns text from a server for an error message, printable, without secrets and limited to `limit` characters.
    package func quoted(limit: Int = 100) -> String {
        // Cut the text last, because a cut could split a secret. The first cut avoids searching through a megabyte.
        let text = LogRedaction.secrets.withoutNamedSecrets(String(prefix(limit * 8)).printable())
        return text.count > limit ? "\(text.prefix(limit))…" : text
    }
}
