// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// For how long a task was held back, by the moments at which that was said and not by those at which its session came by.
///
/// Moments are nanoseconds of the session's clock.
package struct PauseClock: Sendable {
    /// When the present pause began; nil if there is none.
    package private(set) var since: Int64?
    /// How long those were that are over.
    package private(set) var past: Int64 = 0

    package init() {}

    /// It is held back from now on, or no longer.
    package mutating func set(_ isPaused: Bool, at now: Int64) {
        guard isPaused != (since != nil) else { return }
        if let since { past += max(now - since, 0) }
        since = isPaused ? now : nil
    }

    /// How long it was held back until now.
    package func sum(at now: Int64) -> Int64 {
        past + (since.map { max(now - $0, 0) } ?? 0)
    }
}
