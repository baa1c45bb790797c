// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The object that performs the attempts of a network operation.
package final class NetworkAttempts: Sendable {
    struct State {
        typealias Handlers = (retry: (@Sendable (RetryEvent) -> Void)?, offline: (@Sendable () -> Void)?)

        var machine = AttemptMachine()
        /// The operation, which is kept alive from `main()` until it has its outcome.
        var owner: (any AttemptOwner)?
        var attempt = Attempt()
        /// The previous request of the operation, while the next request is being prepared.
        var lastRequest: NetworkRequest?
        /// The order in which a decision is reported and the step after it begins, if a suspension delays this step.
        @Boxed var delayedStep: NotificationOrder?
        @Boxed var metrics: TransferMetrics?
        /// The timer of the pause before the next attempt.
        @Boxed var timer: (any OperationTimer)?
        /// The policies of the operation, or nil if there were never any.
        var policies: AttemptPolicies?
        /// The policies that were set on the operation itself, including those that were set to nil.
        var explicitPolicies: ExplicitPolicies = []
        /// The beginning of the first attempt, if a policy may start another attempt.
        private var began: OperationInstant?
        @Boxed private var laterHistory: AttemptHistory?
        /// The changes to each request, since the operation was run again with a change.
        var changes: [@Sendable (NetworkRequest) throws -> NetworkRequest] = []
        /// The receiver of the steps, if there is one.
        @Boxed var observation: (any AttemptObservation)?
        /// The key that was set on the operation, and the key of the first request.
        @Boxed var keys: (own: IdempotencyKey?, first: String?)?
        @Boxed var handlers: Handlers?

        /// The request of the current attempt, or of the last one while the current one is being prepared.
        var request: NetworkRequest? { attempt.request ?? lastRequest }
        var task: (any NetworkTask)? { attempt.orderTarget?.task }

        /// Records that the preparation of an attempt begins.
        mutating func beginHistory(_ number: Int, now: OperationInstant) {
            guard began != nil || laterHistory != nil || machine.isSuspended else { return began = now }
            history.begin(number, now: now, isSuspended: machine.isSuspended)
        }

        var history: AttemptHistory {
            get { laterHistory ?? AttemptHistory(began: began) }
            set { laterHistory = newValue }
        }

        /// Returns the operation, or nil if the task of the attempt may no longer report events.
        func receivingOwner(_ number: Int) -> (any AttemptOwner)? {
            machine.acceptsEvents(number) ? owner : nil
        }
    }

    /// The state of the current attempt, which a new preparation replaces as a whole.
    ///
    /// The values may hold a user's objects, so they are released without holding the lock.
    struct Attempt {
        /// The request before it was adapted.
        var draft: NetworkRequest?
        var adaptation: Task<Void, Never>?
        /// The request, as soon as it is ready.
        var request: NetworkRequest?
        /// The task, as the target of the orders that suspend and resume it.
        var orderTarget: PauseOrderTarget?
        /// The receiver of the task, as long as the attempt is not over.
        var receiver: AttemptReceiver?
        var head: ResponseHead? {
            didSet { response = nil }
        }
        /// Foundation's response, if it was created from the headers.
        var response: HTTPURLResponse?
        var collector: (any AnyResponseCollector)?
        var received: Int64 = 0
        /// The size of the partial file at the last report, or 0 if there was none.
        var saved: Int64 = 0
        var error: NetworkError?
        /// Passes the result to the operation.
        var conclusion: Work?
        /// The remaining time, or nil if there is no limit.
        @Boxed var time: AttemptTime?
        @Boxed var timeout: (any OperationTimer)?

        /// The request that the attempt sent or would have sent.
        var currentRequest: NetworkRequest? { request ?? draft }

        /// Stops the time limit, and returns the timer to cancel without holding the lock.
        mutating func stopTime() -> (any OperationTimer)? {
            time = nil
            return exchange(&timeout, with: nil)
        }

        /// Moves the values that are not needed after the operation ends to `left`, to be released without holding the
        /// lock.
        ///
        /// The attempt keeps its collector if the collector made the result, because the result may need the collector.
        mutating func end(madeResult: Bool, leaving left: inout Attempt) {
            if !madeResult || error != nil || conclusion != nil { swap(&left.collector, &collector) }
            swap(&left.draft, &draft)
            swap(&left.adaptation, &adaptation)
            swap(&left.receiver, &receiver)
            swap(&left.error, &error)
            swap(&left.conclusion, &conclusion)
            left.timeout = stopTime()
        }

        /// Stores the error of the attempt, and stops the time limit.
        ///
        /// The method returns the previous error, if any, to be released without holding the lock, and the timer to
        /// cancel.
        mutating func fail(_ error: NetworkError) -> (error: NetworkError?, timer: (any OperationTimer)?) {
            (exchange(&self.error, with: error.completed(request: currentRequest, head: head)), stopTime())
        }
    }

    let state = Locked(State())
    let reporter = ProgressReporter()
    private let scope = RefreshScope.current
    /// Whether an observer receives the steps, which does not change after the start.
    let isObserved = Atomic(false)

    var request: NetworkRequest? { state.withLock { $0.request } }
    var response: HTTPURLResponse? { head.flatMap(response(of:)) }

    /// Whether a refresh that is still in progress created the operation, so that other operations wait for it.
    var isForRefresh: Bool { scope.isOfUse }

    /// The refreshes for which a new task with code of the user works.
    ///
    /// The task may be created on any thread, which need not know for which refreshes the operation was created.
    var scopeForTask: RefreshScope { scope.isEmpty ? .current : scope }

    var head: ResponseHead? { state.withLock { $0.attempt.head } }
    package var task: (any NetworkTask)? { state.withLock { $0.task } }
    var metrics: TransferMetrics? { state.withLock { $0.metrics } }
    var count: Int { state.withLock { $0.machine.attempt } }
    /// Whether the operation is in a timed pause before the next attempt.
    package var isWaitingForTime: Bool { state.withLock { $0.timer != nil && $0.machine.phase == .waiting } }
    var receivedCount: Int64 { state.withLock { $0.attempt.received } }

    /// Whether the operation is held back, paused, or waits for a time.
    package var isResting: Bool { state.withLock { [.holding, .waiting, .paused].contains($0.machine.phase) } }

    /// Whether the operation has its outcome and has notified the code that waits for it.
    var isEnded: Bool { state.withLock { $0.machine.phase == .ended } }

    func start(for owner: any AttemptOwner) {
        let (action, observation) = state.withLock { state in
            let action = state.machine.start()
            if state.machine.phase != .ended { state.owner = owner }
            return (action, state.observation)
        }
        observation?.record(.started, 0, by: owner)
        perform(action)
    }

    func setSuspended(_ isSuspended: Bool) {
        let action = state.withLock { isSuspended ? $0.machine.suspend() : $0.machine.resume() }
        if let (owner, number) = running() {
            record(.suspended(isSuspended), number, owner)
            let now = owner.clock.now
            let isLimited = state.withLock { state in
                if state.policies?.mayTryAgain == true { state.history.suspend(isSuspended, now: now) }
                isSuspended ? state.attempt.time?.suspend(now: now) : state.attempt.time?.resume(now: now)
                return state.attempt.time != nil
            }
            if isLimited { watchTime(number, owner) }
        }
        // The report of the last decision precedes the steps that follow from it.
        let order = isSuspended ? nil : state.withLock { exchange(&$0.delayedStep, with: nil) }
        if let order { order.second { self.perform(action) } } else { perform(action) }
    }

    /// Performs an action, and the actions that follow from it on this thread.
    func perform(_ action: AttemptMachine.Action) {
        var next = action
        while next != .none {
            switch next {
            case .none: return
            case .prepare: next = prepare()
            case .clear: next = clear()
            case .createTask: next = createTask()
            case .resumeOrSuspendTask: next = resumeOrSuspendTask()
            case .evaluate:
                return chooseEvaluationThread()
            case .decide: next = decide()
            case .wait(let pause): next = wait(pause)
            case .rest(let reason): next = rest(reason)
            case .takeSlot: next = takeSlot()
            case .conclude: next = conclude()
            }
        }
    }

    /// Evaluates the response in one of three places.
    ///
    /// If no code of the user runs except the status rule and the decoding, a small response is evaluated in the task
    /// that waits in `run()`. Any other response is evaluated on this thread if it may block, which the thread of a
    /// session may not, and otherwise on a thread of the `EvaluationPool`.
    private func chooseEvaluationThread() {
        let (owner, count) = state.withLock { ($0.owner, $0.attempt.received) }
        let isBrief = count <= Self.mostBytesInTask && owner?.evaluatesBriefly == true
        @Sendable func evaluateNow() {
            if isBrief, owner?.workingTaskWait?.perform(evaluateInAwaitingTask) == true { return }
            if BorrowedThread.mayBlock { return perform(evaluate()) }
            EvaluationPool.shared.run { self.perform(self.evaluate()) }
        }
        // A busy session ends several tasks one after another, and wakes the threads of their waiting tasks together.
        let deferredWork = isBrief && owner?.workingTaskWait != nil ? SessionDeferredWork.current : nil
        if let deferredWork { deferredWork.deferWork(evaluateNow) } else { evaluateNow() }
    }

    /// Evaluates the response in the task that waits for the operation.
    ///
    /// After a failure, policies, closures of the user and other attempts follow, so the task does not perform these
    /// steps.
    private func evaluateInAwaitingTask() {
        let action = evaluate()
        if action == .conclude { perform(action) } else { performElsewhere(action) }
    }

    /// The number of bytes that the task that waits for the operation decodes itself, which takes about a millisecond.
    private static let mostBytesInTask: Int64 = 64 << 10

    /// Returns the operation and the number of the attempt, or nil if the operation is over.
    func running() -> (owner: any AttemptOwner, number: Int)? {
        state.withLock { state in state.owner.map { ($0, state.machine.attempt) } }
    }

    /// Records that the current step failed.
    ///
    /// - Parameter isTransfer: Whether only the transfer failed, which is ignored once the response is complete.
    func failed(
        _ error: any Error, _ phase: NetworkError.Phase, _ number: Int, isTransfer: Bool = false
    ) -> AttemptMachine.Action {
        let (action, isFirst) = keep(NetworkError(error, phase: phase)) {
            isTransfer ? $0.transferFailed(number) : $0.failed(number)
        }
        if isFirst { reportFailure(number) }
        return action
    }

    /// Stores the error of an event, and returns whether the event is the first failure of its attempt.
    func keep(
        _ error: NetworkError, of event: (inout AttemptMachine) -> AttemptMachine.Action
    ) -> (action: AttemptMachine.Action, isFirst: Bool) {
        var left: (error: NetworkError?, timer: (any OperationTimer)?)
        let result = state.withLock { state in
            let before = state.machine.phase
            let action = event(&state.machine)
            // A later failure of the same attempt contains less information than the first one.
            guard state.machine.phase == .deciding, before != .deciding else { return (action, false) }
            left = state.attempt.fail(error)
            return (action, true)
        }
        left.timer?.cancel()
        return result
    }

    /// Reports that an attempt failed.
    ///
    /// The report precedes the decision, because a suspension may delay the decision. The thread that decides reports
    /// the failure too, and the second report is ignored.
    func reportFailure(_ number: Int) {
        let (owner, error, count) = state.withLock {
            ($0.machine.attempt == number ? $0.owner : nil, $0.attempt.error, $0.attempt.received)
        }
        if let owner, let error { record(.failed(error, count: count), number, owner) }
    }
}

