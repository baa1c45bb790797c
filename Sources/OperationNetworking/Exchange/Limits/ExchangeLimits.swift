// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How much a server may send, for all requests of an ``ExchangeSession``.
///
/// The sizes that only a session can enforce are handed to it with each request, where they are smaller than those of
/// the request itself.
public struct ExchangeLimits: Hashable, Sendable {
    /// The bytes of the head of a response; 64 KiB unless changed.
    public var headerBytes = 64 << 10
    /// The bytes of a body as they are handed over, decompressed; nil, unless changed, for as many as come.
    public var bodyBytes: Int64?
    /// How many times as large as what was received a decompressed body may become; 100 unless changed.
    public var expansion = 100

    /// Makes the limits that are stated.
    public init() {}

    /// The options of a request, no wider than the limits.
    func narrowed(_ options: TransferOptions) -> TransferOptions {
        var options = options
        options.maximumHeaderSize = min(options.maximumHeaderSize, max(headerBytes, 1))
        options.maximumExpansion = min(options.maximumExpansion, max(expansion, 1))
        return options
    }
}
