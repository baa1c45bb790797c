// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Writes down events in the order in which they happen, from any thread, and lets a test wait for them.
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

    /// Makes an empty recorder.
    public init() {}

    /// What happened so far.
    public var events: [Event] { state.withLock { $0.events } }

    /// How many events happened so far.
    public var count: Int { state.withLock { $0.events.count } }

    /// Forgets what happened so far; those who wait for a number of events count anew.
    ///
    /// Events are let go of after the lock: the end of one may be the next.
    public func forget() { _ = state.withLock { exchange(&$0.events, with: []) } }

    /// How many wait for events.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Writes down an event.
    public func record(_ event: Event) {
        let passing = state.withLock { state in
            state.events.append(event)
            return state.waiting.takeAll(at: state.events.count)
        }
        for waiter in passing { waiter.pass() }
    }

    /// Waits until at least `count` events happened, and returns all that did.
    ///
    /// Where its task is cancelled, as by the time limit of a test, it returns what there is.
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
