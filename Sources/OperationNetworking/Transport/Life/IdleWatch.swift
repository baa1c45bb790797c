// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// When a session has had nothing to do for so long that it closes what it kept for the next request.
///
/// Moments are nanoseconds of the system's monotonic clock.
package struct IdleWatch: Sendable {
    private enum State {
        /// There is something to do, or nothing is kept.
        case off
        case idle(since: Int64)
    }

    private let lifetime: Int64
    private var state = State.off

    package init(lifetime: Duration) {
        // Not so long that it could not be added to a moment.
        self.lifetime = min(max(lifetime.saturatedNanoseconds, 0), 1 << 60)
    }

    /// The moment at which `look` must be called again; nil if there is none.
    package var due: Int64? {
        if case .idle(let since) = state { since + lifetime } else { nil }
    }

    /// There is something to do.
    package mutating func wake() { state = .off }

    /// There is nothing to do; true if that has been so for long enough, and then it begins anew.
    package mutating func look(at now: Int64) -> Bool {
        guard case .idle(let since) = state else {
            state = .idle(since: now)
            return false
        }
        guard now - since >= lifetime else { return false }
        state = .off
        return true
    }
}
