// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries out the attempts of a network operation: the shell of its state machine.
///
/// There is nothing in it for users; it is public because ``AnyNetworkOperation`` leads to it.
public final class NetworkAttempts: Sendable {
    struct State {
        var machine = AttemptMachine()
        /// From the start to the end: it keeps the operation alive in between.
        var host: (any AttemptHost)?
        /// That of the present attempt, or of the one before while it is prepared.
        var request: NetworkRequest?
        /// What the present attempt began with, before it was adapted.
        var draft: NetworkRequest?
        var isPrepared = false
        /// Whether one of those who have a say refuses the response, whatever its status.
        var isRefused = false
        /// Whether the rest of a response is waited for only so that its connection can be used again.
        var isLingering = false
        /// The last attempt for which a task was to be made.
        var lastCreation = 0
        var task: (any NetworkTask)?
        /// What that task tells, as long as the attempt is not over.
        var receiver: AttemptReceiver?
        /// The brakes of that task.
        var brakes: BrakeLine?
        var adaptation: Task<Void, Never>?
        var head: ResponseHead?
        var response: HTTPURLResponse?
        var collector: AnyResponseCollector?
        var received: Int64 = 0
        /// How much of a file is there, of a download.
        var saved: Int64?
        var metrics: TransferMetrics?
        var error: NetworkError?
        /// Gives the result to the operation.
        var conclusion: (@Sendable () -> Void)?
        var timer: (any OperationTimer)?
        var time = AttemptTime()
        var timeout: (any OperationTimer)?
        var policies: [any AttemptPolicy] = []
        var gates: [any AttemptGate] = []
        /// What was set on the operation itself, be it to nil.
        var said: ExplicitPolicies = []
        var story = AttemptHistory()
        /// How a request is changed that was made, since somebody ran the operation again.
        var changes: [@Sendable (NetworkRequest) throws -> NetworkRequest] = []
        /// Who has the operation's place in a queue of choice.
        weak var standIn: ManagedOperation?
        /// Who is told of each step; nil where nobody is.
        var observation: (any AttemptObservation)?
        var idempotencyKey: IdempotencyKey?
        /// The key that went with the first request.
        var firstKey: String?
        var retryHandler: (@Sendable (RetryEvent) -> Void)?
        var offlineHandler: (@Sendable () -> Void)?

        /// What the present attempt sent, or would have.
        var presentRequest: NetworkRequest? { isPrepared ? request : draft }
    }

    let state = Locked(State())
    let teller = ProgressTeller()
    private let scope = RefreshScope.current
    /// Whether somebody is told of each step: known before the start, and from then on the same.
    let isObserved = Atomic(false)

    init() {}

    var request: NetworkRequest? { state.withLock { $0.request } }
    var response: HTTPURLResponse? { head.flatMap(response(of:)) }

    /// Whether the operation was made by a refresh of a credential that is still under way, so that others wait for it.
    var isForRefresh: Bool { scope.isOfUse }

    var head: ResponseHead? { state.withLock { $0.head } }
    package var task: (any NetworkTask)? { state.withLock { $0.task } }
    var metrics: TransferMetrics? { state.withLock { $0.metrics } }
    var count: Int { state.withLock { $0.machine.attempt } }
    /// Whether the time before the next attempt runs.
    package var isWaitingForTime: Bool { state.withLock { $0.timer != nil && $0.machine.phase == .waiting } }
    var receivedCount: Int64 { state.withLock { $0.received } }
    var collector: AnyResponseCollector? { state.withLock { $0.collector } }

    /// Whether the operation is held back, put aside, or waits for a time.
    package var isResting: Bool { state.withLock { [.holding, .waiting, .parked].contains($0.machine.phase) } }

    /// Whether the operation has its outcome, and those who waited for it are told.
    var isEnded: Bool { state.withLock { $0.machine.phase == .ended } }

    func start(for host: any AttemptHost) {
        let (action, observation) = state.withLock { state in
            let action = state.machine.start()
            if state.machine.phase != .ended { state.host = host }
            return (action, state.observation)
        }
        observation?.note(.started, 0, by: host)
        perform(action)
    }

    func setSuspended(_ isSuspended: Bool) {
        let action = state.withLock { isSuspended ? $0.machine.suspend() : $0.machine.resume() }
        if let (host, number) = running() { note(.suspended(isSuspended), number, host) }
        storyMayGoOn(!isSuspended)
        timeMayRun(!isSuspended)
        perform(action)
    }

