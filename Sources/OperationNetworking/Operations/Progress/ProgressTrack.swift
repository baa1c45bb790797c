// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// One direction of a transfer: what was counted, and what was told of it.
struct ProgressTrack: Sendable {
    private(set) var count: Int64 = 0
    private(set) var total: Int64?
    private var told: Int64 = 0
    private var toldTotal: Int64?
    private var toldAt: OperationInstant?

    var progress: TransferProgress { TransferProgress(completedBytes: count, totalBytes: total) }

    /// The same count, of which nothing was told yet.
    var untold: ProgressTrack {
        var track = ProgressTrack()
        (track.count, track.total) = (count, total)
        return track
    }

    /// A body of so many bytes begins, maybe not for the first time.
    mutating func expect(_ total: Int64?) {
        self.total = total.map { max($0, count) }
    }

    mutating func reach(_ count: Int64) {
        self.count = max(self.count, count)
        if let total, total < self.count { self.total = self.count }
    }

    /// The body is complete, so that the whole is known, whatever was expected.
    mutating func complete() { total = count }

    /// What is to be told now, if it is worth it.
    mutating func report(_ pacing: ProgressPacing, isLast: Bool, now: OperationInstant) -> TransferProgress? {
        guard count > told || (isLast && count > 0 && total != toldTotal) else { return nil }
        if !isLast {
            let step = pacing.smallestStep > 1 ? max(pacing.smallestStep, (total ?? 0) / 100) : 1
            guard told == 0 || count - told >= step || count == total else { return nil }
            if let toldAt, pacing.interval > .zero, toldAt.duration(to: now) < pacing.interval { return nil }
        }
        told = count
        toldTotal = total
        toldAt = now
        return progress
    }
}
