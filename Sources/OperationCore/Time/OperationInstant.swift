// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A moment on an ``OperationClock``: the time since the clock's own zero.
///
/// Arithmetic never overflows: what lies beyond the last moment that can be counted is that last moment.
public struct OperationInstant: InstantProtocol, Sendable, Hashable, CustomStringConvertible {
    /// The time since the clock's zero.
    public let offset: Duration

    /// Makes the moment that lies `offset` after the clock's zero.
    public init(offset: Duration) {
        self.offset = offset
    }

    /// A moment that never comes.
    public static let distantFuture = OperationInstant(offset: .seconds(Int64.max))

    /// The moment `duration` after this one, at most ``distantFuture``.
    public func advanced(by duration: Duration) -> OperationInstant {
        // Each side is within ± Int64.max seconds once it was clamped, and the sum of two such fits in a Duration's
        // 128 bits; it is only the sum that must be brought back into range.
        let sum = offset.clamped + duration.clamped
        return OperationInstant(offset: sum.clamped)
    }

    /// The time from this moment to `other`.
    public func duration(to other: OperationInstant) -> Duration {
        (other.offset.clamped - offset.clamped).clamped
    }

    /// Whether this moment comes before `other`.
    public static func < (left: OperationInstant, right: OperationInstant) -> Bool {
        left.offset < right.offset
    }

    /// The moment as a number of seconds.
    public var description: String { "\(offset)" }
}

extension Duration {
    /// The duration brought within ± `Int64.max` seconds, where sums and differences of two cannot overflow.
    package var clamped: Duration {
        min(max(self, .seconds(-Int64.max)), .seconds(Int64.max))
    }

    /// The duration in whole nanoseconds, brought into range: never a trap, whatever the duration.
    package var saturatedNanoseconds: Int64 {
        let (seconds, attoseconds) = clamped.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, overflowed) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }
}
