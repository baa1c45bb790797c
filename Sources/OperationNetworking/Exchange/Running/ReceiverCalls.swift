// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Calls the receiver of an exchange, whose events come from several threads: one call at a time, and none after the
/// last.
package final class ReceiverCalls: Sendable {
    package typealias Call = @Sendable (any NetworkReceiver) -> Void

    private struct State {
        var receiver: (any NetworkReceiver)?
        var isBusy = false
        /// Nothing but the last call is made any more.
        var isClosed = false
        /// The last call was made, or waits to be.
        var isEnded = false
        var waiting = Fifo<Call>()
    }

    private let state: Locked<State>

    package init(_ receiver: any NetworkReceiver) {
        state = Locked(State(receiver: receiver))
    }

    /// Makes a call now, or after the one that is being made.
    package func make(_ call: @escaping Call) {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isClosed else { return nil }
            return Self.enter(&state, call)
        }
        run(call, receiver)
    }

    /// Makes a call now; false if another is being made, or the last was.
    func makeNow(_ call: (any NetworkReceiver) -> Void) -> Bool {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isClosed, !state.isBusy else { return nil }
            state.isBusy = true
            return state.receiver
        }
        guard let receiver else { return false }
        call(receiver)
        makeWaiting()
        return true
    }

    /// From now on nothing but the last call begins; those that wait are dropped.
    package func dropRest() {
        // What the calls hold is let go of after the lock.
        var dropped = Fifo<Call>()
        state.withLock { state in
            guard !state.isEnded else { return }
            state.isClosed = true
            swap(&dropped, &state.waiting)
        }
    }

    /// Makes the last call, after those that wait.
    package func end(_ call: @escaping Call) {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isEnded else { return nil }
            (state.isClosed, state.isEnded) = (true, true)
            return Self.enter(&state, call)
        }
        run(call, receiver)
    }

    private static func enter(_ state: inout State, _ call: @escaping Call) -> (any NetworkReceiver)? {
        if state.isBusy {
            state.waiting.append(call)
            return nil
        }
        state.isBusy = true
        return state.receiver
    }

    private func run(_ call: Call, _ receiver: (any NetworkReceiver)?) {
        guard let receiver else { return }
        call(receiver)
        makeWaiting()
    }

    private func makeWaiting() {
        while let (call, receiver) = next() { call(receiver) }
    }

    private func next() -> (Call, any NetworkReceiver)? {
        // The receiver is the user's: let go of after the lock.
        var released: (any NetworkReceiver)?
        return state.withLock { state in
            if let call = state.waiting.popFirst(), let receiver = state.receiver { return (call, receiver) }
            state.isBusy = false
            if state.isEnded { swap(&released, &state.receiver) }
            return nil
        }
    }
}
