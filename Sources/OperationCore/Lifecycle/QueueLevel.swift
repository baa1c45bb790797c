// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The urgency of an entry in a queue, where a smaller rank is more urgent.
struct QueueLevel: Comparable {
    let rank: UInt8

    /// A body that holds a thread waits for this entry.
    static let awaited = QueueLevel(rank: 0)
    static let veryHigh = QueueLevel(rank: 1)
    static let high = QueueLevel(rank: 2)
    static let normal = QueueLevel(rank: 3)
    static let low = QueueLevel(rank: 4)
    static let veryLow = QueueLevel(rank: 5)

    static let count = 6

    /// Returns whether the left level is less urgent than the right one.
    static func < (left: QueueLevel, right: QueueLevel) -> Bool { left.rank > right.rank }

    init(_ priority: Operation.QueuePriority) {
        switch priority.rawValue {
        case Operation.QueuePriority.veryHigh.rawValue...: self = .veryHigh
        case 1...: self = .high
        case 0: self = .normal
        case Operation.QueuePriority.low.rawValue...: self = .low
        default: self = .veryLow
        }
    }

    /// Creates the level of a quality of service, for an operation that has no priority of its own.
    init(_ quality: QualityOfService) {
        switch quality {
        case .userInteractive: self = .veryHigh
        case .userInitiated: self = .high
        case .utility: self = .low
        case .background: self = .veryLow
        default: self = .normal
        }
    }

    /// Creates the level that results from a priority and a quality of service.
    init(_ priority: Operation.QueuePriority, _ quality: QualityOfService) {
        let level = QueueLevel(priority)
        self = level == .normal ? QueueLevel(quality) : level
    }

    private init(rank: UInt8) { self.rank = rank }
}
