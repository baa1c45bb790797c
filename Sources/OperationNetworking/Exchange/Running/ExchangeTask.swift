// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// One exchange: as many requests as it takes, and one answer.
///
/// What happens is decided by values under the lock, and done after it. Each request has a number; what comes from one
/// that is no longer the present one is not heard.
final class ExchangeTask: NetworkTask {
    struct State {
        /// The number of no request: that of an exchange that ended.
        static let noStep = -1

        var phase: ExchangePhase
        /// Counts the requests and looks into the cache.
        var step = 0
        var isSuspended = true
        var brakes: ExchangeBrakes = []
        var redirects: RedirectMachine
        var challenges: ChallengeMachine
        /// How many bytes of the body were handed over.
        var handedOver: Int64 = 0
        /// How many bytes of the request's body were told to be sent.
        var sent: Int64 = 0
        /// Why the request ended while a rule was asked about its response.
        var broken: NetworkError?
        /// Whether a server answered one of the requests, so that it cannot be said that nothing was sent.
        var wasAnswered = false
        /// Whether somebody reads from the cache now.
        var isPumping = false
        var timer: (any OperationTimer)?
        var question: Task<Void, Never>?

        /// The number of the next request; nil if the exchange ended.
        mutating func advance() -> Int? {
            if case .ended = phase { return nil }
            step += 1
            return step
        }
    }

    let session: ExchangeSession
    let calls: ReceiverCalls
    let state: Locked<State>
    private let first: NetworkRequest

    var configuration: ExchangeConfiguration { session.configuration }

    init(_ request: NetworkRequest, session: ExchangeSession, receiver: any NetworkReceiver) {
        self.session = session
        first = request
        calls = ReceiverCalls(receiver)
        let configuration = session.configuration
        state = Locked(
            State(
                phase: .waiting(Hop(request)),
                redirects: RedirectMachine(policy: configuration.redirects),
                challenges: ChallengeMachine(maximumTries: configuration.challenges?.maximumTries ?? 0)))
    }

    func error(_ code: NetworkError.Code, _ phase: NetworkError.Phase, _ message: String) -> NetworkError {
        NetworkError(code: code, phase: phase, message: message, request: first.summary)
    }
}

// The user's brakes.
extension ExchangeTask {
    func resume() {
        enum Way {
            case start(Hop?)
            case goOn((any NetworkTask)?)
        }
        let way: Way = state.withLock { state in
            state.isSuspended = false
            guard case .waiting(let hop) = state.phase else { return .goOn(state.phase.source?.task) }
            state.phase = .preparing
            return .start(hop)
        }
        switch way {
        case .start(let hop?):
            setDeadline()
            start(hop, proof: nil)
        case .start(nil):
            finish(error(.invalidURL, .checking, "The URL names a host that cannot be. Check it."), isAbrupt: true)
        case .goOn(let task?): settle(task)
        case .goOn(nil): pump()
        }
    }

    func suspend() {
        let task = state.withLock { state in
            state.isSuspended = true
            return state.phase.source?.task
        }
        if let task { settle(task) }
    }

    func hold() { setBrake(.receiver) }

    func proceed() { release(.receiver) }

    func cancel() {
        finish(error(.cancelled, presentPhase, "The request was cancelled."), isAbrupt: true)
    }

    func setBrake(_ brake: ExchangeBrakes) {
        let task = state.withLock { state in
            state.brakes.insert(brake)
            return state.phase.source?.task
        }
        if let task { settle(task) }
    }

    func release(_ brake: ExchangeBrakes) {
        let task = state.withLock { state in
            state.brakes.remove(brake)
            return state.phase.source?.task
        }
        if let task {
            settle(task)
        } else {
            pump()
        }
    }

    /// Brings a task of the session to what is wanted now.
    ///
    /// Two threads may do so at once and overtake each other; so each looks again until it did what is still wanted.
    func settle(_ task: any NetworkTask) {
        var done: (isSuspended: Bool, isHeld: Bool)?
        while true {
            let wanted: (isSuspended: Bool, isHeld: Bool)? = state.withLock { state in
                guard state.phase.source?.task === task else { return nil }
                return (state.isSuspended, !state.brakes.isEmpty)
            }
            guard let wanted, done.map({ $0 != wanted }) ?? true else { return }
            if wanted.isHeld != done?.isHeld { wanted.isHeld ? task.hold() : task.proceed() }
            if wanted.isSuspended != done?.isSuspended { wanted.isSuspended ? task.suspend() : task.resume() }
            done = wanted
        }
    }

    /// How far the exchange has come, for errors from outside.
    private var presentPhase: NetworkError.Phase {
        state.withLock { state in
            switch state.phase {
            case .waiting: .waiting
            case .delivering: .receiving
            default: .awaitingResponse
            }
        }
    }

    private func setDeadline() {
        guard let deadline = configuration.deadline else { return }
        let timer = configuration.clock.schedule(after: deadline) { [weak self] in
            guard let self else { return }
            finish(
                error(.timedOut, presentPhase, "The exchange took longer than its deadline of \(deadline)."),
                isAbrupt: true)
        }
        let isOver = state.withLock { state in
            if case .ended = state.phase { return true }
            state.timer = timer
            return false
        }
        if isOver { timer.cancel() }
    }
}

// The end.
extension ExchangeTask {
    /// Ends the exchange, unless it ended before.
    ///
    /// - Parameters:
    ///   - error: Why; nil if the answer is complete.
    ///   - isAbrupt: Whether it comes from outside, when calls of the receiver may be on their way: they are not made any
    ///     more, and the end is told on another thread, because the caller may be within one.
    func finish(_ error: NetworkError?, isAbrupt: Bool = false) {
        struct Left {
            let phase: ExchangePhase
            let wasAnswered: Bool
            let timer: (any OperationTimer)?
            let question: Task<Void, Never>?
        }
        let left: Left? = state.withLock { state in
            if case .ended = state.phase { return nil }
            let left = Left(
                phase: state.phase, wasAnswered: state.wasAnswered, timer: state.timer, question: state.question)
            state.phase = .ended
            state.step = State.noStep
            state.timer = nil
            state.question = nil
            return left
        }
        guard let left else { return }
        left.timer?.cancel()
        left.question?.cancel()
        close(left.phase, isComplete: error == nil)
        var error = error
        if left.wasAnswered { error?.isUnsent = false }
        let tell: @Sendable () -> Void = { [self, error] in
            calls.close(isAbrupt: isAbrupt) { $0.task(self, didEndWith: error) }
        }
        if isAbrupt { DispatchQueue.global().async(execute: tell) } else { tell() }
    }

    private func close(_ phase: ExchangePhase, isComplete: Bool) {
        switch phase {
        case .delivering(_, let tee?): tee.end(isComplete: isComplete)
        case .draining(_, _, let tee?, _): tee.end(isComplete: false)
        default: break
        }
        switch phase.source {
        case .network(let flight): if !isComplete { flight.task.cancel() }
        case .cache(_, let body?): configuration.cache?.perform { disk, _ in disk.closeReader(body) }
        case .cache, .nothing, nil: break
        }
    }
}
