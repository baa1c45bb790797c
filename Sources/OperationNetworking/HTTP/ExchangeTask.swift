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
                watcher: HopObserverReceiver.watcher(behind: receiver)))
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

// From a response that is not the answer to the next step.
extension ExchangeTask {
    /// How much of a body is read that nobody wants: so the connection can be used again.
    static let drainLimit = 64 << 10
    /// For how long that is waited for.
    static let drainTime = Duration.seconds(2)

    /// Leaves a response behind; what is left of one from the session runs out.
    func leave(_ source: ResponseSource, _ head: ResponseHead, for next: NextStep, step: Int) {
        var tee: CacheTee?
        // A redirect can be kept like any other response.
        if case .redirect = next { tee = keep(head, from: source) }
        if source.isFlight { state.withLock { $0.watcher }?.left(head) }
        // What broke may carry something of the user's: it goes outside of the lock.
        let (broken, leaving) = state.withLock { state in
            (state.machine.broken, state.machine.leaves(source, for: next, tee, step))
        }
        withExtendedLifetime(broken) {}
        switch leaving {
        case .drop:
            tee?.end(isComplete: false)
            discard(source)
        case .goOn:
            tee?.end(isComplete: false)
            discard(source)
            // It may go on although it was held.
            if broken != nil {
                source.task?.cancel()
                state.withLock { $0.watcher }?.hopIsOver()
            }
            go(next)
        case .drain:
            settle()
            if Self.announcedLength(of: head, to: source.prepared.hop) > Int64(Self.drainLimit) {
                source.task?.cancel()
            } else {
                limitDraining(of: source, step: step)
            }
        }
    }

    /// One that drips is given up after a while: a new connection costs less than the wait.
    private func limitDraining(of source: ResponseSource, step: Int) {
        let timer = configuration.clock.schedule(after: Self.drainTime) { [weak self] in
            guard let self, state.withLock({ $0.machine.isDraining(step) }) else { return }
            source.task?.cancel()
        }
        let isOver = state.withLock { state in
            guard state.machine.isDraining(step) else { return true }
            state.drainTimer = timer
            return false
        }
        if isOver { timer.cancel() }
    }

    /// Lets go of a body in the cache.
    func discard(_ source: ResponseSource) {
        guard case .cache(_, let body?) = source else { return }
        configuration.cache?.perform { disk, _ in disk.closeReader(body) }
    }

    /// Takes the next step; the phase is `preparing`.
    func go(_ next: NextStep) {
        let timer = state.withLock { exchange(&$0.drainTimer, with: nil) }
        timer?.cancel()
        switch next {
        case .redirect(let hop): start(hop, proof: nil, isRedirect: true)
        case .proof(let hop, let proof): start(hop, proof: proof)
        case .anew(let prepared):
            guard let step = nextStep() else { return }
            // After what was forgotten just now.
            configuration.cache?.perform { [self] disk, _ in send(prepared, kept: nil, from: disk, step: step) }
        case .kept(let prepared, let variant, let age):
            guard let step = nextStep() else { return }
            configuration.cache?.perform { [self] disk, now in
                serve(variant, age: age, to: prepared, from: disk, now: now, step: step)
            }
        case .keptUntilNow(let prepared, let variant, let age):
            let step = nextStep()
            configuration.cache?.perform { [self] disk, now in
                if let step { serve(variant, age: age, to: prepared, from: disk, now: now, step: step) }
                // It is open for whoever reads it now.
                disk.remove(variant.body)
            }
        }
    }

    private func nextStep() -> Int? { state.withLock { $0.machine.advance() } }
}

/// Hands the events of one request of an exchange on, with the number by which the exchange knows it.
final class HopReceiver: NetworkReceiver {
    private let exchange: ExchangeTask
    private let step: Int

    init(_ exchange: ExchangeTask, step: Int) {
        self.exchange = exchange
        self.step = step
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        exchange.received(head, step: step)
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        exchange.received(bytes, by: task, step: step)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        exchange.ended(error, step: step)
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        exchange.handOn(step: step) { $0.task($1, didReceiveInformational: head) }
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        exchange.handOn(step: step) { $0.task($1, didReceiveTrailers: fields) }
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        exchange.sent(count, of: total, step: step)
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        exchange.collected(metrics, step: step)
    }

    func taskMayLeave(_ task: any NetworkTask) -> Bool { exchange.mayLeave(step: step) }
}

/// Is told of each request that an exchange sends, beside the receiver of its answer.
package protocol HopWatcher: AnyObject, Sendable {
    /// The session sends that: the request as it was made, or one that follows from a response.
    func hopBegins(_ request: NetworkRequest)
    /// All of its body was handed over.
    func sentBody()
    /// The response to it is not the answer.
    func left(_ head: ResponseHead)
    /// The response to it is the answer, or a part of that: of a receiver that tells it later.
    func answered(_ head: ResponseHead)
    /// So it spent its time.
    func measured(_ metrics: TransferMetrics)
    /// It is over, and what comes next is no part of it.
    func hopIsOver()
}

/// The last in a row of receivers, where somebody wants to be told of each request.
///
/// It is known by its class, for it is looked for in each exchange: to ask a receiver for a protocol takes longer.
package final class HopObserverReceiver: NetworkReceiver {
    /// One may hand on to itself.
    private static let longestRow = 16

    private let watcher: any HopWatcher

    package init(_ watcher: any HopWatcher) { self.watcher = watcher }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}

    /// Who wants to be told of each request for that receiver, or for those to which it hands on; nil where nobody does.
    package static func watcher(behind receiver: any NetworkReceiver) -> (any HopWatcher)? {
        var next = receiver.nextReceiver
        for _ in 0..<longestRow {
            guard let present = next else { return nil }
            if let post = present as? HopObserverReceiver { return post.watcher }
            next = present.nextReceiver
        }
        return nil
    }
}

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
