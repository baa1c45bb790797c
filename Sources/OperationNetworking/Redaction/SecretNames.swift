// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
