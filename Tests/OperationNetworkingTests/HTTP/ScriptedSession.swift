// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A session whose tasks perform one step at a time when the test asks, so that a test can play any order of events.
final class ScriptedSession: NetworkSession {
    enum Event: Sendable {
        case head(Int, HeaderFields)
        case bytes(Data)
    }

    private let script: @Sendable (NetworkRequest) -> [Event]
    private let tasks = Locked<[ScriptedTask]>([])

    init(_ script: @escaping @Sendable (NetworkRequest) -> [Event]) {
        self.script = script
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let task = ScriptedTask(request, script(request), receiver)
        tasks.withLock { $0.append(task) }
        return task
    }

    /// Performs the next step of a task that can proceed.
    ///
    /// Returns false if no task can.
    func step() -> Bool { tasks.withLock { $0 }.contains { $0.step() } }

    var lastTask: ScriptedTask? { tasks.withLock { $0.last } }

    var requests: [NetworkRequest] { tasks.withLock { $0 }.map(\.request) }
}

final class ScriptedTask: NetworkTask {
    private struct State {
        var events: ArraySlice<ScriptedSession.Event>
        var isStarted = false
        var isSuspended = true
        var isHeld = false
        var isCancelled = false
        var receiver: (any NetworkReceiver)?
    }

    private enum Step {
        case event(ScriptedSession.Event, any NetworkReceiver)
        case end(NetworkError?, any NetworkReceiver)
    }

    let request: NetworkRequest
    private let state: Locked<State>

    init(_ request: NetworkRequest, _ events: [ScriptedSession.Event], _ receiver: any NetworkReceiver) {
        self.request = request
        state = Locked(State(events: events[...], receiver: receiver))
    }

    /// Delivers headers regardless of pauses, as if they were already in delivery.
    func deliverHead(_ status: Int) {
        guard let receiver = state.withLock({ $0.receiver }) else { return }
        receiver.task(self, didReceive: ResponseHead(url: request.url, status: status, headers: [:]))
    }

    func step() -> Bool {
        let step: Step? = state.withLock { state in
            guard let receiver = state.receiver else { return nil }
            if state.isCancelled {
                state.receiver = nil
                return .end(NetworkError(code: .cancelled, phase: .receiving, message: "Cancelled."), receiver)
            }
            guard state.isStarted, !state.isSuspended, !state.isHeld else { return nil }
            if let event = state.events.popFirst() { return .event(event, receiver) }
            state.receiver = nil
            return .end(nil, receiver)
        }
        switch step {
        case .event(.head(let status, let headers), let receiver):
            receiver.task(self, didReceive: ResponseHead(url: request.url, status: status, headers: headers))
        case .event(.bytes(let data), let receiver): data.withUnsafeBytes { receiver.task(self, didReceive: $0) }
        case .end(let error, let receiver): receiver.task(self, didEndWith: error)
        case nil: return false
        }
        return true
    }

    func resume() {
        state.withLock { state in
            state.isStarted = true
            state.isSuspended = false
        }
    }

    func suspend() { state.withLock { $0.isSuspended = true } }
    func cancel() { state.withLock { $0.isCancelled = true } }
    func hold() { state.withLock { $0.isHeld = true } }
    func proceed() { state.withLock { $0.isHeld = false } }
}
