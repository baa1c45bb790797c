// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A task that sends all requests of one exchange and delivers the final response.
///
/// State machines decide under the lock, and the task performs their actions after the lock is released.
final class ExchangeTask: OrderedTask {
    typealias Machine = ExchangeMachine<ResponseSource, NextStep, CacheTee>

    struct State {
        var machine = Machine()
        /// The redirects and challenges so far, or nil if there were none.
        @Boxed var detours: (redirects: RedirectMachine, challenges: ChallengeMachine)?
        @Boxed var timer: (any OperationTimer)?
        /// The timer that cancels an intermediate response whose body takes too long.
        @Boxed var drainTimer: (any OperationTimer)?
        var question: Task<Void, Never>?
        /// The last request that the transport received.
        var sent: NetworkRequest?
        /// The state of the present request under its rate limit, or `nil` if it has none.
        var turn: RateTurn?
        /// The number of the last wait for a rate limit.
        var turnNumber = 0
        /// The observer of each request, or `nil` if there is none or the exchange ended.
        @Boxed var watcher: HopWatcher?
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
        state = Locked(State(watcher: HopObserverReceiver.watcher(behind: receiver)))
    }

    deinit {
        // An exchange that is held while its body comes from the cache may be released before it ends. Its file would
        // stay open.
        guard case .cache(_, let body?)? = state.withLock({ $0.machine.finish() })?.source else { return }
        session.configuration.cache?.perform { disk, _ in disk.closeReader(body) }
    }

    /// The last request that the transport received.
    var sentRequest: NetworkRequest? { state.withLock { $0.sent } }

    func error(_ code: NetworkError.Code, _ phase: NetworkError.Phase, _ message: String) -> NetworkError {
        NetworkError(code: code, phase: phase, message: message, request: first.summary)
    }
}

// Pausing, resuming and canceling.
extension ExchangeTask {
    func resume() { perform(state.withLock { $0.machine.resume() }) }

    func suspend() {
        state.withLock { $0.machine.suspend() }
        passPauseOrder()
    }

    func follow(_ order: PauseOrder) {
        // The caller of an outdated order may rely on the newer one, which another thread may not have passed on yet.
        if let release = state.withLock({ $0.machine.follow(order) }) { perform(release) } else { passPauseOrder() }
    }

    func hold() { addHoldReason(.receiver) }

    func proceed() { release(.receiver) }

    func cancel() {
        finish(error(.cancelled, presentPhase, "The request was canceled."), isAbrupt: true)
    }

    func addHoldReason(_ reason: ExchangeHoldReasons) {
        state.withLock { $0.machine.set(reason) }
        passPauseOrder()
    }

    func release(_ reason: ExchangeHoldReasons) { perform(state.withLock { $0.machine.release(reason) }) }

    func perform(_ release: Machine.Release) {
        switch release {
        case .start: begin()
        case .order: passPauseOrder()
        case .read:
            takePostponedTurn()
            pump()
        case .answer:
            passPauseOrder()
            // The thread that ended the pause may hold a lock that the receiver takes, or be inside a call of the
            // receiver.
            session.deliverLater { self.deliverKeptHead() }
        }
    }

    private func begin() {
        if let deadline = configuration.deadline { setDeadline(deadline) }
        start(Hop(first), proof: nil)
    }

    /// Passes the wanted pause order to the present task of the session.
    ///
    /// Two threads may do so in the wrong order. The number of the order tells the task which one is newer.
    func passPauseOrder() {
        guard let (source, order) = state.withLock({ $0.machine.wanted }) else { return }
        source.orderTarget?.pass(order)
    }

    /// The phase that an error from outside the exchange reports.
    private var presentPhase: NetworkError.Phase { state.withLock { $0.machine.phase } }

    private func setDeadline(_ deadline: Duration) {
        // The timer keeps the exchange alive, because nothing else may do so while its receiver holds a cached
        // response. Every end of the exchange cancels and releases the timer.
        let timer = configuration.clock.schedule(after: deadline) { [self] in
            finish(
                error(.timedOut, presentPhase, "The request took longer than the session's deadline of \(deadline)."),
                isAbrupt: true)
        }
        state.keep(timer, in: \.timer) { !$0.machine.isEnded }
    }
}

