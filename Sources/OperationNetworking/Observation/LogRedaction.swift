// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a log leaves out.
///
/// Three stars take the place of it. Of a URL the query and the fragment are left out, whatever the names in them, and of
/// a body that is longer than a mebibyte all of it.
public struct LogRedaction: Sendable, Hashable {
    /// Whether everything is shown, secrets included.
    public private(set) var keepsSecrets = false
    /// What is left out beside the usual secrets, in small letters.
    package private(set) var names: Set<String> = []

    /// Parts of names that make a field a secret one.
    private static let suspicious = [
        "authorization", "cookie", "token", "secret", "password", "passwd", "passphrase", "apikey", "session",
        "signature", "credential", "assertion", "verifier", "saml",
    ]
    /// Words that make a field a secret one, but are also parts of harmless words.
    private static let words: Set = [
        "key", "auth", "pwd", "pass", "psk", "jwt", "bearer", "pin", "otp", "cvc", "cvv", "sid", "sig", "subscription",
    ]
    /// Names of secrets that are also words of harmless names, such as an error's code.
    private static let exact: Set = ["code"]
    /// Fields whose value is one address, to its end.
    private static let addresses: Set = ["location", "content-location", "referer"]
    private static let stars = "***"
    /// What is longer is not looked into: whoever writes a log is on the way of the response.
    private static let mostBytes = 1 << 20

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
        redaction.names = Set(names.map { $0.lowercased() })
        return redaction
    }

    /// Whether what has that name is left out.
    public func hides(_ name: String) -> Bool {
        guard !keepsSecrets else { return false }
        let small = name.lowercased()
        let letters = small.filter(\.isLetter)
        return names.contains(small) || Self.exact.contains(small)
            || Self.suspicious.contains { letters.contains($0) }
            || !Self.words.isDisjoint(with: Self.words(of: name))
    }

    /// The words of `X-Auth-Key`, `access_key` and `accessKey`.
    private static func words(of name: String) -> [String] {
        var words = [""]
        var follows = false
        for letter in name {
            let isCapital = letter.isUppercase
            if !letter.isLetter || isCapital && follows { words.append("") }
            if letter.isLetter { words[words.count - 1] += letter.lowercased() }
            follows = letter.isLowercase
        }
        return words
    }

    func value(of field: HeaderFields.Field) -> String {
        if keepsSecrets { return field.value }
        if hides(field.name) { return Self.stars }
        return Self.withoutQueries(field.value, isOneAddress: Self.addresses.contains(field.name.lowercased()))
    }

    /// A value that leads somewhere, without what may be a secret in it: queries and fragments, user and password.
    ///
    /// What is one address is hidden from the first `?` or `#` to its end; in any other text to the next blank, or to what
    /// closes the brackets or quotes in which the address stands. All other signs may be a part of the secret.
    private static func withoutQueries(_ value: String, isOneAddress: Bool = false) -> String {
        guard value.contains(where: { "?#@".contains($0) }) else { return value }
        var result = ""
        var (isHidden, isBracketed, isQuoted) = (false, false, false)
        for letter in value {
            if isHidden {
                let isEnd = letter.isWhitespace || letter == ">" && isBracketed || letter == "\"" && isQuoted
                guard isEnd, !isOneAddress else { continue }
                isHidden = false
            } else if "?#".contains(letter) {
                result.append(letter)
                result += stars
                isHidden = true
                continue
            } else if letter == "@", let start = result.range(of: "//", options: .backwards) {
                // What stands before it, if no part of a path does.
                if !result[start.upperBound...].contains("/") {
                    result.replaceSubrange(start.upperBound..., with: stars)
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
        return result
    }

    /// The beginning of a body as text, or how long it is.
    ///
    /// Without secrets only what can be understood is shown: objects and arrays of JSON. A single value of JSON has no name
    /// that would tell whether it is a secret.
    func text(of body: Data, limit: Int) -> String {
        let length = "(\(body.count) bytes)"
        let limit = max(limit, 0)
        if keepsSecrets {
            guard let text = Self.beginning(of: body, limit: limit) else { return length }
            return body.count > limit ? "\(text)… \(length)" : text
        }
        if let bytes = withoutSecrets(body) {
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

    private func withoutSecrets(_ body: Data) -> Data? {
        guard body.count <= Self.mostBytes, let value = try? JSONSerialization.jsonObject(with: body) else {
            return nil
        }
        let shown = redacted(value)
        // A number may be too large for what is written.
        guard JSONSerialization.isValidJSONObject(shown) else { return nil }
        return try? JSONSerialization.data(withJSONObject: shown, options: .sortedKeys)
    }

    /// Whether the value of a field of a form is shown: it may be an address with a query, or JSON in itself.
    func shows(_ value: String, of name: String) -> Bool {
        if keepsSecrets { return true }
        return !hides(name) && !Self.isJSON(value) && Self.withoutQueries(value) == value
    }

    private static func isJSON(_ text: String) -> Bool {
        text.first { !$0.isWhitespace }.map { "{[".contains($0) } ?? false
    }

    /// The text of no more than so many bytes, which may end within a character; nil if they are none.
    private static func beginning(of bytes: Data, limit: Int) -> String? {
        let longest = bytes.count > limit ? 3 : 0
        for missing in 0...longest where missing <= limit {
            if let text = String(bytes: bytes.prefix(limit - missing), encoding: .utf8) { return text }
        }
        return nil
    }

    private func redacted(_ value: Any) -> Any {
        switch value {
        case let object as [String: Any]:
            object.reduce(into: [String: Any]()) { result, pair in
                result[pair.key] = hides(pair.key) ? Self.stars : redacted(pair.value)
            }
        case let array as [Any]: array.map(redacted)
        case let text as String:
            // JSON within JSON has names, too; of what cannot be understood nothing is known.
            Self.isJSON(text)
                ? withoutSecrets(Data(text.utf8)).map { String(decoding: $0, as: UTF8.self) } ?? Self.stars
                : Self.withoutQueries(text)
        default: value
        }
    }
}
