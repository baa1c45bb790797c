// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The hash of a digest challenge.
///
/// More cases may be added.
public enum DigestAlgorithm: Hashable, Sendable, CaseIterable {
    /// MD5, which is the oldest.
    case md5
    /// SHA-256.
    case sha256
    /// MD5, with the nonces of both sides in the first hash.
    case md5Session
    /// SHA-256, with the nonces of both sides in the first hash.
    case sha256Session

    var name: String {
        switch self {
        case .md5: "MD5"
        case .sha256: "SHA-256"
        case .md5Session: "MD5-sess"
        case .sha256Session: "SHA-256-sess"
        }
    }

    var isOfSession: Bool { self == .md5Session || self == .sha256Session }

    func hash(_ text: String) -> String {
        let bytes =
            switch self {
            case .md5, .md5Session: MD5.checksum(of: text.utf8, startingWith: MD5())
            case .sha256, .sha256Session: SHA256.checksum(of: text.utf8, startingWith: SHA256())
            }
        return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