// The end.
extension ExchangeTask {
    /// Ends the exchange, unless it ended before.
    ///
    /// - Parameters:
    ///   - error: The reason, or `nil` if the response is complete.
    ///   - isAbrupt: Whether the end comes from outside, such as from a cancellation. Calls to the receiver that wait
    ///     are dropped. The end is reported on another thread, because the caller may be inside a call of the receiver.
    func finish(_ error: NetworkError?, isAbrupt: Bool = false) {
        // The old state may hold objects of the user, such as an error, which must not be released under the lock.
        var old = State(machine: .ended)
        state.withLock { state in
            guard !state.machine.isEnded else { return }
            swap(&old, &state)
            state.sent = old.sent
            // The session may still report that it did not send the request.
            if case .sent? = old.turn { swap(&old.turn, &state.turn) }
        }
        guard let left = old.machine.finish() else { return }
        old.turn?.end()
        // The operation waited for this token, but no request used it.
        first.ratePass?.takeToken()?.giveBack()
        if isAbrupt { calls.dropRest() }
        old.timer?.cancel()
        old.drainTimer?.cancel()
        old.question?.cancel()
        close(left, after: error)
        var error = error
        if left.wasAnswered { error?.isUnsent = false }
        let call: ReceiverCalls.Call = { [self, error] in $0.task(self, didEndWith: error) }
        if isAbrupt { DispatchQueue.global().async { self.calls.end(call) } } else { calls.end(call) }
    }

    private func close(_ left: Machine.Left, after error: NetworkError?) {
        left.copy?.end(isComplete: error == nil && left.isAnswer, isTooLarge: error?.code == .bodyTooLarge)
        switch left.source {
        case .network(let flight): if error != nil { flight.task.cancel() }
        case .cache(_, let body?): configuration.cache?.perform { disk, _ in disk.closeReader(body) }
        case .cache, .nothing, nil: break
        }
    }
}

// From an intermediate response to the next step.
extension ExchangeTask {
    /// The maximum number of bytes of an unneeded body that are read so that the connection can be reused.
    static let drainLimit = 64 << 10
    /// The maximum time to read an unneeded body.
    static let drainTime = Duration.seconds(2)

    /// Leaves an intermediate response, and reads the rest of its body if it comes from the session.
    func leave(_ source: ResponseSource, _ head: ResponseHead, for next: NextStep, step: Int) {
        var tee: CacheTee?
        // A redirect can be cached like any other response.
        if case .redirect = next { tee = keep(head, from: source) }
        if source.isFlight { state.withLock { $0.watcher }?(.left(head)) }
        // The error may hold an object of the user, which must not be released under the lock.
        let (broken, leaving) = state.withLock { state in
            (state.machine.broken, state.machine.leaves(source, for: next, tee, step))
        }
        extendLifetime(broken)
        switch leaving {
        case .drop:
            tee?.end(isComplete: false)
            discard(source)
        case .startNext:
            tee?.end(isComplete: false)
            discard(source)
            // The session ignored the hold, so the task may still be running.
            if broken != nil {
                source.task?.cancel()
                state.withLock { $0.watcher }?(.ended)
            }
            go(next)
        case .drain:
            passPauseOrder()
            if Self.announcedLength(of: head, to: source.prepared.hop) > Int64(Self.drainLimit) {
                source.task?.cancel()
            } else {
                limitDraining(of: source, step: step)
            }
        }
    }

    /// Cancels a response that arrives too slowly, because a new connection costs less than the wait.
    private func limitDraining(of source: ResponseSource, step: Int) {
        let timer = configuration.clock.schedule(after: Self.drainTime) { [weak self] in
            guard let self, state.withLock({ $0.machine.isDraining(step) }) else { return }
            source.task?.cancel()
        }
        state.keep(timer, in: \.drainTimer) { $0.machine.isDraining(step) }
    }

    /// Closes the body of a response from the cache.
    func discard(_ source: ResponseSource) {
        guard case .cache(_, let body?) = source else { return }
        configuration.cache?.perform { disk, _ in disk.closeReader(body) }
    }

