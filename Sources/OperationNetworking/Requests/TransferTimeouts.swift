// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How long the phases of one attempt may take; nil means without end.
///
/// The wait for a slot in the session does not count, and neither does the time for which a task is suspended or its
/// receiver holds it. They are kept to the millisecond.
public struct TransferTimeouts: Sendable, Hashable {
    /// For a connection, from its beginning until it is ready, name look-up and TLS included: 10 seconds.
    ///
    /// The wait for a place on a connection that carries others does not count.
    public var connect: Duration?
    /// From the ready connection until the first byte of the response, as long as no byte of the request's body moves:
    /// 60 seconds.
    public var firstByte: Duration?
    /// The longest silence while a body moves, either way: 60 seconds.
    public var idle: Duration?
    /// The whole attempt: without end.
    public var total: Duration?

    /// Makes a set of limits.
    public init(
        connect: Duration? = .seconds(10), firstByte: Duration? = .seconds(60), idle: Duration? = .seconds(60),
        total: Duration? = nil
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
    }

    /// No limits at all.
    public static let none = TransferTimeouts(connect: nil, firstByte: nil, idle: nil, total: nil)
}