extension NetworkAttempts {
    /// Returns the response for callers that require one.
    func needResponse(of head: ResponseHead) throws(NetworkError) -> HTTPURLResponse {
        guard let response = response(of: head) else {
            throw NetworkError(
                code: .invalidResponse, phase: .evaluating,
                message: "Foundation cannot represent the response as an HTTPURLResponse. Use an evaluator or a rule "
                    + "that receives a NetworkResponse, or override evaluate(result:head:).")
        }
        return response
    }

    /// Returns Foundation's response, which is created from the headers at the first call, or `nil` if Foundation
    /// cannot represent the headers.
    func response(of head: ResponseHead) -> HTTPURLResponse? {
        if let known = state.withLock({ $0.attempt.head == head ? $0.attempt.response : nil }) { return known }
        guard let made = HTTPURLResponse(head) else { return nil }
        return state.withLock { state in
            // The response of an earlier attempt is not requested again, so it is not stored.
            guard state.attempt.head == head else { return made }
            if state.attempt.response == nil { state.attempt.response = made }
            return state.attempt.response ?? made
        }
    }
}

// Slots in queues, which are released for a wait and requested again.
extension NetworkAttempts {
    private var waitNumber: UInt32 { UInt32(truncatingIfNeeded: state.withLock { $0.machine.round }) }

