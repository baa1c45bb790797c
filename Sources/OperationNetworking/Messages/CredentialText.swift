// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A parser that replaces the credentials in a string.
///
/// The parser finds credentials after the name of a scheme (`Bearer …`), JSON web tokens, and keys in the format of a
/// well-known service (`ghp_…`).
///
/// A percent-encoded character counts as the decoded character, and invisible characters are ignored. The text around
/// the secrets does not change.
struct CredentialText {
    private typealias Scalars = [Unicode.Scalar]

    /// An authentication scheme.
    private struct Scheme {
        let name: String
        let letters: Scalars
        /// Whether the name is also a common word, as in the source code `if (token < lastToken)`.
        let isWord: Bool

        init(_ name: String, isWord: Bool = false) {
            (self.name, self.isWord) = (name, isWord)
            letters = Scalars(name.unicodeScalars)
        }

        /// Returns whether the character may separate the scheme from its credential.
        func mayPrecede(_ sign: Unicode.Scalar) -> Bool {
            switch sign {
            case " ", "\t", "\u{A0}", ":", "\"", "'", "\\": true
            case "<", "(", "[", "{", "`", "%": !isWord
            default:
                switch sign.properties.generalCategory {
                case .spaceSeparator: true
                case .control, .lineSeparator, .paragraphSeparator, .openPunctuation, .initialPunctuation,
                    .finalPunctuation:
                    !isWord
                default: false
                }
            }
        }
    }

    private static let schemes = [
        Scheme("bearer"), Scheme("basic"), Scheme("dpop"), Scheme("negotiate"), Scheme("ntlm"), Scheme("kerberos"),
        Scheme("ssws"),
        Scheme("token", isWord: true), Scheme("jwt", isWord: true), Scheme("apikey", isWord: true),
        Scheme("api-key", isWord: true),
    ]
    /// The parameters after the name of a scheme in a challenge, which are not credentials.
    private static let challengeParameters: Set = [
        "realm", "charset", "error", "error_description", "error_uri", "scope", "algorithm", "qop", "nonce", "opaque",
        "stale", "domain",
    ]
    private static let stars = "***"
    /// The length of the shortest key or token that is recognized by its prefix.
    static let shortestKey = 20
    /// The format of the keys of a well-known service.
    private struct KeyForm {
        let beginning: Scalars
        /// The number of characters after the prefix.
        let counts: ClosedRange<Int>
        /// The allowed characters besides letters and digits.
        let signs: Scalars
        let isInCapitals: Bool

        init(_ beginning: String, _ counts: ClosedRange<Int>, _ signs: String = "", isInCapitals: Bool = false) {
            self.beginning = Scalars(beginning.unicodeScalars)
            (self.counts, self.signs, self.isInCapitals) = (counts, Scalars(signs.unicodeScalars), isInCapitals)
        }

        func fits(_ word: ArraySlice<Unicode.Scalar>) -> Bool {
            guard counts.contains(word.count - beginning.count), word.starts(with: beginning) else { return false }
            return word.dropFirst(beginning.count).allSatisfy { scalar in
                let isLetter = CredentialText.isLetterOrDigit(scalar.value) && !(isInCapitals && scalar.value > 0x5A)
                return isLetter || signs.contains(scalar)
            }
        }
    }

    private static let keyForms =
        ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map { KeyForm($0, 36...255) }
        + ["sk_live_", "sk_test_", "rk_live_"].map { KeyForm($0, 16...255) }
        + ["sk-proj-", "sk-ant-"].map { KeyForm($0, 32...255, "-_") }
        + ["xoxb-", "xoxp-"].map { KeyForm($0, 20...255, "-") }
        + ["AKIA", "ASIA"].map { KeyForm($0, 16...16, isInCapitals: true) }
        + [
            KeyForm("github_pat_", 40...255, "_"), KeyForm("glpat-", 20...255, "-_"), KeyForm("AIza", 35...35, "-_"),
            KeyForm("hf_", 30...255), KeyForm("npm_", 36...36), KeyForm("pypi-", 50...255, "-_"),
            KeyForm("SG.", 60...80, "-_."),
        ]

    private let text: Scalars
    /// Whether the text is the value of a header, which may consist of only a credential.
    private let isHeader: Bool
    /// The decoded characters of the text, without invisible characters.
    private var letters: Scalars = []
    /// The position of each decoded character in the text, followed by the end of the text.
    private var starts: [Int] = []
    /// The ranges of `letters` that are secret.
    private var hidden: [Range<Int>] = []
    private var wordCount = 0

    private init(_ text: String, isHeader: Bool = false) {
        (self.text, self.isHeader) = (Scalars(text.unicodeScalars), isHeader)
        readLetters()
    }

