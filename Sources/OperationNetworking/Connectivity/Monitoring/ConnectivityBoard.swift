// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Where a monitor writes what it knows, and from which its observers are told.
///
/// A monitor of your own has one, and passes the two requirements of ``ConnectivityMonitor`` on to it:
///
/// ```swift
/// final class MyMonitor: ConnectivityMonitor {
///     private let board = ConnectivityBoard(.unknown)
///
///     var connectivity: Connectivity { board.connectivity }
///
///     func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
///         board.observe(for: self, body)
///     }
///
///     func cableWasPulled() { board.write(.unsatisfied) }
/// }
/// ```
public final class ConnectivityBoard: Sendable {
    private struct State {
        var present: Connectivity
        var listeners: [UInt64: Listener] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state: Locked<State>

    /// Makes a board with what is known at first.
    public init(_ connectivity: Connectivity) {
        state = Locked(State(present: connectivity))
    }

    /// What was written last.
    public var connectivity: Connectivity { state.withLock { $0.present } }

    /// How many are told of changes; for tests.
    package var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Writes what is known now, and tells those who want to know, on this thread.
    public func write(_ connectivity: Connectivity) {
        let listeners: [Listener] = state.withLock { state in
            guard state.present != connectivity else { return [] }
            state.present = connectivity
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.look(at: self) }
    }

    /// Has `body` told of what is known now and later; the token keeps the monitor.
    public func observe(
        for monitor: any ConnectivityMonitor, _ body: @escaping @Sendable (Connectivity) -> Void
    ) -> ConnectivityObservation {
        let listener = Listener(body)
        let number = state.withLock { state in
            state.lastNumber += 1
            state.listeners[state.lastNumber] = listener
            return state.lastNumber
        }
        let observation = ConnectivityObservation { [self] in
            // What the closure holds goes here, outside the lock.
            _ = state.withLock { $0.listeners.removeValue(forKey: number) }
            listener.end()
            withExtendedLifetime(monitor) {}
        }
        listener.look(at: self)
        return observation
    }

    /// One who is told: by one thread at a time, which looks again if there was news meanwhile.
    private final class Listener: Sendable {
        private struct State {
            var body: (@Sendable (Connectivity) -> Void)?
            var told: Connectivity?
            var telling = RepeatFlag()
        }

        private let state: Locked<State>

        init(_ body: @escaping @Sendable (Connectivity) -> Void) {
            state = Locked(State(body: body))
        }

        func end() {
            let body = state.withLock { $0.body.take() }
            withExtendedLifetime(body) {}
        }

        /// What is told is read after it is known who tells it, so that two threads cannot tell it in the wrong order.
        func look(at board: ConnectivityBoard) {
            state.runRounds(of: \.telling) {
                let present = board.connectivity
                let body: (@Sendable (Connectivity) -> Void)? = state.withLock { state in
                    guard state.told != present else { return nil }
                    state.told = present
                    return state.body
                }
                body?(present)
            }
        }
    }
}
