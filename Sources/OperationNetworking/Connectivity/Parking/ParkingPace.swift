// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How operations go on when the network returns: one after another, so that they do not take it by storm.
public struct ParkingPace: Sendable, Hashable {
    /// How many go on in a second, on average: 20.
    ///
    /// Below one in a thousand seconds it is that.
    public var perSecond: Double
    /// How long the network must have been back before the first goes on, and up to twice that by chance: half a
    /// second.
    ///
    /// A network that comes and goes within that time wakes nobody. The chance is there for the many machines whose
    /// network returns at the same moment.
    public var settling: Duration

    /// Makes a pace.
    public init(perSecond: Double = 20, settling: Duration = .milliseconds(500)) {
        self.perSecond = perSecond
        self.settling = settling
    }

    /// Twenty in a second, after half a second to a second.
    public static let standard = ParkingPace()

    private var rate: Double { perSecond > 0.001 ? min(perSecond, 1e6) : 0.001 }

    /// How many go on together: more than one where they would follow each other faster than timers can be told apart.
    var batch: Int { max(Int(rate / 100), 1) }

    /// The time from one to the next, which chance (from 0 up to 1) makes up to a half shorter or longer.
    func step(_ chance: Double) -> Duration {
        .nanoseconds(Int64(Double(batch) / rate * (0.5 + chance.asChance) * 1e9))
    }

    /// The time from the network's return to the first.
    func delay(_ chance: Double) -> Duration { max(settling, .zero).clamped * (1 + chance.asChance) }
}
