// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A credential together with the challenge that it answers: makes the `Authorization` field of each request.
package struct Proof: Sendable {
    private enum Form: Sendable {
        case fixed(String)
        case digest(DigestAnswer, user: String, password: String)
    }

    package let space: ProtectionSpace
    package let credential: Credential
    private let form: Form
    /// The same for all uses of one nonce, as the `-sess` forms want it.
    private let clientNonce: String
    /// How often the nonce was used.
    package private(set) var count: UInt32 = 0

    /// Joins the two; nil if the credential is not of the kind that the challenge asks for.
    package init?(_ challenge: Challenge, _ credential: Credential, at origin: WebOrigin, clientNonce: String) {
        switch (challenge.scheme, credential) {
        case ("basic", .password(let user, let password)):
            guard let value = BasicAnswer.make(user: user, password: password) else { return nil }
            form = .fixed(value)
        case ("digest", .password(let user, let password)):
            guard let answer = DigestAnswer(challenge) else { return nil }
            form = .digest(answer, user: user, password: password)
        case ("bearer", .token(let token)):
            form = .fixed("Bearer " + token)
        case (_, .authorization(let value)):
            form = .fixed(value)
        default: return nil
        }
        if case .fixed(let value) = form, value.utf8.contains(where: \.isControl) { return nil }
        space = ProtectionSpace(origin: origin, realm: challenge.realm, scheme: challenge.scheme)
        self.credential = credential
        self.clientNonce = clientNonce
    }

    /// The nonce that it uses, if it uses one.
    package var nonce: String? {
        if case .digest(let answer, _, _) = form { answer.nonce } else { nil }
    }

    /// The value of the `Authorization` field of the next request.
    package mutating func value(method: String, target: String) -> String? {
        switch form {
        case .fixed(let value): return value
        case .digest(let answer, let user, let password):
            guard count < .max else { return nil }
            count += 1
            return answer.value(
                user: user, password: password, method: method, target: target, count: count, clientNonce: clientNonce)
        }
    }

    /// The part of its origin to which it may be sent without being asked for (RFC 7617, section 2.2).
    func reaches(_ path: String, acceptedAt accepted: String) -> Bool {
        guard space.scheme == "basic" else { return true }
        guard let slash = accepted.utf8.lastIndex(of: UInt8(ascii: "/")) else { return false }
        return path.utf8.starts(with: accepted[...slash].utf8)
    }
}
