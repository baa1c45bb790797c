// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Decides what becomes of each response of an exchange as far as challenges are concerned: responses in, actions out.
package struct ChallengeMachine: Sendable {
    package enum Action: Sendable {
        /// It is the answer.
        case deliver
        /// It is the answer, and the proof was accepted.
        case accepted(Proof)
        /// The body is thrown away, and the request made again with this proof.
        case answer(Proof)
        /// The rule is asked these questions, one after another until one has an answer that fits.
        case ask([CredentialQuestion])
    }

    private let maximumTries: Int
    private var tries = 0
    private var refused: [ProtectionSpace: [Credential]] = [:]

    package init(maximumTries: Int) {
        self.maximumTries = maximumTries
    }

    /// A response came.
    ///
    /// - Parameters:
    ///   - head: Its head.
    ///   - hop: The request to which it is the answer.
    ///   - proof: The proof that was sent with it.
    ///   - isFromMemory: Whether nobody had asked for the proof: then its refusal says nothing of the credential.
    ///   - clientNonce: Something that nobody can foretell.
    package mutating func receive(
        _ head: ResponseHead, to hop: Hop, proof: Proof?, isFromMemory: Bool, clientNonce: @autoclosure () -> String
    ) -> Action {
        guard head.status == 401 else { return proof.map { .accepted($0) } ?? .deliver }
        guard !hop.headers.contains("Authorization"), hop.body.canBeSentAgain, tries < maximumTries else {
            return .deliver
        }
        let challenges = Self.usable(Challenge.parse(head.headers.values("WWW-Authenticate")))
        if let proof {
            let renewed = challenges.first { isRenewal($0, of: proof) }
            if let renewed,
                let next = Proof(renewed, proof.credential, at: hop.address.origin, clientNonce: clientNonce())
            {
                tries += 1
                return .answer(next)
            }
            if !isFromMemory { refused[proof.space, default: []].append(proof.credential) }
        }
        guard let url = hop.address.url, !challenges.isEmpty else { return .deliver }
        return .ask(
            challenges.map { challenge in
                let space = ProtectionSpace(
                    origin: hop.address.origin, realm: challenge.realm, scheme: challenge.scheme)
                return CredentialQuestion(space: space, challenge: challenge, url: url, refused: refused[space] ?? [])
            })
    }

    /// The rule answered a question: returns the proof with which the request is made again, if the answer is of use.
    package mutating func take(
        _ credential: Credential?, for question: CredentialQuestion, clientNonce: String
    ) -> Proof? {
        guard let credential, !question.refused.contains(credential),
            let proof = Proof(
                question.challenge, credential, at: question.space.origin, clientNonce: clientNonce)
        else { return nil }
        tries += 1
        return proof
    }

    /// The nonce was too old, and the credential is right (RFC 7616, section 3.3).
    private func isRenewal(_ challenge: Challenge, of proof: Proof) -> Bool {
        challenge.scheme == "digest" && proof.space.scheme == "digest" && challenge.realm == proof.space.realm
            && challenge["stale"]?.asciiLowercased == "true" && challenge["nonce"] != proof.nonce
    }

    /// Those that can be answered, the strongest first.
    private static func usable(_ challenges: [Challenge]) -> [Challenge] {
        let ranked = challenges.compactMap { challenge -> (rank: Int, challenge: Challenge)? in
            switch challenge.scheme {
            case "digest": DigestAnswer(challenge).map { ($0.algorithm.isStrong ? 0 : 1, challenge) }
            case "basic": (2, challenge)
            default: (3, challenge)
            }
        }
        // Stable, because the order of equals is the server's.
        return (0...3).flatMap { rank in ranked.filter { $0.rank == rank }.map(\.challenge) }
    }
}
