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

/// One way to prove who one is, as a server offers it in `WWW-Authenticate`.
public struct Challenge: Hashable, Sendable {
    /// The scheme in lower case: `basic`, `digest`, `bearer`.
    public let scheme: String
    /// The data of schemes that have no parameters.
    public let token: String?
    private let parameters: [String: String]

    init(scheme: String, token: String?, parameters: [String: String]) {
        self.scheme = scheme
        self.token = token
        self.parameters = parameters
    }

    /// The value of a parameter, without quotation marks; the name in whatever case.
    public subscript(name: String) -> String? { parameters[name.asciiLowercased] }

    /// What the server calls the part of it that is protected; empty if it has no name for it.
    public var realm: String { self["realm"] ?? "" }

    /// Reads the challenges of one or more fields, each of which may have several (RFC 9110, section 11.6.1).
    ///
    /// What cannot be read is left out, up to the next comma.
    public static func parse(_ fields: [String]) -> [Challenge] {
        fields.flatMap { field in
            var parser = ChallengeParser(field)
            return parser.challenges()
        }
    }
}

/// Reads a field with challenges, where commas part challenges and their parameters alike.
struct ChallengeParser {
    private var scanner: HeaderScanner
    /// More challenges than anybody means; a field of commas must not cost more than it is long.
    private static let limit = 32

    init(_ field: String) {
        scanner = HeaderScanner(field)
    }

    mutating func challenges() -> [Challenge] {
        var found: [Challenge] = []
        while found.count < Self.limit {
            scanner.skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            guard !scanner.isAtEnd else { break }
            if let challenge = challenge() {
                found.append(challenge)
            } else {
                scanner.skipToComma()
            }
        }
        return found
    }

    private mutating func challenge() -> Challenge? {
        guard let scheme = scanner.token(), scanner.isAtBlank || isAtEnd else { return nil }
        let hadBlank = scanner.isAtBlank
        scanner.skip { $0.isBlank }
        if hadBlank, let data = token68() {
            return Challenge(scheme: scheme.asciiLowercased, token: data, parameters: [:])
        }
        var parameters: [String: String] = [:]
        var isAtStart = !isAtEnd
        // A comma may part two parameters or two challenges: what follows it says which.
        while let (name, value) = parameter() {
            // Of two of one name the first counts.
            if parameters[name] == nil { parameters[name] = value }
            scanner.skip { $0.isBlank }
            guard isAtEnd else { return nil }
            scanner.skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            isAtStart = false
        }
        // What follows the scheme and is no parameter belongs to nothing.
        if isAtStart { return nil }
        return Challenge(scheme: scheme.asciiLowercased, token: nil, parameters: parameters)
    }

    /// A name, an equals sign and a value; nothing is taken if it is none.
    private mutating func parameter() -> (String, String)? {
        let start = scanner.index
        if let name = scanner.token() {
            scanner.skip { $0.isBlank }
            if scanner.take(UInt8(ascii: "=")) {
                scanner.skip { $0.isBlank }
                let value = scanner.isAt(UInt8(ascii: "\"")) ? scanner.quoted() : scanner.token()
                if let value { return (name.asciiLowercased, value) }
            }
        }
        scanner.index = start
        return nil
    }

    /// Data up to a comma or the end; nothing is taken if it is none.
    private mutating func token68() -> String? {
        let start = scanner.index
        scanner.skip { $0.isToken68Character }
        guard scanner.index > start else { return nil }
        scanner.skip { $0 == UInt8(ascii: "=") }
        let end = scanner.index
        scanner.skip { $0.isBlank }
        if isAtEnd { return scanner.text(start..<end) }
        scanner.index = start
        return nil
    }

    private var isAtEnd: Bool { scanner.isAtEnd || scanner.isAt(UInt8(ascii: ",")) }
}

/// What a credential is for: within one space it is the same, and it is never sent to another.
public struct ProtectionSpace: Hashable, Sendable {
    /// Where it is asked for.
    public let origin: WebOrigin
    /// What the server calls the part of it that is protected.
    public let realm: String
    /// The way to prove it, in lower case: `basic`, `digest`, `bearer`.
    public let scheme: String
}
