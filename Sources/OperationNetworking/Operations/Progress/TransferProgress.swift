// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How many bytes of a body were sent or received.
public struct TransferProgress: Sendable, Hashable, CustomStringConvertible {
    /// How many there are so far.
    ///
    /// It never becomes smaller, not even when an attempt is repeated.
    public let completedBytes: Int64
    /// How many there will be; nil if nobody knows.
    public let totalBytes: Int64?

    /// Makes one.
    public init(completedBytes: Int64, totalBytes: Int64?) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }

    /// From 0 to 1; nil if nobody knows.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes > 0 ? min(Double(completedBytes) / Double(totalBytes), 1) : 1
    }

    /// `12 of 100 bytes`.
    public var description: String { "\(completedBytes) of \(totalBytes.map { "\($0)" } ?? "?") bytes" }
}

/// How often progress is told.
public struct ProgressPacing: Sendable, Hashable {
    /// So many bytes must have come since the last report: 16 KiB, or one hundredth of the whole if that is more.
    ///
    /// With 1 every portion that comes is told, however large the whole is.
    public var smallestStep: Int64
    /// So much time must have passed since the last report: none.
    public var interval: Duration

    /// Makes a pace.
    ///
    /// Whatever it is, the end of a body is told.
    public init(smallestStep: Int64 = 16 << 10, interval: Duration = .zero) {
        self.smallestStep = smallestStep
        self.interval = interval
    }
}
