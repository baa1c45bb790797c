// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How one transfer spent its time, and over which connection.
///
/// The durations are counted from the first `resume()`; nil is what did not happen or is not known.
public struct TransferMetrics: Sendable, Hashable {
    /// When the wait for a slot was over.
    public var slotGranted: Duration?
    /// When the name was looked up.
    public var nameResolved: Duration?
    /// When the connection stood.
    public var connected: Duration?
    /// When TLS had been agreed upon.
    public var secured: Duration?
    /// When the head of the request was about to be sent.
    public var requestBegan: Duration?
    /// When the first byte of the response came.
    public var firstByte: Duration?
    /// When it was over.
    public var ended: Duration?
    /// How long the task was suspended or held by its receiver.
    public var paused: Duration = .zero
    /// Whether the connection had been used before.
    public var isConnectionReused = false
    /// The version of HTTP that was spoken.
    public var version: HTTPVersion?
    /// The address that answered and its port: `127.0.0.1:80`, `[::1]:80`.
    public var remoteAddress: String?
    /// Bytes of the request's body that were sent.
    public var bodyBytesSent: Int64 = 0
    /// Bytes of the response's body as they came over the wire.
    public var bodyBytesReceived: Int64 = 0
    /// Bytes of the response's heads.
    public var headerBytesReceived: Int64 = 0

    /// Makes an empty one, for sessions of your own and for tests.
    public init() {}
}
