// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How far the children of a group have come, each by its weight.
public struct GroupProgress: Sendable, Hashable, CustomStringConvertible {
    /// The weights of the children that ended, in whatever way, and of those that run the share that is done.
    public let completedWeight: Double
    /// The weights of all children that were added, or what was expected if that is more.
    public let totalWeight: Double

    /// Makes one, for tests of your own code.
    public init(completedWeight: Double, totalWeight: Double) {
        self.completedWeight = completedWeight
        self.totalWeight = totalWeight
    }

    /// The share that is done, from zero to one; zero while there is no child.
    public var fraction: Double {
        let share = completedWeight / totalWeight
        // What is no number is not above zero.
        return totalWeight > 0 && share > 0 ? min(share, 1) : 0
    }

    /// `37 % of 4.0`.
    public var description: String { "\(Int(fraction * 100)) % of \(totalWeight)" }
}
