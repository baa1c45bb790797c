// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Adds up how far the children of a group have come: a pure value.
///
/// What it takes to begin late is counted always; all else only from the moment in which somebody asks.
package struct GroupMeter: Sendable {
    private var added = 0.0
    private var ended = 0.0
    /// The number of children that have not ended.
    private var openCount = 0
    private var expected = 0.0
    /// Whether a sequence may bring more children, of which the number is not known: then one more is expected.
    package var isOpen = false
    /// The weights other than one, of children that have not ended.
    private var weights: [GroupMachine.Slot: Double] = [:]
    /// Whether somebody asked.
    package var isOn = false
    /// How far the children are that run, as far as they say.
    private var marks: [GroupMachine.Slot: Double] = [:]
    /// The sum of the marks, each by its weight.
    private var partial = 0.0
    private var isComplete = false
    /// What was done when the group failed or was cancelled: what is cancelled with it is no progress.
    private var frozen: Double?
    /// What the group around it was told.
    private var told = 0.0

    package init() {}

    /// A weight that can be added up: what is no number, or below zero, counts nothing.
    private static func usable(_ weight: Double) -> Double { weight > 0 ? min(weight, 1e15) : 0 }

    /// A child was added.
    package mutating func add(_ slot: GroupMachine.Slot, weight: Double) {
        let weight = weight == 1 ? 1 : Self.usable(weight)
        added += weight
        openCount += 1
        if weight != 1 { weights[slot] = weight }
    }

    /// So much will be added in all.
    package mutating func expect(_ weight: Double) { expected = Self.usable(weight) }

    /// The child ended.
    package mutating func end(_ slot: GroupMachine.Slot) {
        let weight = weights.isEmpty ? 1 : weights.removeValue(forKey: slot) ?? 1
        ended += weight
        openCount -= 1
        // The weights were added in another order, so the sums may differ by what was rounded.
        if openCount == 0 { ended = added }
        if marks.isEmpty { return }
        if let mark = marks.removeValue(forKey: slot) { partial -= mark * weight }
        // Nothing is left of what rounding may have left over.
        if marks.isEmpty { partial = 0 }
    }

    /// The child has come so far, or farther: it never runs backwards.
    ///
    /// - Returns: Whether that is news.
    package mutating func mark(_ slot: GroupMachine.Slot, _ fraction: Double) -> Bool {
        let old = marks[slot] ?? 0
        guard isOn, fraction > old else { return false }
        let new = min(fraction, 1)
        marks[slot] = new
        partial += (new - old) * (weights[slot] ?? 1)
        return new > old
    }

    /// The group has its result: nothing is left to do.
    package mutating func complete() { isComplete = true }

    /// The children are to be cancelled: unless there is a result after all, it stays as it is.
    package mutating func freeze() { if frozen == nil { frozen = ended + partial } }

    package var progress: GroupProgress {
        let total = isOpen && expected == 0 ? added + 1 : max(added, expected)
        return GroupProgress(
            completedWeight: isComplete ? total : min(frozen ?? ended + partial, total), totalWeight: total)
    }

    /// What the group around it is to be told: not each little step, for there may be many groups around that.
    package mutating func takeNews() -> Double? {
        let fraction = progress.fraction
        guard fraction - told >= 0.001 || fraction == 1 && told < 1 else { return nil }
        told = fraction
        return fraction
    }
}
