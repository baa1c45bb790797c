// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
        var said: SaidPolicies = []
        var story = AttemptStory()
        /// How a request is changed that was made, since somebody ran the operation again.
        var changes: [PostponedOperations.Change] = []
        /// Who has the operation's place in a queue of choice.
        weak var standIn: ManagedOperation?
        /// Who is told of each step; nil where nobody is.
        var observation: NetworkObservation?
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