    func rest(_ owner: any AttemptOwner, _ reason: WaitReason) { owner.rest(waitNumber, because: reason) }

    /// Requests a slot in the operation's queue.
    ///
    /// - Parameter turns: Orders the continuation of the operation after its pending notifications.
    func takeSlot(_ turns: NotificationOrder? = nil) -> AttemptMachine.Action {
        guard let (owner, number) = running() else { return .none }
        let mayContinue = owner.wake(waitNumber) { [weak self] in
            guard let self else { return }
            let action = returned(turns)
            guard let turns, action != .none else { return perform(action) }
            turns.second { self.perform(action) }
        }
        if mayContinue { return returned(turns) }
        // The server is not responsible for this wait.
        let now = owner.clock.now
        state.withLock { state in
            if state.machine.phase == .returning, state.machine.attempt == number {
                state.history.markHeldOrPaused(now: now)
            }
        }
        return .none
    }

    /// Returns the next action of an operation that has a slot.
    private func returned(_ turns: NotificationOrder?) -> AttemptMachine.Action {
        state.withLock { state in
            guard state.owner != nil else { return .none }
            let wasReturning = state.machine.phase == .returning
            let action = state.machine.returned(state.machine.attempt)
            // A suspension delays the preparation, which must still follow the report.
            if let turns, wasReturning, action == .none { state.delayedStep = turns }
            return action
        }
    }

