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
        var waiting: [(count: Int, pass: @Sendable () -> Void)] = []
    }

    private let state = Locked(State())

    /// Makes an empty recorder.
    public init() {}

    /// What happened so far.
    public var events: [Event] { state.withLock { $0.events } }

    /// How many events happened so far.
    public var count: Int { state.withLock { $0.events.count } }

    /// Forgets what happened so far; those who wait for a number of events count anew.
    public func forget() { state.withLock { $0.events = [] } }

    /// Writes down an event.
    public func record(_ event: Event) {
        let passing = state.withLock { state in
            state.events.append(event)
            let count = state.events.count
            let passing = state.waiting.filter { $0.count <= count }
            if !passing.isEmpty { state.waiting.removeAll { $0.count <= count } }
            return passing
        }
        for waiter in passing { waiter.pass() }
    }

    /// Waits until at least `count` events happened, and returns all that did.
    ///
    /// Where its task is cancelled, as by the time limit of a test, it returns what there is.
    public func events(atLeast count: Int) async -> [Event] {
        let isThere = FirstAnswer<Void>()
        let isNow = state.withLock { state in
            if state.events.count >= count { return true }
            state.waiting.append((count, { isThere.give(()) }))
            return false
        }
        if !isNow { await isThere.valueUnlessCancelled(or: ()) }
        return events
    }
}
