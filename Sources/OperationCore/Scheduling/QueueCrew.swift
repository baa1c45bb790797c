// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How many threads work for a queue, and how many may.
///
/// As many as there are cores, or as the queue is wide if that is less. Bodies that wait through our own calls are
/// replaced at once. Where bodies block in another way, nothing begins although something could: seen for a moment, the
/// number doubles.
struct QueueCrew {
    /// Threads that work for the queue, without those whose bodies wait.
    var workers = 0
    /// Whether somebody looks from time to time if the queue stands still.
    private(set) var isWatched = false

    private var base = 1
    private var limit = 1
    private var most = 1
    private var startsSeen: UInt64 = 0

    /// How many threads bodies that block may take up beyond those that work.
    private static let mostThreads = 64

    init(width: Int?) {
        setWidth(width)
    }

    mutating func setWidth(_ width: Int?) {
        base = min(width ?? .max, max(ProcessInfo.processInfo.activeProcessorCount, 1))
        most = min(width ?? .max, Self.mostThreads)
        limit = base
    }

    /// Counts one more thread in, if there may be one more.
    mutating func join() -> Bool {
        guard workers < limit else { return false }
        workers += 1
        return true
    }

    /// How many threads there may be just now.
    var mostAtOnce: Int { limit }

    /// Whether there may be no more threads just now.
    var isFull: Bool { workers >= limit }

    /// Whether a thread that has finished something may look for more.
    var mayGoOn: Bool { workers <= limit }

    mutating func leave() {
        workers -= 1
        if workers < base { limit = base }
    }

    /// Whether a watch is to be set, because there is more to do than threads.
    mutating func beginWatch() -> Bool {
        guard !isWatched, limit < most else { return false }
        isWatched = true
        return true
    }

    /// Looks whether the queue stood still since the last look; returns how many threads come in addition.
    mutating func look(starts: UInt64, canStart: Bool) -> Int {
        guard canStart, limit < most else {
            isWatched = false
            return 0
        }
        defer { startsSeen = starts }
        guard starts == startsSeen else { return 0 }
        let more = min(max(limit, 1), most - limit)
        limit += more
        let joining = max(limit - workers, 0)
        workers += joining
        return joining
    }
}
