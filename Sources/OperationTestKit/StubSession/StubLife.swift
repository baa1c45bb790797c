// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

/// The life of a task of a stub session: what is to be done next, given what is wanted.
struct StubLife {
    enum Action {
        /// Read the request's body, and ask for the answer.
        case send
        case tell(StubAnswer.Step)
        case awaitGate(Gate)
        case awaitTime(Duration)
        case end(NetworkError.Code?)
    }

    private enum State {
        case created
        case sending
        case answering(ArraySlice<StubAnswer.Step>)
        /// The end is decided.
        case stopped(NetworkError.Code)
        case ended
    }

    private var state = State.created
    private(set) var phase = NetworkError.Phase.waiting
    var isSuspended = false
    var isHeld = false
    /// A gate, a time or the body's producer will say when it goes on.
    var isWaiting = false

    /// True if it is the first time.
    mutating func resume() -> Bool {
        isSuspended = false
        guard case .created = state else { return false }
        state = .sending
        return true
    }

    mutating func answer(_ steps: [StubAnswer.Step]) {
        guard case .sending = state else { return }
        state = .answering(steps[...])
        phase = .awaitingResponse
        isWaiting = false
    }

    /// Decides the end, unless it is decided already.
    mutating func stop(_ code: NetworkError.Code) {
        switch state {
        case .stopped, .ended: break
        case .created, .sending, .answering: state = .stopped(code)
        }
    }

    /// What is to be done now; nil if nothing.
    mutating func next() -> Action? {
        if case .stopped(let code) = state {
            state = .ended
            return .end(code)
        }
        guard !isSuspended, !isWaiting else { return nil }
        switch state {
        case .created, .stopped, .ended: return nil
        case .sending:
            phase = .sending
            isWaiting = true
            return .send
        case .answering(let steps): return next(of: steps)
        }
    }

    private mutating func next(of steps: ArraySlice<StubAnswer.Step>) -> Action? {
        guard let step = steps.first else {
            guard !isHeld else { return nil }
            state = .ended
            return .end(nil)
        }
        if case .failure(let code) = step.kind {
            state = .ended
            return .end(code)
        }
        guard !isHeld else { return nil }
        state = .answering(steps.dropFirst())
        switch step.kind {
        case .gate(let gate):
            isWaiting = true
            return .awaitGate(gate)
        case .pause(let duration):
            isWaiting = true
            return .awaitTime(duration)
        case .head(let status, _): if status >= 200 { phase = .receiving }
        case .bytes, .trailers, .failure: break
        }
        return .tell(step)
    }
}
