// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A meter for the current rate, which averages the last seconds so that the rate is stable and up to date.
struct RateMeter: Sendable {
    private struct Sample {
        let time: OperationInstant
        let count: Int64
    }

    /// The duration over which the meter averages.
    private static let window = Duration.seconds(4)
    /// The minimum duration between samples.
    private static let step = Duration.milliseconds(200)

    private var samples: [Sample] = []

    /// Records the current amount.
    mutating func note(_ count: Int64, at time: OperationInstant) {
        if let last = samples.last {
            // If the file on the server has changed, the received amount starts at zero again.
            if count < last.count { samples = [] }
            if samples.count > 1, samples[samples.count - 2].time.duration(to: time) < Self.step {
                samples.removeLast()
            }
        }
        samples.append(Sample(time: time, count: count))
        while samples.count > 2, samples[1].time.duration(to: time) >= Self.window { samples.removeFirst() }
    }

    /// Returns the amount per second, or nil if the meter has too few samples.
    func rate(at now: OperationInstant) -> Double? {
        guard let first = samples.first, let last = samples.last, last.count >= first.count else { return nil }
        // If the amount no longer grows, the time still passes, and the rate decreases.
        let seconds = first.time.duration(to: now).inSeconds
        guard seconds >= 0.3 else { return nil }
        return (Double(last.count) - Double(first.count)) / seconds
    }
}

extension Duration {
    /// The duration as a number of seconds.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
