// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The head of a request, and what it says of the body.
struct RequestHead {
    enum Length {
        case none
        case bytes(Int)
        case chunks
    }

    var method: String
    var target: String
    var version: String
    var fields: [LoopbackField]
    var bytes: [UInt8]
    var length: Length

    var isHead: Bool { method == "HEAD" }

    /// Whether the client will not use the connection again.
    var closes: Bool {
        let wishes = fields.values("Connection").joined(separator: ",").lowercased()
        return wishes.contains("close") || (version == "HTTP/1.0" && !wishes.contains("keep-alive"))
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue: Bool { fields.first("Expect")?.lowercased() == "100-continue" }
}