    /// Returns the text without credentials, or the same text if there are none.
    static func shown(_ text: String, isHeader: Bool) -> String {
        // A short text without separators contains neither a scheme with a credential nor a key.
        guard text.utf8.count >= shortestKey || text.utf8.contains(where: { !isLetterOrDigit(UInt32($0)) }) else {
            return text
        }
        var words = CredentialText(text, isHeader: isHeader)
        words.readWords()
        return words.hidden.isEmpty ? text : words.shown
    }

    /// Returns the text without JSON web tokens and keys, or the same text if there are none.
    static func withoutTokens(_ text: String) -> String {
        guard text.utf8.count >= shortestKey else { return text }
        var words = CredentialText(text)
        for word in words.letters.indices.split(whereSeparator: { !isOfCredential(words.letters[$0]) }) {
            words.hideTokens(word)
        }
        return words.hidden.isEmpty ? text : words.shown
    }

    private var shown: String {
        var result = String.UnicodeScalarView()
        var index = 0
        for range in hidden {
            result.append(contentsOf: text[index..<starts[range.lowerBound]])
            result.append(contentsOf: Self.stars.unicodeScalars)
            index = starts[range.upperBound]
        }
        result.append(contentsOf: text[index...])
        return String(result)
    }

    private mutating func readLetters() {
        letters.reserveCapacity(text.count)
        starts.reserveCapacity(text.count + 1)
        var index = 0
        while index < text.count {
            let start = index
            let letter: Unicode.Scalar
            (letter, index) = escaped(at: start) ?? (text[start], start + 1)
            if letter.isJoined { continue }
            letters.append(letter)
            starts.append(start)
        }
        starts.append(text.count)
    }

    /// Returns the character that is percent-encoded at a position, and the end of its encoding.
    ///
    /// The percent sign itself may be encoded, even repeatedly.
    private func escaped(at start: Int) -> (letter: Unicode.Scalar, end: Int)? {
        guard text[start] == "%" else { return nil }
        var end = start + 1
        while end + 1 < text.count, text[end] == "2", text[end + 1] == "5" { end += 2 }
        guard end + 1 < text.count, let high = digit(end), let low = digit(end + 1) else {
            return end > start + 1 ? ("%", end) : nil
        }
        // A byte of a non-ASCII character counts as a space.
        let byte = UInt8(high * 16 + low)
        return (byte < 0x80 ? Unicode.Scalar(byte) : "\u{A0}", end + 2)
    }

    private func digit(_ index: Int) -> Int? {
        text[index].isASCII ? Character(text[index]).hexDigitValue : nil
    }

    private mutating func readWords() {
        var scheme: Scheme?
        var index = 0
        while index < letters.count {
            guard Self.isOfCredential(letters[index]) else {
                if let known = scheme, !known.mayPrecede(letters[index]) { scheme = nil }
                index += 1
                continue
            }
            let end = letters[index...].firstIndex { !Self.isOfCredential($0) } ?? letters.count
            if letters[index..<end].contains(where: { Self.isLetterOrDigit($0.value) }) {
                scheme = readWord(index..<end, behind: scheme)
            } else if let known = scheme, known.isWord {
                scheme = nil
            }
            index = max(end, hidden.last?.upperBound ?? 0)
        }
    }

    /// Finds the secrets in a word.
    ///
    /// - Returns: The scheme whose credential may follow the word.
    private mutating func readWord(_ word: Range<Int>, behind previous: Scheme?) -> Scheme? {
        var (start, scheme) = (word.lowerBound, previous)
        while true {
            let rest = start..<word.upperBound
            guard rest.contains(where: { Self.isLetterOrDigit(letters[$0].value) }) else { return scheme }
            wordCount += 1
            if let known = scheme {
                if let value = valueOfParameter(rest) {
                    (start, scheme) = (value, nil)
                    continue
                }
                if isSecret(rest, of: known) {
                    hidden.append(rest.lowerBound..<endOfCredential(from: rest.upperBound))
                    break
                }
            }
            guard let (found, sign) = schemeWithSign(in: rest) else {
                hideTokens(rest)
                break
            }
            hideTokens(start..<sign)
            (start, scheme) = (sign + 1, found)
        }
        return self.scheme(endingAt: word.upperBound, from: start)
    }

    /// Returns the end of a credential that continues with other characters, as in `id:secret`.
    private func endOfCredential(from end: Int) -> Int {
        guard end < letters.count, ":!@$*|".unicodeScalars.contains(letters[end]) else { return end }
        return letters[end...].firstIndex { " \t\n\r,;&\"'<>()[]{}\\".unicodeScalars.contains($0) } ?? letters.count
    }

