// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A state machine that decides whether a response of an exchange is a challenge to answer.
package struct ChallengeMachine: Sendable {
    package enum Action: Sendable {
        /// Deliver the response.
        case deliver
        /// Deliver the response, whose server accepted the proof.
        case accepted(Proof)
        /// Discard the body, and send the request again with this proof.
        case answer(Proof)
        /// Ask the rule these questions one after another, until one of them gets a usable credential.
        case ask([CredentialQuestion])
    }

    private let maximumTries: Int
    private var tries = 0
    private var refused: [ProtectionSpace: [Credential]] = [:]

    package init(maximumTries: Int) {
        self.maximumTries = maximumTries
    }

    /// Returns the action for a response.
    ///
    /// - Parameters:
    ///   - head: The response headers.
    ///   - hop: The request that got the response.
    ///   - proof: The proof that the request contained.
    ///   - isFromMemory: Whether the proof was sent without a challenge. In that case, a rejection says nothing about
    ///     the credential.
    ///   - clientNonce: A value that cannot be predicted.
    package mutating func receive(
        _ head: ResponseHead, to hop: Hop, proof: Proof?, isFromMemory: Bool, clientNonce: @autoclosure () -> String
    ) -> Action {
        guard head.status == 401 else { return proof.map { .accepted($0) } ?? .deliver }
        guard !hop.headers.contains("Authorization"), hop.body.canBeSentAgain, tries < maximumTries else {
            return .deliver
        }
        let address = hop.address
        let challenges = Self.usable(Challenge.parse(head.headers.values("WWW-Authenticate")))
        if let proof {
            let renewed = challenges.first { isRenewal($0, of: proof) }
            if let renewed, var next = Proof(renewed, proof.credential, at: address.origin, clientNonce: clientNonce())
            {
                next.generation = proof.generation
                tries += 1
                return .answer(next)
            }
            if !isFromMemory { refused[proof.space, default: []].append(proof.credential) }
        }
        guard let url = address.url, !challenges.isEmpty else { return .deliver }
        return .ask(
            challenges.map { challenge in
                let space = ProtectionSpace(origin: address.origin, realm: challenge.realm, scheme: challenge.scheme)
                return CredentialQuestion(space: space, challenge: challenge, url: url, refused: refused[space] ?? [])
            })
    }

    /// Returns the proof with which to send the request again, or `nil` if the rule's answer to a question cannot be
    /// used.
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

    /// Returns whether only the nonce of the proof expired, and the credential is still valid (RFC 7616, section 3.3).
    private func isRenewal(_ challenge: Challenge, of proof: Proof) -> Bool {
        challenge.scheme == "digest" && proof.space.scheme == "digest" && challenge.realm == proof.space.realm
            && challenge["stale"]?.asciiLowercased == "true" && challenge["nonce"] != proof.nonce
    }

    /// Returns the challenges that can be answered, the strongest first.
    private static func usable(_ challenges: [Challenge]) -> [Challenge] {
        let ranked = challenges.compactMap { challenge -> (rank: Int, challenge: Challenge)? in
            switch challenge.scheme {
            case "digest": DigestAnswer(challenge).map { ($0.algorithm.isStrong ? 0 : 1, challenge) }
            case "basic": (2, challenge)
            default: (3, challenge)
            }
        }
        // Challenges of equal strength stay in the server's order.
        return (0...3).flatMap { rank in ranked.filter { $0.rank == rank }.map(\.challenge) }
    }
}

/// An authentication challenge that a server sends in a `WWW-Authenticate` header.
public struct Challenge: Hashable, Sendable {
    /// The authentication scheme in lowercase, such as `basic`, `digest` or `bearer`.
    public let scheme: String
    /// The `token68` value that follows the scheme, or `nil` if the challenge has parameters or consists of only the
    /// scheme.
    public let token: String?
    private let parameters: [String: String]

    init(scheme: String, token: String?, parameters: [String: String]) {
        self.scheme = scheme
        self.token = token
        self.parameters = parameters
    }

    /// Returns the value of a challenge parameter, without quotation marks, or `nil` if there is no parameter with that
    /// name.
    ///
    /// The comparison of names is not case-sensitive.
    public subscript(name: String) -> String? { parameters[name.asciiLowercased] }

    /// The value of the `realm` parameter, which names a protected area of the server, or an empty string if the
    /// challenge has no such parameter.
    public var realm: String { self["realm"] ?? "" }

    /// Returns the challenges in the values of `WWW-Authenticate` headers (RFC 9110, section 11.6.1).
    ///
    /// Each value can contain several challenges. The method skips text that is not a valid challenge, up to the next
    /// comma.
    ///
    /// - Parameter fields: The values of the headers.
    package static func parse(_ fields: [String]) -> [Challenge] {
        fields.flatMap { field in
            var scanner = HeaderScanner(field)
            return scanner.challenges()
        }
    }
}

// A header with challenges, in which commas separate both challenges and their parameters.
extension HeaderScanner {
    /// The maximum number of challenges per header, which is far more than real servers send.
    private static let mostChallenges = 32

    fileprivate mutating func challenges() -> [Challenge] {
        var found: [Challenge] = []
        while found.count < Self.mostChallenges {
            skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            guard !isAtEnd else { break }
            if let challenge = challenge() {
                found.append(challenge)
            } else {
                skipToComma()
            }
        }
        return found
    }

    private mutating func challenge() -> Challenge? {
        guard let scheme = token(), isAtBlank || isAtComma else { return nil }
        let hadBlank = isAtBlank
        skip { $0.isBlank }
        if hadBlank, let data = token68() {
            return Challenge(scheme: scheme.asciiLowercased, token: data, parameters: [:])
        }
        var parameters: [String: String] = [:]
        var isAtStart = !isAtComma
        // The text after a comma shows whether the comma separates two parameters or two challenges.
        while let (name, value) = challengeParameter() {
            // The first of two parameters with the same name counts.
            if parameters[name] == nil { parameters[name] = value }
            skip { $0.isBlank }
            guard isAtComma else { return nil }
            skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            isAtStart = false
        }
        // Text that follows the scheme but is not a parameter makes the challenge invalid.
        if isAtStart { return nil }
        return Challenge(scheme: scheme.asciiLowercased, token: nil, parameters: parameters)
    }

    /// Reads a name, an equals sign and a value, or reads nothing if there is no parameter.
    private mutating func challengeParameter() -> (String, String)? {
        let start = index
        if let name = token() {
            skip { $0.isBlank }
            if take(UInt8(ascii: "=")) {
                skip { $0.isBlank }
                let value = isAt(UInt8(ascii: "\"")) ? quoted() : token()
                if let value { return (name.asciiLowercased, value) }
            }
        }
        index = start
        return nil
    }

    /// Reads data up to a comma or the end, or reads nothing if there is no such data.
    private mutating func token68() -> String? {
        let start = index
        skip { $0.isToken68Character }
        guard index > start else { return nil }
        skip { $0 == UInt8(ascii: "=") }
        let end = index
        skip { $0.isBlank }
        if isAtComma { return text(start..<end) }
        index = start
        return nil
    }

    private var isAtComma: Bool { isAtEnd || isAt(UInt8(ascii: ",")) }
}

/// A protected area of a server, in which all requests need the same credential.
package struct ProtectionSpace: Hashable, Sendable {
    /// The origin of the server that requests the credential.
    package let origin: WebOrigin
    /// The name of the area, or an empty string if the server specified no name.
    package let realm: String
    /// The authentication scheme in lowercase, such as `basic`, `digest` or `bearer`.
    package let scheme: String
}
