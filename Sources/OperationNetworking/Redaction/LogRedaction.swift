// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a log leaves out.
///
/// Three stars replace a secret. Headers, fields of forms and values of JSON are recognized as secrets by their names.
/// In any text, whatever its name, secrets are also recognized by their form, such as `password=…`, `token: …`,
/// `Bearer …`, `Basic …` and JSON web tokens. If in doubt, a value is hidden. The query and the fragment of a URL are
/// left out, whatever the names in them. A body that is longer than a mebibyte is left out completely.
public struct LogRedaction: Sendable, Hashable {
    /// Whether everything is shown, secrets included.
    public private(set) var keepsSecrets = false
    /// What is left out beside the usual secrets, in small letters.
    package private(set) var names: Set<String> = []

    /// Fields whose value is one address, to its end.
    private static let addresses: Set = ["location", "content-location", "referer"]
    static let stars = "***"
    /// What is longer is not looked into: whoever writes a log is on the way of the response.
    static let mostBytes = 1 << 20

    /// Leaves out the usual secrets: what is called token, password, cookie and the like.
    public static let secrets = LogRedaction()

    /// Leaves out nothing: for a machine that nobody else can look into.
    public static let none: LogRedaction = {
        var redaction = LogRedaction()
        redaction.keepsSecrets = true
        return redaction
    }()

    /// Leaves out the usual secrets, and the fields of these names.
    public static func secrets(and names: String...) -> LogRedaction { .secrets(andAll: names) }

    /// Leaves out the usual secrets, and the fields of these names.
    package static func secrets(andAll names: some Sequence<String>) -> LogRedaction {
        var redaction = LogRedaction()
        redaction.names = Set(names.map(plain))
        return redaction
    }

    /// Whether what has that name is left out.
    public func hides(_ name: String) -> Bool {
        guard !keepsSecrets else { return false }
        return !names.isEmpty && names.contains(Self.plain(name)) || SecretNames.contains(name)
    }

