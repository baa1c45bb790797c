// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A credential together with the challenge that it answers, which creates the `Authorization` header of each request.
package struct Proof: Sendable {
    private enum Form: Sendable {
        case fixed(String)
        case digest(DigestAnswer, user: String, password: String)
    }

    package let space: ProtectionSpace
    package let credential: Credential
    private let form: Form
    /// The client nonce, which stays the same for all uses of one server nonce because the `-sess` algorithms require
    /// it.
    private let clientNonce: String
    /// The number of times that the nonce was used.
    package private(set) var count: UInt32 = 0
    /// The number of times that the memory had removed all proofs when the credential was requested.
    var generation = 0

    /// Creates a proof, or returns `nil` if the credential cannot answer the challenge.
    package init?(_ challenge: Challenge, _ credential: Credential, at origin: WebOrigin, clientNonce: String) {
        switch (challenge.scheme, credential) {
        case ("basic", .password(let user, let password)):
            guard let value = Self.basic(user: user, password: password) else { return nil }
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

    /// Returns the answer to a `Basic` challenge (RFC 7617), encoded in UTF-8, or `nil` if the name contains a colon or
    /// either text contains a control character.
    package static func basic(user: String, password: String) -> String? {
        let isWritable = !user.utf8.contains(UInt8(ascii: ":")) && !(user + password).utf8.contains(where: \.isControl)
        guard isWritable else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    /// The nonce of a Digest proof, or `nil` for other schemes.
    package var nonce: String? {
        if case .digest(let answer, _, _) = form { answer.nonce } else { nil }
    }

    /// Returns the value of the `Authorization` header for the next request.
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

    /// Returns whether the proofs differ at most in the number of their uses.
    func isSame(as other: Proof) -> Bool {
        space == other.space && credential == other.credential && nonce == other.nonce
    }

    /// Returns whether the proof may be sent to a path without a challenge (RFC 7617, section 2.2).
    func reaches(_ path: String, acceptedAt accepted: String) -> Bool {
        guard space.scheme == "basic" else { return true }
        guard let slash = accepted.utf8.lastIndex(of: UInt8(ascii: "/")) else { return false }
        return path.utf8.starts(with: accepted[...slash].utf8)
    }
}

/// The proofs that servers accepted, for use in later requests.
package struct ProofMemory: Sendable {
    private struct Entry: Sendable {
        var proof: Proof
        /// The paths at which the proof was accepted, without paths that are covered by another one.
        var paths: [String]

        func reaches(_ path: String) -> Bool { paths.contains { proof.reaches(path, acceptedAt: $0) } }
    }

    private var entries: [WebOrigin: [Entry]] = [:]
    /// The number of times that all proofs were removed.
    private(set) var generation = 0
    private static let limit = 256
    private static let limitPerOrigin = 8
    private static let limitOfPaths = 16

    package init() {}

    /// Returns the proof for a request and the value of its `Authorization` header, or `nil` if no proof applies.
    package mutating func use(for hop: Hop) -> (proof: Proof, value: String)? {
        let address = hop.address
        guard var group = entries[address.origin], let index = group.lastIndex(where: { $0.reaches(address.path) }),
            let value = group[index].proof.value(method: hop.method, target: address.target)
        else { return nil }
        entries[address.origin] = group
        return (group[index].proof, value)
    }

    /// Stores a proof after a request with it got a response other than a challenge, unless all proofs were removed
    /// since the proof's credential was requested.
    ///
    /// - Parameter isFromMemory: Whether the proof was taken from this memory. If the memory no longer contains the
    ///   proof, a server refused it in the meantime, or a newer proof replaced it.
    package mutating func remember(_ proof: Proof, acceptedBy hop: Hop, isFromMemory: Bool = false) {
        let address = hop.address
        guard proof.space.origin == address.origin, proof.generation == generation else { return }
        var group = entries[proof.space.origin] ?? []
        var paths: [String] = []
        let index = group.firstIndex { $0.proof.space == proof.space }
        let known = index.map { group[$0].proof }.flatMap { $0.isSame(as: proof) ? $0 : nil }
        guard known != nil || !isFromMemory else { return }
        if let index {
            // A nonce count must not be used twice, so the higher of two counts is kept.
            if let known, known.count >= proof.count {
                guard !group[index].reaches(address.path) else { return }
                paths = group[index].paths
            }
            group.remove(at: index)
        }
        paths.removeAll { proof.reaches($0, acceptedAt: address.path) }
        group.append(Entry(proof: proof, paths: paths.suffix(Self.limitOfPaths - 1) + [address.path]))
        if group.count > Self.limitPerOrigin { group.removeFirst() }
        if entries[proof.space.origin] == nil, entries.count >= Self.limit, let evicted = entries.keys.first {
            entries[evicted] = nil
        }
        entries[proof.space.origin] = group
    }

    /// Removes a proof that a server refused.
    package mutating func forget(_ proof: Proof) {
        entries[proof.space.origin]?.removeAll { $0.proof.isSame(as: proof) }
    }

    /// Removes all proofs, for example when the user signs out.
    package mutating func forgetAll() {
        entries = [:]
        generation += 1
    }
}
