// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How much of its time an attempt has left: a pure value, told the time.
///
/// It runs from the preparation until the response is complete, and only while the attempt may go on.
package struct AttemptTime: Sendable, Equatable {
    private var left: Duration?
    private var since: OperationInstant?

    package init() {}

    /// When it will be over if nothing happens before; nil if it has no end, or stands still.
    package var end: OperationInstant? {
        guard let left, let since else { return nil }
        return since.advanced(by: left)
    }

    /// An attempt begins.
    package mutating func begin(_ limit: Duration?, now: OperationInstant, isSuspended: Bool) {
        left = limit
        since = isSuspended ? nil : now
    }

    /// Whether it has an end.
    package var isLimited: Bool { left != nil }

    /// No more than that is left of it from now on.
    package mutating func shorten(to limit: Duration, now: OperationInstant, isSuspended: Bool) {
        let rest = end.map { now.duration(to: $0) } ?? left ?? limit
        begin(min(rest, limit), now: now, isSuspended: isSuspended)
    }

    /// The attempt may not go on.
    package mutating func suspend(now: OperationInstant) {
        guard let since, let limit = left else { return }
        left = limit - max(since.duration(to: now), .zero)
        self.since = nil
    }

    /// It may.
    package mutating func resume(now: OperationInstant) {
        // Between two attempts there is no time that could run.
        if left != nil, since == nil { since = now }
    }

    /// The attempt is over, or nothing is to be waited for any more.
    package mutating func stop() { (left, since) = (nil, nil) }
}
