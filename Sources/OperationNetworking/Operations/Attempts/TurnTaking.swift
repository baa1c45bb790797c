// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Sees to it that the second of two pieces of news is told after the first, though another thread may come with it before.
final class TurnTaking: Sendable {
    private enum State {
        case open
        case waiting(@Sendable () -> Void)
        case firstIsTold
    }

    private let state = Locked(State.open)

    func first(_ tell: () -> Void) {
        tell()
        if case .waiting(let tellSecond) = state.withLock({ exchange(&$0, with: .firstIsTold) }) { tellSecond() }
    }

    func second(_ tell: @escaping @Sendable () -> Void) {
        let mayTell = state.withLock { state in
            if case .firstIsTold = state { return true }
            state = .waiting(tell)
            return false
        }
        if mayTell { tell() }
    }
}