    /// A name in small letters, without signs that join the one before.
    private static func plain(_ name: String) -> String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: name.unicodeScalars.filter { !$0.isJoined })
        return String(scalars).lowercased()
    }

    /// Returns whether a header is a secret, by its name or by the form of its value, such as `Bearer …` or `token=…`.
    ///
    /// A redirect to another origin leaves out the headers that ``secrets`` hides.
    public func hides(_ header: HeaderFields.Field) -> Bool {
        guard !keepsSecrets else { return false }
        if hides(header.name) { return true }
        // A log leaves out every query. Here a query is a secret only if one of its names is, in JSON and elsewhere.
        let shown = json(header.value, withoutNamedSecrets) ?? withoutSecrets(inText: header.value)
        return shown != header.value
    }

    func value(of field: HeaderFields.Field) -> String {
        if keepsSecrets { return field.value }
        if hides(field.name) { return Self.stars }
        let isOneAddress = Self.addresses.contains(field.name.lowercased())
        return withoutSecrets(inHeader: Self.withoutQueries(field.value, isOneAddress: isOneAddress))
    }

    /// Returns a header without secrets and control characters, for a log or a terminal.
    func printable(_ field: HeaderFields.Field) -> HeaderFields.Field {
        // The value becomes printable first, because an invisible character in it could hide a secret.
        let plain = HeaderFields.Field(field.name.printable(), field.value.printable())
        return HeaderFields.Field(plain.name, value(of: plain))
    }

    /// Returns the value of a header without the secrets that its text reveals.
    package func withoutSecrets(inHeader value: String) -> String {
        if keepsSecrets { return value }
        return json(value) { withoutNamedSecrets(Self.withoutQueries($0)) } ?? withoutSecrets(inText: value)
    }

    /// Returns the value of a header that is not JSON without its secrets.
    private func withoutSecrets(inText value: String) -> String {
        SecretText.shown(value, isHeader: true, hides: hides)
    }

    /// Returns the description of an error, whose own URL was made without the usual secrets only.
    func text(of error: NetworkError) -> String {
        var error = error
        error.request = error.request.map { RequestSummary($0, self) }
        return "\(error)"
    }

    /// Returns the path of a URL without JSON web tokens, and without the values of parameters that have secret names.
    package func withoutSecrets(inPath path: String) -> String {
        guard !keepsSecrets, path.utf8.contains(0x3D) || path.contains("eyJ") else { return path }
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

    /// Returns a text of JSON without its secrets; `nil` if the text is not JSON.
    ///
    /// - Parameters:
    ///   - text: The JSON.
    ///   - shown: Returns a text in the JSON without its secrets.
    private func json(_ text: String, _ shown: @escaping (String) -> String) -> String? {
        guard Self.isJSON(text) else { return nil }
        let clean = SecretJSON.redacted(Data(text.utf8), self, keepsKinds: true) { json($0, shown) ?? shown($0) }
        return clean.map { String(decoding: $0, as: UTF8.self) }
    }

    /// A value that leads somewhere, without what may be a secret in it: queries and fragments, user and password.
    ///
    /// What is one address is hidden from the first `?` or `#` to its end; in any other text to the next blank, or to what
    /// closes the brackets or quotes in which the address stands. All other signs may be a part of the secret.
    ///
    /// Not by characters: a sign that joins the question mark would make another one of it.
    private static func withoutQueries(_ value: String, isOneAddress: Bool = false) -> String {
        guard value.utf8.contains(where: { "?#@".utf8.contains($0) }) else { return value }
        var result: [Unicode.Scalar] = []
        /// Behind the last two slashes, and whether there is another one since.
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
                // What stands before it, if no part of a path does.
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
        var shown = String.UnicodeScalarView()
        shown.append(contentsOf: result)
        return String(shown)
    }

    /// The beginning of a body as text, or how long it is.
    ///
    /// Without secrets only what can be understood is shown: objects and arrays of JSON, and forms. A single value of JSON has
    /// no name that would tell whether it is a secret.
    func text(of body: Data, type: String?, limit: Int) -> String {
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

    /// Objects and arrays of JSON without secrets; nil of anything else, and of what is longer.
    func json(of body: Data, limit: Int) -> String? {
        guard let bytes = withoutSecrets(body), bytes.count <= limit else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the objects and arrays of a body of JSON without secrets; `nil` for any other body.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - isPrinted: Whether the texts become printable before their secrets are left out. An invisible character could
    ///     hide a secret from the redaction, and a log removes it later.
    private func withoutSecrets(_ body: Data, isPrinted: Bool = false) -> Data? {
        guard body.count <= Self.mostBytes,
            let clean = SecretJSON.redacted(
                body, self, keepsKinds: false,
                text: { text in
                    let text = isPrinted ? text.printable(keepsLines: true) : text
                    // JSON within JSON has names, too. If it cannot be read, all of it is hidden.
                    guard Self.isJSON(text) else { return withoutNamedSecrets(Self.withoutQueries(text)) }
                    let clean = withoutSecrets(Data(text.utf8), isPrinted: isPrinted)
                    return clean.map { String(decoding: $0, as: UTF8.self) } ?? Self.stars
                }),
            let value = try? JSONSerialization.jsonObject(with: clean),
            // A number may be too large to be written.
            JSONSerialization.isValidJSONObject(value)
        else { return nil }
        return try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
    }

    /// Whether the value of a field of a form is shown: it may be an address with a query, or JSON in itself.
    func shows(_ value: String, of name: String) -> Bool {
        if keepsSecrets { return true }
        return !hides(name) && !Self.isJSON(value) && Self.withoutQueries(value) == value
            && withoutNamedSecrets(value) == value
    }

    /// A text without what its own words call a secret.
    package func withoutNamedSecrets(_ text: String) -> String {
        keepsSecrets ? text : SecretText.shown(text, hides: hides)
    }

    package static func isJSON(_ text: String) -> Bool {
        text.unicodeScalars.first { !$0.properties.isWhitespace }.map { $0 == "{" || $0 == "[" } ?? false
    }

    /// The text of no more than so many bytes, which may end within a character; nil if they are none.
    private static func beginning(of bytes: Data, limit: Int) -> String? {
        let longest = bytes.count > limit ? 3 : 0
        for missing in 0...longest where missing <= limit {
            if let text = String(bytes: bytes.prefix(limit - missing), encoding: .utf8) { return text }
        }
        return nil
    }

    /// Whether an object says so that its value is a secret, as in `{"name": "password", "value": "…"}`.
    package func hidesNeighbours(_ key: String, _ text: String?) -> Bool {
        guard let text, Self.namesOfNames.contains(key.lowercased()) else { return false }
        return hides(text)
    }

    /// Whether a text in an array is the name of a secret, and the text after it is that secret.
    ///
    /// That is so in a list of names and values, as in `["X-Api-Key", "…", "Accept", "*/*"]`. A sentence is not a name.
    package func hidesText(after text: String) -> Bool { text.isToken && hides(text) }

    /// Whether a value has that name in such an object.
    package static func isValue(_ key: String) -> Bool { namesOfValues.contains(key.lowercased()) }

    private static let namesOfNames: Set = [
        "name", "key", "field", "header", "k", "id", "label", "type", "param", "parameter", "property", "variable",
    ]
    private static let namesOfValues: Set = ["value", "values", "v", "val", "content"]
}
