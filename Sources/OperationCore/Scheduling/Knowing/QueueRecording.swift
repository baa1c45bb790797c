// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is recorded of a queue.
public struct QueueRecording: Sendable {
    /// How many operations and closures are remembered at most: 10,000 unless you set another number.
    ///
    /// The oldest give way.
    public var limit: Int
    /// The clock on which their times are read.
    public var clock: any OperationClock

    /// Sets what is recorded.
    public init(limit: Int = 10_000, clock: any OperationClock = .system) {
        self.limit = max(limit, 1)
        self.clock = clock
    }
}
