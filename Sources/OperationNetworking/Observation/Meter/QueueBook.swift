// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What a meter knows of queues by their names: a pure value.
///
/// A counter never goes down: what the queues of a name counted that are gone stays with the name.
struct QueueBook: Sendable {
    /// How many operations ended, and how.
    struct Ends: Sendable, Equatable {
        var finished = 0
        var failed = 0
        var cancelled = 0

        init() {}

        init(_ counts: QueueCounts) {
            (finished, failed, cancelled) = (counts.finished, counts.failed, counts.cancelled)
        }

        static func + (left: Ends, right: Ends) -> Ends {
            var sum = left
            sum.finished += right.finished
            sum.failed += right.failed
            sum.cancelled += right.cancelled
            return sum
        }
    }

    private let limit: Int
    /// How many queues of each name there are.
    private var living: [String: Int] = [:]
    /// What those counted that are gone.
    private(set) var ended: [String: Ends] = [:]

    init(limit: Int) { self.limit = max(limit, 0) }

    /// There is one more of that name; returns the name under which it is counted.
    mutating func add(_ name: String) -> String {
        let isKnown = living[name] != nil || ended[name] != nil
        let label = isKnown || Set(living.keys).union(ended.keys).count < limit ? name : MeterBook.other
        living[label, default: 0] += 1
        return label
    }

    /// One that is counted under that name is gone, and had counted so much.
    mutating func remove(_ label: String, _ ends: Ends) {
        let left = (living[label] ?? 1) - 1
        living[label] = left > 0 ? left : nil
        // One that did nothing leaves nothing.
        if ends != Ends() { ended[label] = (ended[label] ?? Ends()) + ends }
    }
}
