// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// When bytes may come, so that no more than so many come in a second: a value that is told the time.
///
/// Each portion takes the next stretch of time that is free, as long as its bytes are to last. Of time in which nothing came
/// a tenth of a second is made up for, so that a pause is not followed by a flood.
struct RateLine: Sendable {
    static let forgiveness = Duration.milliseconds(100)

    private let bytesPerSecond: Double
    private var freeFrom: OperationInstant?

    init(bytesPerSecond: Int) {
        self.bytesPerSecond = Double(max(bytesPerSecond, 1))
    }

    /// So many bytes came: how long until more may come; nil if they may at once.
    mutating func take(_ count: Int, at now: OperationInstant) -> Duration? {
        let earliest = now.advanced(by: .zero - Self.forgiveness)
        let start = max(freeFrom ?? earliest, earliest)
        let end = start.advanced(by: .seconds(Double(count) / bytesPerSecond))
        freeFrom = end
        let pause = now.duration(to: end)
        return pause > .zero ? pause : nil
    }
}
