// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A hop with all that the jar, the memory and the rule add to it, as it would be sent.
struct PreparedHop: Sendable {
    let hop: Hop
    let headers: HeaderFields
    /// The `Cookie` field.
    let cookies: String?
    /// What the `Authorization` field was made with.
    let proof: Proof?
    /// Whether nobody had asked for that proof.
    let isProofFromMemory: Bool
    /// When the cache was asked: what is forgotten after that, the response does not bring back.
    var moment: CacheChanges.Moment?

    init(_ hop: Hop, proof: Proof?, session: ExchangeSession) {
        var hop = hop
        let configuration = session.configuration
        hop.options = configuration.limits.narrowed(hop.options)
        var headers = hop.headers
        if let jar = configuration.cookies, !headers.contains("Cookie"), let url = hop.address.url {
            headers["Cookie"] = jar.header(for: url)
        }
        var used = proof
        var isFromMemory = false
        if headers.contains("Authorization") {
            used = nil
        } else if var proof {
            headers["Authorization"] = proof.value(method: hop.method, target: hop.address.target)
            used = proof
        } else if let known = session.useProof(for: hop) {
            headers["Authorization"] = known.value
            used = known.proof
            isFromMemory = true
        }
        self.hop = hop
        self.headers = headers
        cookies = headers["Cookie"]
        self.proof = used
        isProofFromMemory = isFromMemory
    }

    var resource: String { hop.address.resource }

    /// What the cache goes by.
    var wishes: HeaderFields { CacheSelection.wishes(headers, hop.options) }
}
