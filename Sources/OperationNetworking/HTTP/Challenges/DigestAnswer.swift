// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The answer to a `Digest` challenge (RFC 7616).
///
/// The type supports MD5 and SHA-256, both with and without `-sess`. The quality of protection is `auth`, or the form
/// without `qop` of RFC 2069.
package struct DigestAnswer: Sendable, Equatable {
    package enum Algorithm: String, Sendable, CaseIterable {
        case md5 = "MD5"
        case md5Session = "MD5-sess"
        case sha256 = "SHA-256"
        case sha256Session = "SHA-256-sess"

        var isSession: Bool { self == .md5Session || self == .sha256Session }
        package var isStrong: Bool { self == .sha256 || self == .sha256Session }

        func hash(_ text: String) -> String {
            let bytes =
                isStrong
                ? SHA256.checksum(of: text.utf8, startingWith: SHA256())
                : MD5.checksum(of: text.utf8, startingWith: MD5())
            return Hexadecimal.lower(bytes)
        }
    }

    package let algorithm: Algorithm
    package let nonce: String
    private let realm: String
    private let opaque: String?
    private let hasQuality: Bool
    private let hashesUser: Bool
    /// Whether the challenge named the algorithm, so that the answer must name it as well.
    private let namesAlgorithm: Bool

    /// Creates an answer, or returns `nil` if the challenge requires something that is not supported.
    package init?(_ challenge: Challenge) {
        guard challenge.scheme == "digest", let nonce = challenge["nonce"] else { return nil }
        let name = challenge["algorithm"]
        let algorithm =
            name.map { name in Algorithm.allCases.first { $0.rawValue.asciiLowercased == name.asciiLowercased } }
            ?? .md5
        guard let algorithm else { return nil }
        if let offered = challenge["qop"] {
            let qualities = offered.split(separator: ",").map { String($0).trimmedBlanks.asciiLowercased }
            guard qualities.contains("auth") else { return nil }
            hasQuality = true
        } else {
            guard !algorithm.isSession else { return nil }
            hasQuality = false
        }
        self.algorithm = algorithm
        self.nonce = nonce
        realm = challenge.realm
        opaque = challenge["opaque"]
        hashesUser = challenge["userhash"]?.asciiLowercased == "true"
        namesAlgorithm = name != nil
    }

    /// Returns the value of the `Authorization` header, or `nil` if the name or password contains a forbidden
    /// character.
    ///
    /// - Parameters:
    ///   - count: The number of times that the nonce was used, including this one.
    ///   - clientNonce: A value that cannot be predicted.
    package func value(
        user: String, password: String, method: String, target: String, count: UInt32, clientNonce: String
    ) -> String? {
        guard !user.utf8.contains(UInt8(ascii: ":")), !(user + password).utf8.contains(where: \.isControl) else {
            return nil
        }
        let number = String(count, radix: 16)
        let countText = String(repeating: "0", count: 8 - number.utf8.count) + number
        var secret = algorithm.hash("\(user):\(realm):\(password)")
        if algorithm.isSession { secret = algorithm.hash("\(secret):\(nonce):\(clientNonce)") }
        let what = algorithm.hash("\(method):\(target)")
        let middle = hasQuality ? "\(nonce):\(countText):\(clientNonce):auth" : nonce
        var parts = [userPart(user), "realm=\(quoted(realm))", "nonce=\(quoted(nonce))", "uri=\(quoted(target))"]
        parts.append("response=\"\(algorithm.hash("\(secret):\(middle):\(what)"))\"")
        if namesAlgorithm { parts.append("algorithm=\(algorithm.rawValue)") }
        if let opaque { parts.append("opaque=\(quoted(opaque))") }
        if hasQuality { parts += ["qop=auth", "nc=\(countText)", "cnonce=\(quoted(clientNonce))"] }
        if hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private func userPart(_ user: String) -> String {
        if hashesUser { return "username=\"\(algorithm.hash("\(user):\(realm)"))\"" }
        guard user.utf8.contains(where: { $0 >= 0x80 }) else { return "username=\(quoted(user))" }
        let escaped = user.utf8.flatMap { byte in
            byte.isLetter || byte.isDigit ? [byte] : [UInt8(ascii: "%")] + Hexadecimal.upper(byte)
        }
        return "username*=UTF-8''" + String(decoding: escaped, as: UTF8.self)
    }

    private func quoted(_ text: String) -> String {
        let escaped = text.utf8.flatMap { byte in
            byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), byte] : [byte]
        }
        return "\"" + String(decoding: escaped, as: UTF8.self) + "\""
    }
}