    /// Takes the next step, with the machine in the state `preparing`.
    func go(_ next: NextStep) {
        let timer = state.withLock { exchange(&$0.drainTimer, with: nil) }
        timer?.cancel()
        switch next {
        case .redirect(let hop): start(hop, proof: nil, isRedirect: true)
        case .proof(let hop, let proof): start(hop, proof: proof)
        case .startOver(let prepared):
            guard let step = nextStep() else { return }
            // The queue of the cache first removes the outdated responses.
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
                // The reader that was opened above can still read the file.
                disk.remove(variant.body)
            }
        }
    }

    private func nextStep() -> Int? { state.withLock { $0.machine.advance() } }
}

/// The receiver of the events of one request of an exchange.
final class HopReceiver: NetworkReceiver {
    let exchange: ExchangeTask
    /// The number of the step, with which the exchange ignores the events of an earlier request.
    let step: Int

    init(_ exchange: ExchangeTask, step: Int) {
        self.exchange = exchange
        self.step = step
    }
}

/// A step of one of the requests that an exchange sends.
package enum HopStep: Sendable {
    /// The session is about to get a request, which is the original one or one that follows from a response.
    case begins(NetworkRequest)
    /// The session accepted all bytes of the request's body.
    case bodySent
    /// The response to the request is not the final one.
    case left(ResponseHead)
    /// The response is the final one, or a part of it, and may be delivered to the receiver later.
    case received(ResponseHead)
    /// The session measured the request.
    case measured(TransferMetrics)
    /// The request ended, whether or not its metrics are available. Later events belong to another request.
    case ended
}

/// An observer of each request that an exchange sends, in addition to the receiver of the final response.
package typealias HopWatcher = @Sendable (HopStep) -> Void

/// The last receiver in a chain of receivers, which holds an observer of each request.
///
/// Exchanges search for this class and not for a protocol, because a cast to a protocol takes longer.
package final class HopObserverReceiver: NetworkReceiver {
    /// The maximum length of a chain, because a receiver may name itself as the next one.
    private static let longestChain = 16

    private let watcher: HopWatcher

    package init(_ watcher: @escaping HopWatcher) { self.watcher = watcher }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}

    /// Returns the observer at the end of the chain that begins with a receiver, or `nil` if there is none.
    package static func watcher(behind receiver: any NetworkReceiver) -> HopWatcher? {
        var next = receiver.nextReceiver
        for _ in 0..<longestChain {
            guard let present = next else { return nil }
            if let observer = present as? HopObserverReceiver { return observer.watcher }
            next = present.nextReceiver
        }
        return nil
    }
}

/// An object that calls the receiver of an exchange, one call at a time and none after the last one.
///
/// The events come from several threads.
package final class ReceiverCalls: Sendable {
    package typealias Call = @Sendable (any NetworkReceiver) -> Void
    package typealias After = @Sendable () -> Void

    private struct State {
        var receiver: (any NetworkReceiver)?
        /// Whether only the last call can still begin.
        var isClosed = false
        /// Whether the last call was made or is still pending.
        var isEnded = false
        /// The calls that wait until the present call returns.
        var waiting = DeliveryQueue<(call: Call, after: After?)>()
    }

    private let state: Locked<State>

    package init(_ receiver: any NetworkReceiver) {
        state = Locked(State(receiver: receiver))
    }

    /// Makes a call immediately, or after the call that is in progress.
    ///
    /// - Parameter after: A closure that the same thread runs as soon as no call is in progress.
    package func make(_ call: @escaping Call, after: After? = nil) {
        let receiver: (any NetworkReceiver)? = state.withLock { state in
            guard !state.isClosed else { return nil }
            return Self.enter(&state, call, after)
        }
        run(call, receiver, after)
    }

    /// Makes a call immediately, and returns `false` if another call is in progress or only the last call may still
    /// begin.
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

    /// Drops the calls that wait, after which only the last call can begin.
    package func dropRest() {
        // The calls may hold objects of the user, so they are released after the lock.
        let dropped: Fifo<(call: Call, after: After?)>? = state.withLock { state in
            guard !state.isEnded else { return nil }
            state.isClosed = true
            return state.waiting.removeAll()
        }
        extendLifetime(dropped)
    }

    /// Makes the last call, after the calls that wait.
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
        // The receiver belongs to the user, so it is released after the lock.
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