    /// Performs an action on a global queue, because it may run user code, which must not block this thread.
    ///
    /// Only slots are requested and released on this thread, in the order of the events.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - turns: Orders everything that follows after `notify`.
    ///   - notify: A closure that is called on the global queue.
    func performElsewhere(
        _ action: AttemptMachine.Action, _ turns: NotificationOrder = NotificationOrder(),
        notifying notify: (@Sendable () -> Void)? = nil
    ) {
        let next =
            switch action {
            case .takeSlot: takeSlot(turns)
            case .rest(let reason): rest(reason)
            default: action
            }
        DispatchQueue.global().async {
            turns.first { notify?() }
            self.perform(next)
        }
    }
}

// The time limit of one attempt, on the operation's clock.
extension NetworkAttempts {
    /// Stops the time limit, because the attempt is over or is waiting for something other than the server.
    ///
    /// The time limit starts from scratch with the next preparation.
    func stopTime() {
        state.withLock { $0.attempt.stopTime() }?.cancel()
    }

    /// Records the preparation of an attempt with policies, and starts its time limit.
    func begin(_ policies: AttemptPolicies, _ number: Int, _ owner: any AttemptOwner) {
        let (now, limit) = (owner.clock.now, policies[.retry]?.attemptTimeout)
        state.withLock { state in
            if policies.mayTryAgain { state.beginHistory(number, now: now) }
            guard let limit, state.machine.attempt == number else { return }
            state.attempt.time = AttemptTime(max(limit, .zero), now: now, isSuspended: state.machine.isSuspended)
        }
        if limit != nil { watchTime(number, owner) }
    }

    /// Limits the wait for the rest of a response that a policy refused.
    func drain(_ head: ResponseHead, _ number: Int) {
        guard let (owner, present) = running(), present == number else { return }
        let now = owner.clock.now
        let hasChanged = state.withLock { state in
            guard state.machine.refusedResponse(number) else { return false }
            if state.attempt.head == nil { state.attempt.head = head }
            let left = min(state.attempt.time?.left(at: now) ?? Self.drainTime, Self.drainTime)
            state.attempt.time = AttemptTime(left, now: now, isSuspended: state.machine.isSuspended)
            return true
        }
        if hasChanged { watchTime(number, owner) }
    }

