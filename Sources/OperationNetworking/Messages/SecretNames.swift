// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The names that identify secrets.
///
/// In case of doubt, a name counts as a secret.
enum SecretNames {
    /// The parts of a name that make it secret.
    private static let parts = [
        "authorization", "authentication", "clientcert", "clientprincipal", "cookie", "token", "secret", "password",
        "passwd", "passphrase", "passcode", "apikey",
        "session",
        "signature", "credential", "assertion", "verifier", "saml", "csrf", "xsrf", "hmac", "dpop", "totp", "mnemonic",
        "privatekey", "accesskey", "encryptionkey", "seedphrase", "recoveryphrase", "cardnumber", "creditcard",
        "socialsecurity",
    ]
    /// The words that make a name secret, but are also parts of harmless words.
    private static let words: Set = [
        "key", "auth", "authn", "pwd", "pass", "psk", "jwt", "bearer", "pin", "otp", "mfa", "tfa", "cvc", "cvv", "sid",
        "sig",
        "ssn",
        "iban", "subscription",
    ]
    /// The names that are secret only as a whole, because each of their words also occurs in harmless headers.
    private static let wholeNames: Set = ["xaccess", "xidentity"]
    /// The words that make a name secret if they are at its end.
    private static let lastWords: Set = ["ticket", "seed", "pan"]
    /// The parts with digits, which the search for words does not find.
    private static let partsWithDigits = ["2fa"]
    /// The words before `code` in names that are not secret.
    private static let harmlessCodes = [
        "status", "error", "response", "result", "reason", "exit", "return", "close", "failure", "fault", "warning",
        "message", "signal", "event", "http", "country", "zip", "postal", "post", "area", "region", "state", "city",
        "language", "lang", "locale", "currency", "product", "item", "category", "department", "type", "unit", "model",
        "version", "source", "color", "colour", "airport", "station", "iata", "icao", "iso", "tax", "dial", "dialing",
        "calling", "short", "byte", "machine", "char", "uni", "bar", "geo", "trans",
    ]
    /// The words before `code` that are harmless only if nothing precedes them.
    private static let wholeHarmlessCodes: Set = ["en", "de", "op", "vs", "x", "hs"]
    /// The text before `key` in lowercase words that are not secret.
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

    /// Matches `code`, `deviceCode` and `recovery_codes`, but neither `statusCode` nor `zip-code`.
    private static func endsInCode(_ letters: String) -> Bool {
        guard let stem = letters.stem(before: ["code", "codes"]) else { return false }
        return !wholeHarmlessCodes.contains(stem) && !harmlessCodes.contains { stem.hasSuffix($0) }
    }

    /// Matches `sshkey`, but not `monkey`.
    private static func endsInKey(_ letters: String) -> Bool {
        guard let stem = letters.stem(before: ["key", "keys"]), !stem.isEmpty else { return false }
        return !harmlessKeys.contains { stem.hasSuffix($0) }
    }

    private static func hasDigits(_ name: String) -> Bool {
        let text = name.lowercased().filter { $0.isLetter || $0.isNumber }
        return partsWithDigits.contains { text.contains($0) }
    }

    /// Returns the words of a name such as `X-Auth-Key`, `access_key` or `accessKey`, in lowercase.
    ///
    /// The method reads scalars, because combining characters could hide the name.
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
    /// Returns the text before one of the given suffixes, or `nil` if the text has none of them.
    fileprivate func stem(before ends: [String]) -> String? {
        ends.first { hasSuffix($0) }.map { String(dropLast($0.count)) }
    }
}