    /// Returns the first scheme in a word that a plus or equals sign separates from its credential, and the position of
    /// the sign.
    ///
    /// In a form, a plus sign means a space. The scheme may also be the name of a pair.
    private func schemeWithSign(in word: Range<Int>) -> (scheme: Scheme, sign: Int)? {
        for sign in word where letters[sign] == "+" || letters[sign] == "=" {
            if let scheme = scheme(endingAt: sign, from: word.lowerBound) { return (scheme, sign) }
        }
        return nil
    }

    /// Returns the scheme that ends at a position, either alone or after a separator, as in `value=Bearer`.
    private func scheme(endingAt end: Int, from start: Int) -> Scheme? {
        Self.schemes.first { scheme in
            let begin = end - scheme.letters.count
            guard begin >= start, zip(letters[begin..<end], scheme.letters).allSatisfy({ Self.small($0) == $1.value })
            else { return false }
            guard begin > start else { return true }
            return switch letters[begin - 1] {
            case "=", "/", ".", "~", "+": true
            case "-", "_": !scheme.isWord
            default: false
            }
        }
    }

    /// Returns the start of the value if a word is a parameter of a challenge, such as `realm="…"`, or `nil` if it is
    /// not.
    ///
    /// An equals sign alone proves nothing, because Base64 may also end with one.
    private func valueOfParameter(_ word: Range<Int>) -> Int? {
        guard let equals = word.first(where: { letters[$0] == "=" }) else { return nil }
        let name = String(scalars: letters[word.lowerBound..<equals])
        let isKnown = Self.challengeParameters.contains(name.lowercased())
        guard equals + 1 == word.upperBound else { return isKnown ? equals + 1 : nil }
        let isName = name.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F || $0 == 0x2D }
        let isQuoted = word.upperBound < letters.count && ["\"", "'"].contains(letters[word.upperBound])
        return isQuoted && (isKnown || isName) ? equals + 1 : nil
    }

    private func isSecret(_ word: Range<Int>, of scheme: Scheme) -> Bool {
        if scheme.name == "bearer" {
            let isLast = !letters[word.upperBound...].contains(where: Self.isOfCredential)
            if isLast || isHeader && wordCount == 2 { return true }
        }
        return isCredential(letters[word], of: scheme)
    }

    /// Returns whether a word looks like a credential and not like a word of a language.
    private func isCredential(_ word: ArraySlice<Unicode.Scalar>, of scheme: Scheme) -> Bool {
        if word.count >= 16 { return true }
        // The end of a request line, as in `POST /oauth/token HTTP/1.1`.
        if word.starts(with: "HTTP/".unicodeScalars) { return false }
        // A Base64-encoded user name and password can be short.
        if scheme.name == "basic", Data(base64Encoded: String(scalars: word))?.contains(0x3A) == true { return true }
        guard word.count >= 6 else { return false }
        return word.contains { ("0"..."9").contains($0) || $0 == "=" }
            || word.dropFirst().contains { ("A"..."Z").contains($0) }
    }

    /// Hides the JSON web tokens and the keys of well-known services in a word.
    ///
    /// A JSON web token consists of at least three parts with dots between them, and the first part is a JSON object.
    private mutating func hideTokens(_ word: Range<Int>) {
        for part in word.split(whereSeparator: { "/=+~".unicodeScalars.contains(letters[$0]) }) {
            let token = letters[part]
            if token.starts(with: "eyJ".unicodeScalars), token.count(where: { $0 == "." }) >= 2 {
                hidden.append(part)
            } else if let key = key(in: part) {
                hidden.append(key)
            }
        }
    }

    /// Returns the first key of a well-known service in a part of a word, without the signs around it.
    private func key(in part: Range<Int>) -> Range<Int>? {
        func isSign(_ index: Int) -> Bool { "-._".unicodeScalars.contains(letters[index]) }
        for start in part where start == part.lowerBound || isSign(start - 1) {
            guard Self.keyForms.contains(where: { letters[start..<part.upperBound].starts(with: $0.beginning) }) else {
                continue
            }
            var end = part.upperBound
            while end > start {
                if Self.keyForms.contains(where: { $0.fits(letters[start..<end]) }) { return start..<end }
                guard isSign(end - 1) else { break }
                end -= 1
            }
        }
        return nil
    }

    private static func isOfCredential(_ scalar: Unicode.Scalar) -> Bool {
        isLetterOrDigit(scalar.value) || "-._~+/=".unicodeScalars.contains(scalar)
    }

    private static func isLetterOrDigit(_ value: UInt32) -> Bool {
        switch value {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }

    /// Returns the value of a character, with an uppercase ASCII letter converted to lowercase.
    private static func small(_ letter: Unicode.Scalar) -> UInt32 {
        (0x41...0x5A).contains(letter.value) ? letter.value + 0x20 : letter.value
    }
}
