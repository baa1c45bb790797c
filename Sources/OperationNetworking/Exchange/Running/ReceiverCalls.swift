// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Calls the receiver of an exchange, whose events come from several threads: one call at a time, and none after the
/// last.
package final class ReceiverCalls: Sendable {
    package typealias Call = @Sendable (any NetworkReceiver) -> Void
    package typealias After = @Sendable () -> Void

    private struct State {
        var receiver: (any NetworkReceiver)?
        /// Nothing but the last call is made any more.
        var isClosed = false
        /// The last call was made, or waits to be.
        var isEnded = false
        /// The calls that wait until the one that is being made has returned.
        var waiting = DeliveryQueue<(call: Call, after: After?)>()
    }

    private let state: Locked<State>

    package init(_ receiver: any NetworkReceiver) {
        state = Locked(State(receiver: receiver))
    }

    /// Makes a call now, or after the one that is being made.
    ///
    /// - Parameter after: What the same thread does as soon as no call is being made any more.
    package func make(_ call: @escaping Call, after: After? = nil) {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isClosed else { return nil }
            return Self.enter(&state, call, after)
        }
        run(call, receiver, after)
    }

    /// Makes a call now; false if another is being made, or the last was.
    package func makeNow(_ call: (any NetworkReceiver) -> Void) -> Bool {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isClosed, state.waiting.begin() else { return nil }
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
        let dropped: Fifo<(call: Call, after: After?)>? = state.withLock { state in
            guard !state.isEnded else { return nil }
            state.isClosed = true
            return state.waiting.removeAll()
        }
        withExtendedLifetime(dropped) {}
    }

    /// Makes the last call, after those that wait.
    package func end(_ call: @escaping Call) {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isEnded else { return nil }
            (state.isClosed, state.isEnded) = (true, true)
            return Self.enter(&state, call, nil)
        }
        run(call, receiver, nil)
    }

    private static func enter(
        _ state: inout State, _ call: @escaping Call, _ after: After?
    ) -> (any NetworkReceiver)? {
        if state.waiting.begin() { return state.receiver }
        _ = state.waiting.append((call, after))
        return nil
    }

    private func run(_ call: Call, _ receiver: (any NetworkReceiver)?, _ after: After?) {
        guard let receiver else { return }
        call(receiver)
        makeWaiting()
        after?()
    }

    private func makeWaiting() {
        var afterwards: [After] = []
        while let (call, receiver, after) = next() {
            call(receiver)
            if let after { afterwards.append(after) }
        }
        for after in afterwards { after() }
    }

    private func next() -> (Call, any NetworkReceiver, After?)? {
        // The receiver is the user's: let go of after the lock.
        var released: (any NetworkReceiver)?
        return state.withLock { state in
            if let (call, after) = state.waiting.next(), let receiver = state.receiver {
                return (call, receiver, after)
            }
            if state.isEnded { swap(&released, &state.receiver) }
            return nil
        }
    }
}
