// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A schedule for bytes that limits the number of bytes per second, as a value that receives the current time.
///
/// Each portion of bytes reserves the next free period, whose length depends on the number of bytes. Up to a tenth of a
/// second of unused time can be caught up, so that no burst follows a pause.
struct RateLine: Sendable {
    static let forgiveness = Duration.milliseconds(100)

    private let bytesPerSecond: Double
    private var freeFrom: OperationInstant?

    init(bytesPerSecond: Int) {
        self.bytesPerSecond = Double(max(bytesPerSecond, 1))
    }

    /// Reserves time for received bytes, and returns the pause before more bytes, or nil if no pause is necessary.
    mutating func take(_ count: Int, at now: OperationInstant) -> Duration? {
        let earliest = now.advanced(by: .zero - Self.forgiveness)
        let start = max(freeFrom ?? earliest, earliest)
        let end = start.advanced(by: .seconds(Double(count) / bytesPerSecond))
        freeFrom = end
        let pause = now.duration(to: end)
        return pause > .zero ? pause : nil
    }
}
