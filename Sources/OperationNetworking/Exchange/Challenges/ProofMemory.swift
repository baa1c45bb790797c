// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What servers accepted, so that later requests bring it along.
package struct ProofMemory: Sendable {
    private struct Entry: Sendable {
        var proof: Proof
        /// The paths at which it was accepted, but for those that it reaches from another.
        var paths: [String]

        func reaches(_ path: String) -> Bool { paths.contains { proof.reaches(path, acceptedAt: $0) } }
    }

    private var entries: [WebOrigin: [Entry]] = [:]
    private static let limit = 256
    private static let limitPerOrigin = 8
    private static let limitOfPaths = 16

    package init() {}

    /// The proof for a request and the field that it makes, if there is one for its address.
    package mutating func use(for hop: Hop) -> (proof: Proof, value: String)? {
        guard var group = entries[hop.address.origin],
            let index = group.lastIndex(where: { $0.reaches(hop.address.path) }),
            let value = group[index].proof.value(method: hop.method, target: hop.address.target)
        else { return nil }
        entries[hop.address.origin] = group
        return (group[index].proof, value)
    }

    /// A request with that proof was answered with something other than a challenge.
    package mutating func remember(_ proof: Proof, acceptedBy hop: Hop) {
        guard proof.space.origin == hop.address.origin else { return }
        var group = entries[proof.space.origin] ?? []
        var paths: [String] = []
        if let index = group.firstIndex(where: { $0.proof.space == proof.space }) {
            // Of the same nonce that which was used most often counts: no number may be used twice.
            let known = group[index].proof
            if known.nonce == proof.nonce, known.count >= proof.count, known.credential == proof.credential {
                guard !group[index].reaches(hop.address.path) else { return }
                paths = group[index].paths
            }
            group.remove(at: index)
        }
        paths.removeAll { proof.reaches($0, acceptedAt: hop.address.path) }
        group.append(Entry(proof: proof, paths: paths.suffix(Self.limitOfPaths - 1) + [hop.address.path]))
        if group.count > Self.limitPerOrigin { group.removeFirst() }
        if entries[proof.space.origin] == nil, entries.count >= Self.limit, let victim = entries.keys.first {
            entries[victim] = nil
        }
        entries[proof.space.origin] = group
    }

    /// A proof was refused.
    package mutating func forget(_ proof: Proof) {
        entries[proof.space.origin]?.removeAll {
            $0.proof.space == proof.space && $0.proof.credential == proof.credential && $0.proof.nonce == proof.nonce
        }
    }

    /// All of it, as when the user signs out.
    package mutating func forgetAll() { entries = [:] }
}