    /// A new connection takes less time.
    private static let drainTime = Duration.seconds(2)

    /// Schedules a timer for the end of the time limit, as far as it is known now.
    private func watchTime(_ number: Int, _ owner: any AttemptOwner) {
        guard let end = state.withLock({ $0.machine.attempt == number ? $0.attempt.time?.end : nil }) else { return }
        let timer = owner.clock.schedule(at: end) { [weak self] in self?.timeMayBeOver(number) }
        var old: (any OperationTimer)? = timer
        state.withLock { state in
            // If another thread changed the time in the meantime, it has scheduled its own timer.
            if state.machine.attempt == number, state.attempt.time?.end == end { swap(&old, &state.attempt.timeout) }
        }
        old?.cancel()
    }

    private func timeMayBeOver(_ number: Int) {
        guard let (owner, present) = running(), present == number else { return }
        let (now, keptBytes) = (owner.clock.now, owner.errorBodyBytes)
        var left: (task: (any NetworkTask)?, adaptation: Task<Void, Never>?)
        // An error may hold a user's object, so it is released without holding the lock.
        var old: NetworkError?
        // Check and change the state in one step, because the response may become complete at this moment.
        let action = state.withLock { state in
            guard state.machine.attempt == number, let end = state.attempt.time?.end, end <= now else {
                return AttemptMachine.Action.none
            }
            let error = state.timeoutError
            let action = state.machine.exceededTimeLimit(number)
            switch state.machine.phase {
            case .deciding: old = exchange(&state.attempt.error, with: error)
            case .evaluating:
                // No more data of the refused response is read, so the collector must exist even if no data arrived.
                if state.attempt.collector == nil { state.attempt.collector = ErrorBodyCollector(limit: keptBytes) }
            default: return action
            }
            // This timer is the one that has fired.
            _ = state.attempt.stopTime()
            left = (state.task, state.attempt.adaptation)
            return action
        }
        extendLifetime(old)
        left.adaptation?.cancel()
        left.task?.endForAttempt()
        reportFailure(number)
        perform(action)
    }
}

extension NetworkAttempts.State {
    /// The error for the end of the time limit, with the phase of the attempt.
    ///
    /// A request counts as sent once its task may have been resumed.
    fileprivate var timeoutError: NetworkError {
        let phase: NetworkError.Phase =
            [.preparing, .clearing].contains(machine.phase)
            ? .checking : attempt.head == nil ? .awaitingResponse : .receiving
        let error = NetworkError(
            code: .timedOut, phase: phase,
            message: "The attempt took longer than retry.attemptTimeout allows. Allow more time, or request less data.")
        return error.completed(request: attempt.currentRequest, head: attempt.head)
    }
}

/// The remaining time of an attempt, as a value that receives the current time as an argument.
///
/// The time runs from the preparation until the response is complete, except while the operation is suspended.
package struct AttemptTime: Sendable, Equatable {
    private var left: Duration
    /// The time from which `left` counts, or nil while the time is paused.
    private var since: OperationInstant?

    package init(_ limit: Duration, now: OperationInstant, isSuspended: Bool) {
        left = limit
        since = isSuspended ? nil : now
    }

    /// The time at which the limit is reached, or nil if the time is paused.
    package var end: OperationInstant? { since?.advanced(by: left) }

    /// Returns the time that remains at a moment.
    package func left(at now: OperationInstant) -> Duration { end.map { now.duration(to: $0) } ?? left }

    /// Pauses the time.
    package mutating func suspend(now: OperationInstant) {
        guard let since else { return }
        left -= max(since.duration(to: now), .zero)
        self.since = nil
    }

    /// Continues the time.
    package mutating func resume(now: OperationInstant) {
        if since == nil { since = now }
    }
}

/// The policies that were set on an operation itself, so that it does not inherit them from a group.
package struct ExplicitPolicies: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    static let retry = ExplicitPolicies(rawValue: 1)
    static let offline = ExplicitPolicies(rawValue: 2)
    static let realms = ExplicitPolicies(rawValue: 4)
    static let all: ExplicitPolicies = [.retry, .offline, .realms]
}