    /// Does what an event asked for, and what follows from that on this thread.
    func perform(_ action: AttemptMachine.Action) {
        var next = action
        while next != .none {
            switch next {
            case .none: return
            case .prepare: next = prepare()
            case .clear: next = clear()
            case .createTask: next = createTask()
            case .settleTask: next = settleTask()
            case .evaluate:
                EvaluationPool.shared.run { self.perform(self.evaluate()) }
                return
            case .decide: next = decide()
            case .wait(let pause): next = wait(pause)
            case .rest(let reason): next = rest(reason)
            case .takePlace: next = takePlace()
            case .conclude: next = conclude()
            }
        }
    }

    /// The operation and the number of the attempt, unless it is over.
    func running() -> (host: any AttemptHost, number: Int)? {
        state.withLock { state in state.host.map { ($0, state.machine.attempt) } }
    }

    /// The present step failed, or only the transfer, which counts no more once the response is complete.
    func failed(
        _ error: any Error, _ phase: NetworkError.Phase, _ number: Int, isTransfer: Bool = false
    ) -> AttemptMachine.Action {
        let error = NetworkError(error, phase: phase)
        var timer: (any OperationTimer)?
        // What an error carries is the user's, and goes outside of the lock.
        var left: NetworkError?
        let (action, isFirst) = state.withLock { state in
            let before = state.machine.phase
            let action = isTransfer ? state.machine.transferFailed(number) : state.machine.failed(number)
            // A failure that comes after the first one of the attempt says less than that.
            guard state.machine.phase == .deciding, before != .deciding else { return (action, false) }
            left = exchange(&state.error, with: error.completed(request: state.presentRequest, head: state.head))
            timer = state.stopTime()
            return (action, true)
        }
        withExtendedLifetime(left) {}
        timer?.cancel()
        if isFirst { noteFailure(number) }
        return action
    }

    /// That attempt failed: told now, and not when it is decided, for a suspension may come before that.
    ///
    /// Whoever decides may be faster, and tells it as well: what comes second is not heard.
    func noteFailure(_ number: Int) {
        guard isObserved.load(ordering: .relaxed) else { return }
        let (observation, host, error, count) = state.withLock { state in
            let isObserved = state.observation != nil && state.machine.attempt == number
            return (
                state.observation, isObserved ? state.host : nil, isObserved ? state.error : nil, state.received
            )
        }
        guard let observation, let host, let error else { return }
        observation.note(.failed(error, count: count), number, by: host)
    }
}

extension NetworkAttempts: ResponseMaker {
    /// Made of the head when it is first asked for.
    package func response(of head: ResponseHead) -> HTTPURLResponse? {
        if let known = state.withLock({ $0.head == head ? $0.response : nil }) { return known }
        guard let made = HTTPURLResponse(head) else { return nil }
        return state.withLock { state in
            // Of an attempt that is past: nobody asks for it again.
            guard state.head == head else { return made }
            if state.response == nil { state.response = made }
            return state.response ?? made
        }
    }
}

// Places in queues: given up for a wait, and taken again.
extension NetworkAttempts {
    private var waitNumber: UInt32 { UInt32(truncatingIfNeeded: state.withLock { $0.machine.round }) }

    /// Somebody takes the operation's place in another queue, and has one there, until it is put aside by hand again.
    ///
    /// Where a place of the operation's own queue is to be taken first, that other one is given up again until then.
    func stand(_ standIn: ManagedOperation) {
        state.withLock { $0.standIn = standIn }
        guard let (host, _) = running(), !standIn.precedes(host) else { return }
        standIn.rest(waitNumber, because: .place)
    }

    /// The one that stands for it, which does not from now on.
    func takeStandIn() -> ManagedOperation? {
        state.withLock { state in
            defer { state.standIn = nil }
            return state.standIn
        }
    }

    func rest(_ host: any AttemptHost, _ reason: WaitReason) {
        let (number, standIn) = (waitNumber, state.withLock { $0.standIn })
        host.rest(number, because: reason)
        standIn?.rest(number, because: reason)
    }

