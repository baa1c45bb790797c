// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Checks the proof of RFC 7616 in a request.
struct DigestCheck: Sendable {
    static let opaque = "b3BhcXVl"

    let realm: String
    let user: String
    let password: String
    let algorithm: DigestAlgorithm
    let usesPerNonce: Int

    /// Which nonce was used with which count, if the proof is right.
    func proven(by parts: AuthorizationParts, of request: LoopbackRequest) -> (nonce: String, count: Int)? {
        guard parts["username"] == user, parts["realm"] == realm, parts["uri"] == request.target,
            parts["qop"] == "auth", parts["opaque"] == Self.opaque,
            parts["algorithm"].map({ $0 == algorithm.name }) ?? (algorithm == .md5), let nonce = parts["nonce"],
            let count = parts["nc"], let clientNonce = parts["cnonce"], let number = Int(count, radix: 16),
            count.utf8.count == 8
        else { return nil }
        var first = algorithm.hash("\(user):\(realm):\(password)")
        if algorithm.isOfSession { first = algorithm.hash("\(first):\(nonce):\(clientNonce)") }
        let second = algorithm.hash("\(request.method):\(request.target)")
        let proof = algorithm.hash("\(first):\(nonce):\(count):\(clientNonce):auth:\(second)")
        return parts["response"] == proof ? (nonce, number) : nil
    }
}

/// The nonces that were given out, and how far each was counted.
struct NonceBook {
    private var counts: [String: Int] = [:]

    mutating func issue() -> String {
        let nonce = String(UInt64.random(in: 0 ... .max), radix: 16)
        counts[nonce] = 0
        return nonce
    }

    /// Whether the nonce may be used with this count; counts only go up.
    mutating func use(_ nonce: String, _ number: Int, limit: Int) -> Bool {
        guard let last = counts[nonce], number > last, number <= limit else { return false }
        counts[nonce] = number
        return true
    }
}
