// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which of several requests goes first.
///
/// Where more requests are made than a host may get at a time they stand in a line of the session: those of a higher
/// priority leave it first, and nobody stands in it for ever. Over HTTP/2 it is the weight of the stream as well, by which a
/// server may share out its answers.
public struct TransferPriority: Sendable, Hashable, Comparable {
    /// From 0, the lowest.
    let rank: Int

    /// For what nobody waits for.
    public static let low = TransferPriority(rank: 0)
    /// What requests have unless they are given another.
    public static let normal = TransferPriority(rank: 1)
    /// For what somebody waits for.
    public static let high = TransferPriority(rank: 2)

    static let count = 3

    /// Whether one is lower than the other.
    public static func < (one: TransferPriority, other: TransferPriority) -> Bool { one.rank < other.rank }

    /// The weight of a stream of HTTP/2, from 1 to 256; 16 is what all have.
    package var streamWeight: Int { [2, 16, 128][rank] }

    /// The priority of a task of Foundation's.
    var foundation: Float { [0.25, 0.5, 0.75][rank] }
}
