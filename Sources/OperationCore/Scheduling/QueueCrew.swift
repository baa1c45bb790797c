// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How many threads work for a queue, and how many may.
///
/// As many as there are cores, or as the queue is wide if that is less. Bodies that wait through our own calls are
/// replaced at once. Where nothing begins for a moment although something could, somebody looks whether the bodies block
/// in another way or compute: if the process leaves cores idle, the number of threads doubles, whatever the width, for a
/// body may block whose operation has ended. If it does not, more threads would only get into each other's way. Then one
/// comes from time to time, ever less often, for it may be others that compute while the bodies of this queue block.
package struct QueueCrew {
    /// What is known at one look.
    package struct Look {
        /// How often something began.
        let starts: UInt64
        /// How much processor time the process used, in nanoseconds.
        let usedTime: UInt64
        /// The time, in nanoseconds.
        let now: UInt64

        package init(starts: UInt64, usedTime: UInt64, now: UInt64) {
            self.starts = starts
            self.usedTime = usedTime
            self.now = now
        }
    }

    /// Threads that work for the queue, without those whose bodies wait.
    package var workers = 0
    /// Whether somebody looks from time to time if the queue stands still.
    package private(set) var isWatched = false

    private let cores: Int
    private var base = 1
    private var limit = 1
    private var last: Look?
    /// Since when nothing began.
    private var standsSince: UInt64 = 0
    private var patience = firstPatience

    /// How many threads there may be at most, without those whose bodies wait.
    package static let mostThreads = 64

    /// How long nothing begins while all cores are busy before one more thread comes; twice as long each time.
    private static let firstPatience: UInt64 = 250_000_000

    package init(width: Int?, cores: Int = ProcessInfo.processInfo.activeProcessorCount) {
        self.cores = max(cores, 1)
        setWidth(width)
    }

    mutating func setWidth(_ width: Int?) {
        base = min(width ?? .max, cores)
        resetLimit()
    }

    private mutating func resetLimit() {
        limit = base
        patience = Self.firstPatience
    }

    /// Counts one more thread in, if there may be one more.
    package mutating func join() -> Bool {
        guard workers < limit else { return false }
        workers += 1
        return true
    }

    /// How many threads there may be just now.
    package var mostAtOnce: Int { limit }

    /// Whether there may be no more threads just now.
    var isFull: Bool { workers >= limit }

    /// Whether a thread that has finished something may look for more.
    package var mayGoOn: Bool { workers <= limit }

    package mutating func leave() {
        workers -= 1
        if workers < base { resetLimit() }
    }

    /// Whether a watch is to be set, because there is more to do than threads.
    package mutating func beginWatch() -> Bool {
        guard !isWatched else { return false }
        isWatched = true
        last = nil
        return true
    }

    /// Looks whether the queue stood still since the last look; returns how many threads come in addition.
    package mutating func look(_ look: Look, canStart: Bool) -> Int {
        guard canStart else {
            isWatched = false
            return 0
        }
        guard let old = exchange(&last, with: look) else {
            standsSince = look.now
            return 0
        }
        let areCoresBusy = areCoresBusy(from: old, to: look)
        if look.starts != old.starts {
            standsSince = look.now
            // What blocked does so no more: threads that are too many leave after what they run.
            if areCoresBusy { limit = base + (limit - base) / 2 }
            return 0
        }
        grow(areCoresBusy, look.now)
        let joining = max(limit - workers, 0)
        workers += joining
        return joining
    }

    private mutating func grow(_ areCoresBusy: Bool, _ now: UInt64) {
        // A thread that may come has not: it was not asked for.
        if workers < limit { return }
        if !areCoresBusy {
            limit = min(limit * 2, max(Self.mostThreads, base))
        } else if now &- standsSince >= patience {
            limit = min(limit + 1, max(Self.mostThreads, base))
            standsSince = now
            patience *= 2
        }
    }

    /// Whether less than half a core, or an eighth of all, was left idle.
    private func areCoresBusy(from old: Look, to new: Look) -> Bool {
        let time = Double(new.now &- old.now), used = Double(new.usedTime &- old.usedTime)
        let idle = time * Double(cores) - used
        return idle < max(time / 2, time * Double(cores) / 8)
    }
}
