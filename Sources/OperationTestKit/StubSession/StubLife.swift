// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

/// Why a task of a stub session ends before its time.
enum StubEnd: Sendable {
    case code(NetworkError.Code)
    case error(NetworkError)
}

extension StubAnswer.Step {
    /// The end that the step is, if it is one.
    fileprivate var end: StubEnd? {
        switch kind {
        case .failure(let code): .code(code)
        case .error(let error): .error(error)
        default: nil
        }
    }
}

/// The life of a task of a stub session: what is to be done next, given what is wanted.
struct StubLife {
    enum Action {
        /// Read a portion of the request's body; after the last, ask for the answer.
        case send
        case tell(StubAnswer.Step)
        case awaitGate(Gate, Wait)
        case awaitTime(Duration, Wait)
        case end(StubEnd?)
    }

    /// What it waits for.
    enum Wait: Equatable {
        /// The body's producer, or the end of the call that reads from it.
        case body
        /// A gate or a time; the number tells one from another.
        case step(Int)
    }

    private enum State {
        case created
        case sending
        case answering(ArraySlice<StubAnswer.Step>)
        /// The end is decided.
        case stopped(StubEnd)
        case ended
    }

    private var state = State.created
    private(set) var phase = NetworkError.Phase.waiting
    var isSuspended = false
    var isHeld = false
    private var wait: Wait?
    private var stepCount = 0

    /// True if it is the first time.
    mutating func resume() -> Bool {
        isSuspended = false
        guard case .created = state else { return false }
        state = .sending
        return true
    }

    /// Whether the end is decided.
    var isStopped: Bool {
        switch state {
        case .stopped, .ended: true
        case .created, .sending, .answering: false
        }
    }

    /// What was waited for has come; it may also come too late, and then nothing happens.
    mutating func goOn(after wait: Wait) {
        if self.wait == wait { self.wait = nil }
    }

    mutating func answer(_ steps: [StubAnswer.Step]) {
        guard case .sending = state else { return }
        state = .answering(steps[...])
        phase = .awaitingResponse
        wait = nil
    }

    /// Decides the end, unless it is decided already.
    mutating func stop(_ code: NetworkError.Code) {
        switch state {
        case .stopped, .ended: break
        case .created, .sending, .answering: state = .stopped(.code(code))
        }
    }

    /// What is to be done now; nil if nothing.
    mutating func next() -> Action? {
        if case .stopped(let end) = state {
            state = .ended
            return .end(end)
        }
        guard !isSuspended, wait == nil else { return nil }
        switch state {
        case .created, .stopped, .ended: return nil
        case .sending:
            phase = .sending
            wait = .body
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
        if let end = step.end {
            state = .ended
            return .end(end)
        }
        guard !isHeld else { return nil }
        state = .answering(steps.dropFirst())
        switch step.kind {
        case .gate(let gate): return .awaitGate(gate, beginWait())
        case .pause(let duration): return .awaitTime(duration, beginWait())
        case .head(let status, _): if status >= 200 { phase = .receiving }
        case .wholeHead: phase = .receiving
        case .bytes, .trailers, .failure, .error: break
        }
        return .tell(step)
    }

    private mutating func beginWait() -> Wait {
        stepCount += 1
        wait = .step(stepCount)
        return .step(stepCount)
    }
}
