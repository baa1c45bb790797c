// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A thread-safe recorder that stores events in order and lets a test wait for them.
///
/// ```swift
/// import OperationNetworking
/// import OperationTestKit
///
/// func decisions(of operation: NetworkDataOperation<Int>) async -> [RetryReason] {
///     let events = EventRecorder<RetryEvent>()
///     operation.retryHandler = { events.record($0) }
///     operation.start()
///     return await events.events(atLeast: 2).map(\.reason)
/// }
/// ```
public final class EventRecorder<Event: Sendable>: Sendable {
    private struct State {
        var events: [Event] = []
        var waiting: [Waiter] = []
    }

    private let state = Locked(State())

    /// Creates an empty recorder.
    public init() {}

    /// The recorded events, in order.
    public var events: [Event] { state.withLock { $0.events } }

    /// The number of recorded events.
    package var count: Int { state.withLock { $0.events.count } }

    /// Removes all recorded events.
    ///
    /// Afterward, ``events(atLeast:)`` counts only new events.
    public func forget() { _ = state.withLock { exchange(&$0.events, with: []) } }

    /// The number of waiting tests.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Records an event.
    public func record(_ event: Event) {
        let passing = state.withLock { state in
            state.events.append(event)
            return state.waiting.takeAll(at: state.events.count)
        }
        for waiter in passing { waiter.pass() }
    }

    /// Waits until at least `count` events are recorded and returns all recorded events.
    ///
    /// If the current task is canceled, for example by a time limit of the test, the method returns the events that
    /// have been recorded so far, which may be fewer than `count`.
    ///
    /// - Parameter count: The number of events to wait for, including earlier events.
    public func events(atLeast count: Int) async -> [Event] {
        let waiter = Waiter(until: count)
        let isNow = state.withLock { state in
            if state.events.count >= count { return true }
            state.waiting.append(waiter)
            return false
        }
        if !isNow {
            await waiter.passage()
            state.withLock { state in state.waiting.removeAll { $0 === waiter } }
        }
        return events
    }
}
