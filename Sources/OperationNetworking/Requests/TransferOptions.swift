// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How one request is to be transferred: time limits, size limits, decoding.
///
/// These are what only a session can do. The size of a body as it is received, redirects, retry, credentials and
/// cookies are decided above the session.
public struct TransferOptions: Sendable, Hashable {
    /// How long the phases of the transfer may take.
    public var timeouts: TransferTimeouts
    /// The most bytes that the head of a response may have, all informational ones before it included: 64 KiB.
    public var maximumHeaderSize: Int
    /// Whether the session asks for compressed bodies and decompresses them: it does.
    ///
    /// A request that has an `Accept-Encoding` field of its own gets the body as it is sent, whatever is set here.
    public var decodesContent: Bool
    /// How many times as large as what was received a decompressed body may become, once it is larger than 1 MiB: 100.
    public var maximumExpansion: Int
    /// Whether the body waits until the server said `100 Continue`: it does not.
    ///
    /// It waits for one second at most.
    public var expectsContinue: Bool
    /// The newest version of HTTP to be used: 2 where TLS negotiates it.
    public var newestVersion: HTTPVersion
    /// Which of several requests to a host goes first: none.
    public var priority: TransferPriority
    /// Whether it waits for no other request to its host: those that wait may wait for what it brings.
    package var isAhead = false
    /// An object that a higher layer attached to the request.
    var companion: Companion?

    /// An object that is compared by its identity.
    struct Companion: Sendable, Hashable {
        let object: any AnyObject & Sendable

        static func == (left: Companion, right: Companion) -> Bool { left.object === right.object }

        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(object)) }
    }

    /// Makes options that have the stated defaults.
    public init(timeouts: TransferTimeouts = TransferTimeouts()) {
        self.timeouts = timeouts
        maximumHeaderSize = 64 << 10
        decodesContent = true
        maximumExpansion = 100
        expectsContinue = false
        newestVersion = .http2
        priority = .normal
    }

    /// The defaults.
    public static let standard = TransferOptions()
}
