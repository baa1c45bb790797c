// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How fast something goes on at present: measured over the last seconds, so that it neither jumps nor lags.
struct RateMeter: Sendable {
    private struct Sample {
        let time: OperationInstant
        let count: Int64
    }

    /// Over so long.
    private static let window = Duration.seconds(4)
    /// Not more often than this is a sample kept.
    private static let step = Duration.milliseconds(200)

    private var samples: [Sample] = []

    /// There are so many now.
    mutating func note(_ count: Int64, at time: OperationInstant) {
        if let last = samples.last {
            // What was received begins anew where the file has changed.
            if count < last.count { samples = [] }
            if samples.count > 1, samples[samples.count - 2].time.duration(to: time) < Self.step {
                samples.removeLast()
            }
        }
        samples.append(Sample(time: time, count: count))
        while samples.count > 2, samples[1].time.duration(to: time) >= Self.window { samples.removeFirst() }
    }

    /// How many a second; nil as long as that cannot be told.
    func rate(at now: OperationInstant) -> Double? {
        guard let first = samples.first, let last = samples.last, last.count >= first.count else { return nil }
        // Where nothing more comes, the time goes on, and the rate falls.
        let seconds = first.time.duration(to: now).inSeconds
        guard seconds >= 0.3 else { return nil }
        return (Double(last.count) - Double(first.count)) / seconds
    }
}

extension Duration {
    /// As a number of seconds.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
