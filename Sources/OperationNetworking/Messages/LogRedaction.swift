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

    package func value(of field: HeaderFields.Field) -> String {
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
    package func text(of error: NetworkError) -> String {
        var error = error
        error.request = error.request.map { RequestSummary($0, self) }
        return "\(error)"
    }

    /// Returns the path of a URL without tokens and keys, and without the values of parameters that have secret names.
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

    /// Objects and arrays of JSON without secrets; nil of anything else, and of what is longer.
    package func json(of body: Data, limit: Int) -> String? {
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

extension LogRedaction {
    /// A field of a form, without what is to be left out.
    package struct FormField: Sendable {
        /// As it stands in the form.
        package let shown: String
        /// The name as it is meant.
        package let name: String
        /// The value as it is meant; nil if there is no equals sign.
        package let value: String?
    }

    /// The fields of a form; nil of what is none, or too long.
    package func form(_ body: Data, type: String) -> [FormField]? {
        guard type.lowercased().hasPrefix("application/x-www-form-urlencoded"), body.count <= Self.mostBytes,
            let text = String(bytes: body, encoding: .utf8)
        else { return nil }
        if text.isEmpty { return [] }
        let parts = text.unicodeScalars.split(separator: "&", omittingEmptySubsequences: false).map { Substring($0) }
        // A form may say in one field that another is secret: name=password&value=…
        let hidesValue = parts.contains { part in
            guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return false }
            let value = Substring(part.unicodeScalars[equals...].dropFirst())
            return hidesNeighbours(Self.meant(part[..<equals]), Self.meant(value))
        }
        return parts.map { field($0, hidesValue) }
    }

    private func field(_ part: Substring, _ hidesValue: Bool) -> FormField {
        let equals = part.unicodeScalars.firstIndex(of: "=")
        let name = part[..<(equals ?? part.endIndex)]
        let value = equals.map { Self.meant(Substring(part.unicodeScalars[$0...].dropFirst())) }
        if keepsSecrets || part.isEmpty {
            return FormField(shown: String(part), name: Self.meant(name), value: value)
        }
        // A part may be a secret as a whole.
        guard RequestSummary.name(ofPart: part, self) != nil else {
            return FormField(shown: Self.stars, name: Self.stars, value: nil)
        }
        let plain = Self.meant(name)
        guard let value, !shows(value, of: plain) || hidesValue && Self.isValue(plain) else {
            return FormField(shown: String(part), name: plain, value: value)
        }
        return FormField(shown: "\(name)=\(Self.stars)", name: plain, value: Self.stars)
    }

    private static func meant(_ text: Substring) -> String {
        let text = text.replacing("+", with: " ")
        return text.removingPercentEncoding ?? String(text)
    }
}

/// Which names are those of secrets.
///
/// Rather one too many is hidden than one too few shown.
enum SecretNames {
    /// Parts of names that make a field a secret one.
    private static let parts = [
        "authorization", "authentication", "clientcert", "clientprincipal", "cookie", "token", "secret", "password",
        "passwd", "passphrase", "passcode", "apikey",
        "session",
        "signature", "credential", "assertion", "verifier", "saml", "csrf", "xsrf", "hmac", "dpop", "totp", "mnemonic",
        "privatekey", "accesskey", "encryptionkey", "seedphrase", "recoveryphrase", "cardnumber", "creditcard",
        "socialsecurity",
    ]
    /// Words that make a field a secret one, but are also parts of harmless words.
    private static let words: Set = [
        "key", "auth", "authn", "pwd", "pass", "psk", "jwt", "bearer", "pin", "otp", "mfa", "tfa", "cvc", "cvv", "sid",
        "sig",
        "ssn",
        "iban", "subscription",
    ]
    /// Names that are secret only as a whole, because each of their words also occurs in harmless headers.
    private static let wholeNames: Set = ["xaccess", "xidentity"]
    /// Words that do so at the end of a name.
    private static let lastWords: Set = ["ticket", "seed", "pan"]
    /// Parts with digits, which are no letters.
    private static let partsWithDigits = ["2fa"]
    /// What may stand before `code` in the name of what is no secret.
    private static let harmlessCodes = [
        "status", "error", "response", "result", "reason", "exit", "return", "close", "failure", "fault", "warning",
        "message", "signal", "event", "http", "country", "zip", "postal", "post", "area", "region", "state", "city",
        "language", "lang", "locale", "currency", "product", "item", "category", "department", "type", "unit", "model",
        "version", "source", "color", "colour", "airport", "station", "iata", "icao", "iso", "tax", "dial", "dialing",
        "calling", "short", "byte", "machine", "char", "uni", "bar", "geo", "trans",
    ]
    /// The same, where nothing stands before it.
    private static let wholeHarmlessCodes: Set = ["en", "de", "op", "vs", "x", "hs"]
    /// What may stand before `key` in a word of small letters that is no secret.
    private static let harmlessKeys = [
        "mon", "tur", "don", "hoc", "joc", "whis", "mic", "lac", "hot", "turn", "primary", "foreign", "public",
    ]

    static func contains(_ name: String) -> Bool {
        let words = words(of: name)
        if !Self.words.isDisjoint(with: words) { return true }
        if let last = words.last(where: { !$0.isEmpty }), lastWords.contains(last) { return true }
        let letters = words.joined()
        if wholeNames.contains(letters) { return true }
        if parts.contains(where: { letters.contains($0) }) { return true }
        return endsInCode(letters) || endsInKey(letters) || hasDigits(name)
    }

    /// `code`, `deviceCode` and `recovery_codes`, but neither `statusCode` nor `zip-code`.
    private static func endsInCode(_ letters: String) -> Bool {
        guard let stem = letters.stem(before: ["code", "codes"]) else { return false }
        return !wholeHarmlessCodes.contains(stem) && !harmlessCodes.contains { stem.hasSuffix($0) }
    }

    /// `sshkey`, but not `monkey`.
    private static func endsInKey(_ letters: String) -> Bool {
        guard let stem = letters.stem(before: ["key", "keys"]), !stem.isEmpty else { return false }
        return !harmlessKeys.contains { stem.hasSuffix($0) }
    }

    private static func hasDigits(_ name: String) -> Bool {
        let text = name.lowercased().filter { $0.isLetter || $0.isNumber }
        return partsWithDigits.contains { text.contains($0) }
    }

    /// The words of `X-Auth-Key`, `access_key` and `accessKey` in small letters.
    ///
    /// Not by characters: signs that join the one before would hide a name from whoever reads it, and from us.
    private static func words(of name: String) -> [String] {
        var words = [""]
        var follows = false
        for scalar in name.unicodeScalars where !scalar.isJoined {
            let (isLetter, isCapital) = (scalar.properties.isAlphabetic, scalar.properties.isUppercase)
            if !isLetter || isCapital && follows { words.append("") }
            if isLetter { words[words.count - 1] += scalar.properties.lowercaseMapping }
            follows = isLetter && !isCapital
        }
        return words
    }
}

extension String {
    /// What stands before one of these ends; nil if the text has none of them.
    fileprivate func stem(before ends: [String]) -> String? {
        ends.first { hasSuffix($0) }.map { String(dropLast($0.count)) }
    }
}

extension Unicode.Scalar {
    /// Whether it is shown as a part of the one before, or not at all.
    var isJoined: Bool {
        guard value > 0x7F else { return false }
        return switch properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark, .format: true
        default: false
        }
    }
}

extension String {
    /// Returns text from a server for an error message: printable, without secrets, and cut to `limit` characters.
    package func quoted(limit: Int = 100) -> String {
        // The text is cut last, because a cut could split a secret. No message needs to look through a megabyte.
        let text = LogRedaction.secrets.withoutNamedSecrets(String(prefix(limit * 8)).printable())
        return text.count > limit ? "\(text.prefix(limit))…" : text
    }
}