    /// Gets a place again: in its own queue, and in that of the one that stands for it, if there is one.
    ///
    /// - Parameter turns: What was put off and is to be told before the operation goes on.
    func takePlace(_ turns: TurnTaking? = nil) -> AttemptMachine.Action { takePlaces(after: 0, turns) }

    private func takePlaces(after taken: Int, _ turns: TurnTaking?) -> AttemptMachine.Action {
        guard let (host, number) = running() else { return .none }
        let places = places(of: host)
        guard taken < places.count else { return state.withLock { $0.machine.returned(number) } }
        let mayGoOn = places[taken].wake(waitNumber) { [weak self] in
            guard let self else { return }
            goOn(with: takePlaces(after: taken + 1, turns), after: turns)
        }
        if mayGoOn { return takePlaces(after: taken + 1, turns) }
        // What it waits for now is no fault of the server's.
        let now = host.clock.now
        state.withLock { state in
            if state.machine.phase == .returning, state.machine.attempt == number { state.story.putAside(now: now) }
        }
        return .none
    }

    /// Always in the same order: one that has a place waits for none that is had by one which waits for that.
    private func places(of host: any AttemptHost) -> [ManagedOperation] {
        guard let standIn = state.withLock({ $0.standIn }) else { return [host] }
        return standIn.precedes(host) ? [standIn, host] : [host, standIn]
    }

    private func goOn(with action: AttemptMachine.Action, after turns: TurnTaking?) {
        guard let turns, action != .none else { return perform(action) }
        turns.second { self.perform(action) }
    }

    /// Performs what follows where others need this thread, as those do that wait behind the operation: only places are
    /// taken and given up here, in the order in which that was said.
    ///
    /// - Parameter tell: Called on the other thread before all that follows.
    func performElsewhere(_ action: AttemptMachine.Action, telling tell: (@Sendable () -> Void)? = nil) {
        let turns = TurnTaking()
        let next =
            switch action {
            case .takePlace: takePlace(turns)
            case .rest(let reason): rest(reason)
            default: action
            }
        DispatchQueue.global().async {
            turns.first { tell?() }
            self.perform(next)
        }
    }
}

// The time that one attempt may take, on the operation's clock.
extension NetworkAttempts {
    private var attemptTimeout: Duration? { state.withLock { $0.policies.lazy.compactMap(\.attemptTimeout).min() } }

    /// The attempt is over, or waits for what it is not to blame for: its time begins anew with the next preparation.
    func stopTime() {
        state.withLock { $0.stopTime() }?.cancel()
    }

    /// Lets the time of the present attempt begin.
    func beginTime(_ number: Int, _ host: any AttemptHost) {
        guard let limit = attemptTimeout else { return }
        let now = host.clock.now
        state.withLock { state in
            guard state.machine.attempt == number else { return }
            state.time.begin(max(limit, .zero), now: now, isSuspended: state.machine.isSuspended)
        }
        watchTime(number, host)
    }

    /// The response that begins is refused: its rest is waited for so long at most.
    func linger(_ head: ResponseHead, _ number: Int) {
        guard let (host, present) = running(), present == number else { return }
        let now = host.clock.now
        let isNews = state.withLock { state in
            guard state.machine.mayBeTold(number), !state.isLingering else { return false }
            state.isLingering = true
            if state.head == nil { state.head = head }
            state.time.shorten(to: Self.longestLinger, now: now, isSuspended: state.machine.isSuspended)
            return true
        }
        if isNews { watchTime(number, host) }
    }

    /// A connection is made anew in less.
    private static let longestLinger = Duration.seconds(2)

    /// The operation was suspended or resumed.
    func timeMayRun(_ mayRun: Bool) {
        guard let (host, number) = running(), state.withLock({ $0.time.isLimited }) else { return }
        let now = host.clock.now
        state.withLock { mayRun ? $0.time.resume(now: now) : $0.time.suspend(now: now) }
        watchTime(number, host)
    }

    /// Sees to it that the end of the time is noticed, as far as one can tell now when that is.
    private func watchTime(_ number: Int, _ host: any AttemptHost) {
        guard let end = state.withLock({ $0.machine.attempt == number ? $0.time.end : nil }) else { return }
        let timer = host.clock.schedule(at: end) { [weak self] in self?.timeMayBeOver(number) }
        var old: (any OperationTimer)? = timer
        state.withLock { state in
            // Another thread may have changed the time meanwhile; it watches by itself.
            if state.machine.attempt == number, state.time.end == end { swap(&old, &state.timeout) }
        }
        old?.cancel()
    }

