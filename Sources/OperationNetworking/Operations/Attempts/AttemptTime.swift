// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// How much of its time an attempt has left: a pure value, told the time.
///
/// It runs only while the attempt may go on.
struct AttemptTime: Sendable, Equatable {
    private var left: Duration?
    private var since: OperationInstant?

    /// When it will be over if nothing happens before; nil if it has no end, or stands still.
    var end: OperationInstant? {
        guard let left, let since else { return nil }
        return since.advanced(by: left)
    }

    /// An attempt begins.
    mutating func begin(_ limit: Duration?, now: OperationInstant, isSuspended: Bool) {
        left = limit
        since = isSuspended ? nil : now
    }

    /// The attempt may not go on.
    mutating func suspend(now: OperationInstant) {
        guard let since, let limit = left else { return }
        left = limit - max(since.duration(to: now), .zero)
        self.since = nil
    }

    /// It may.
    mutating func resume(now: OperationInstant) {
        if since == nil { since = now }
    }

    /// The attempt is over.
    mutating func stop() { left = nil }
}
