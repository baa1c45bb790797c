// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// One exchange: as many requests as it takes, and one answer.
///
/// What happens is decided by values under the lock, and done after it.
final class ExchangeTask: OrderedTask {
    struct State {
        var machine = ExchangeMachine<ResponseSource, NextStep, CacheTee>()
        var redirects: RedirectMachine
        var challenges: ChallengeMachine
        var timer: (any OperationTimer)?
        /// When a response that is not the answer is given up.
        var drainTimer: (any OperationTimer)?
        var question: Task<Void, Never>?
        /// The last request that was handed to the session.
        var sent: NetworkRequest?
        /// How the present request stands with its rate limit; `nil` if it has none.
        var turn: RateTurn?
        /// The number of the last wait for a rate limit.
        var turnNumber = 0
        /// Who is told of each request, beside the receiver; nil where nobody is, and after the end.
        var watcher: (any HopWatcher)?
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
                redirects: RedirectMachine(policy: configuration.redirects),
                challenges: ChallengeMachine(maximumTries: configuration.challenges?.maximumTries ?? 0),
                watcher: HopPost.watcher(behind: receiver)))
    }

    deinit {
        // One that is held while its body comes from the cache is nobody's then, and its file would stay open.
        guard case .cache(_, let body?)? = state.withLock({ $0.machine.finish() })?.source else { return }
        session.configuration.cache?.perform { disk, _ in disk.closeReader(body) }
    }

    /// The last request that was handed to the session.
    var sentRequest: NetworkRequest? { state.withLock { $0.sent } }

    func error(_ code: NetworkError.Code, _ phase: NetworkError.Phase, _ message: String) -> NetworkError {
        NetworkError(code: code, phase: phase, message: message, request: first.summary)
    }
}

// The user's brakes.
extension ExchangeTask {
    func resume() { perform(state.withLock { $0.machine.resume() }) }

    func suspend() {
        state.withLock { $0.machine.suspend() }
        settle()
    }

    func obey(_ order: BrakeOrder) {
        // One that is no news may come from a thread that counts on it, while the other has not yet passed it on.
        if let release = state.withLock({ $0.machine.obey(order) }) { perform(release) } else { settle() }
    }

    func hold() { setBrake(.receiver) }

    func proceed() { release(.receiver) }

    func cancel() {
        finish(error(.cancelled, presentPhase, "The request was cancelled."), isAbrupt: true)
    }

    func setBrake(_ brake: ExchangeBrakes) {
        state.withLock { $0.machine.set(brake) }
        settle()
    }

    func release(_ brake: ExchangeBrakes) { perform(state.withLock { $0.machine.release(brake) }) }

    func perform(_ release: ExchangeMachine<ResponseSource, NextStep, CacheTee>.Release) {
        switch release {
        case .start: begin()
        case .settle: settle()
        case .read:
            takePostponedTurn()
            pump()
        case .answer:
            settle()
            // Who released it may hold a lock that the receiver takes, or be within it.
            session.tellLater { self.tellKeptHead() }
        }
    }

    private func begin() {
        // An address that cannot be taken apart is none.
        guard let hop = Hop(first) else {
            return finish(
                error(.invalidURL, .checking, "The host of the URL is not valid. Check it."), isAbrupt: true)
        }
        setDeadline()
        start(hop, proof: nil)
    }

    /// Brings the present task of the session to what is wanted now.
    ///
    /// Two threads may do so at once and overtake each other: the task goes by the number of what it is told.
    func settle() {
        guard let (source, order) = state.withLock({ $0.machine.wanted }) else { return }
        source.brakes?.pass(order)
    }

    /// How far the exchange has come, for errors from outside.
    private var presentPhase: NetworkError.Phase { state.withLock { $0.machine.phase } }

    private func setDeadline() {
        guard let deadline = configuration.deadline else { return }
        // It keeps the exchange, which nobody else may have while its receiver holds what is kept: it is to end then, too.
        // Whatever ends it lets go of the timer.
        let timer = configuration.clock.schedule(after: deadline) { [self] in
            finish(
                error(.timedOut, presentPhase, "The exchange took longer than its deadline of \(deadline)."),
                isAbrupt: true)
        }
        let isOver = state.withLock { state in
            if state.machine.isEnded { return true }
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
        var watcher: (any HopWatcher)?
        // What broke may carry something of the user's: it goes outside of the lock.
        var broken: NetworkError?
        var turn: RateTurn?
        let (left, timers, question) = state.withLock { state in
            broken = state.machine.broken
            let left = state.machine.finish()
            guard left != nil else { return (left, [(any OperationTimer)?](), nil as Task<Void, Never>?) }
            swap(&turn, &state.turn)
            swap(&watcher, &state.watcher)
            let timers = [exchange(&state.timer, with: nil), exchange(&state.drainTimer, with: nil)]
            return (left, timers, exchange(&state.question, with: nil))
        }
        withExtendedLifetime(broken) {}
        guard let left else { return }
        turn?.end()
        // The operation waited for it, and no request was sent.
        first.ratePass?.takeToken()?.giveBack()
        if isAbrupt { calls.dropRest() }
        for timer in timers { timer?.cancel() }
        question?.cancel()
        close(left, isComplete: error == nil)
        var error = error
        if left.wasAnswered { error?.isUnsent = false }
        let tell: @Sendable () -> Void = { [self, error] in
            calls.end { $0.task(self, didEndWith: error) }
        }
        if isAbrupt { DispatchQueue.global().async(execute: tell) } else { tell() }
    }

    private func close(_ left: ExchangeMachine<ResponseSource, NextStep, CacheTee>.Left, isComplete: Bool) {
        left.copy?.end(isComplete: isComplete && left.isAnswer)
        switch left.source {
        case .network(let flight): if !isComplete { flight.task.cancel() }
        case .cache(_, let body?): configuration.cache?.perform { disk, _ in disk.closeReader(body) }
        case .cache, .nothing, nil: break
        }
    }
}