    private func timeMayBeOver(_ number: Int) {
        guard let (host, present) = running(), present == number else { return }
        let (now, keptBytes) = (host.clock.now, host.errorBodyBytes)
        var left: (task: (any NetworkTask)?, adaptation: Task<Void, Never>?)
        // What an error carries is the user's, and goes outside of the lock.
        var old: NetworkError?
        // In one step, for the response may be complete in this moment.
        let action = state.withLock { state in
            guard state.machine.attempt == number, let end = state.time.end, end <= now else {
                return AttemptMachine.Action.none
            }
            let error = state.timeoutError
            let action = state.isLingering ? state.machine.transferred(number) : state.machine.ranOut(number)
            guard [.deciding, .evaluating].contains(state.machine.phase) else { return action }
            if state.isLingering {
                // What came of it is all there is.
                if state.collector == nil { state.collector = ErrorBodyCollector(limit: keptBytes) }
            } else {
                old = exchange(&state.error, with: error)
            }
            // This timer is the one that fires.
            _ = state.stopTime()
            left = (state.task, state.adaptation)
            return action
        }
        withExtendedLifetime(old) {}
        left.adaptation?.cancel()
        left.task?.endForAttempt()
        noteFailure(number)
        perform(action)
    }
}

extension NetworkAttempts.State {
    /// The attempt is over, or its response complete; returns the timer that is to be cancelled, outside of the lock.
    mutating func stopTime() -> (any OperationTimer)? {
        time.stop()
        return exchange(&timeout, with: nil)
    }

    /// That the time is over, and how far the attempt had come; once a task may have been resumed it counts as sent.
    fileprivate var timeoutError: NetworkError {
        let phase: NetworkError.Phase =
            [.preparing, .clearing].contains(machine.phase) ? .checking : head == nil ? .awaitingResponse : .receiving
        let error = NetworkError(
            code: .timedOut, phase: phase,
            message: "The attempt took longer than retry.attemptTimeout allows. Allow more, or ask for less at once.")
        return error.completed(request: presentRequest, head: head)
    }
}

/// How much of its time an attempt has left: a pure value, told the time.
///
/// It runs from the preparation until the response is complete, and only while the attempt may go on.
package struct AttemptTime: Sendable, Equatable {
    private var left: Duration?
    private var since: OperationInstant?

    package init() {}

    /// When it will be over if nothing happens before; nil if it has no end, or stands still.
    package var end: OperationInstant? {
        guard let left, let since else { return nil }
        return since.advanced(by: left)
    }

    /// An attempt begins.
    package mutating func begin(_ limit: Duration?, now: OperationInstant, isSuspended: Bool) {
        left = limit
        since = isSuspended ? nil : now
    }

    /// Whether it has an end.
    package var isLimited: Bool { left != nil }

    /// No more than that is left of it from now on.
    package mutating func shorten(to limit: Duration, now: OperationInstant, isSuspended: Bool) {
        let rest = end.map { now.duration(to: $0) } ?? left ?? limit
        begin(min(rest, limit), now: now, isSuspended: isSuspended)
    }

    /// The attempt may not go on.
    package mutating func suspend(now: OperationInstant) {
        guard let since, let limit = left else { return }
        left = limit - max(since.duration(to: now), .zero)
        self.since = nil
    }

    /// It may.
    package mutating func resume(now: OperationInstant) {
        // Between two attempts there is no time that could run.
        if left != nil, since == nil { since = now }
    }

    /// The attempt is over, or nothing is to be waited for any more.
    package mutating func stop() { (left, since) = (nil, nil) }
}

/// The policies that were set on an operation itself, so that it does not inherit them from a group.
struct ExplicitPolicies: OptionSet, Sendable {
    let rawValue: UInt8

    static let retry = ExplicitPolicies(rawValue: 1)
    static let offline = ExplicitPolicies(rawValue: 2)
    static let realms = ExplicitPolicies(rawValue: 4)
    static let all: ExplicitPolicies = [.retry, .offline, .realms]
}

extension NetworkAttempts {
    /// Notes that the policy was set on the operation, which therefore does not inherit it.
    func markAsSet(_ policy: ExplicitPolicies) { state.withLock { _ = $0.said.insert(policy) } }
}
