// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Synchronization

/// Whether somebody wants the program to end, by which signal, and what is to be cancelled then.
final class Interruption: Sendable {
    private struct State {
        var signal: Int32?
        var cancel: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// The first signal that came.
    var signal: Int32? { state.withLock { $0.signal } }

    /// A signal came.
    func note(_ signal: Int32) {
        let cancel = state.withLock { state in
            state.signal = state.signal ?? signal
            return state.cancel
        }
        cancel?()
    }

    /// Says what is cancelled by a signal, also by one that came before.
    func cancels(_ cancel: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            state.cancel = cancel
            return state.signal != nil
        }
        if isLate { cancel() }
    }
}
