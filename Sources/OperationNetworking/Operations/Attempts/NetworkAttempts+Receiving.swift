// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// What the task of an attempt tells, on the session's thread.
extension NetworkAttempts {
    func received(_ head: ResponseHead, by task: any NetworkTask, _ number: Int) {
        let (host, request): ((any AttemptHost)?, NetworkRequest?) = state.withLock { state in
            guard state.machine.mayBeTold(number) else { return (nil, nil) }
            state.take(head)
            return (state.host, state.request)
        }
        guard let host, let request else { return }
        note(.received(head), number, host)
        let isJudged = judge(head, request, number)
        let isRefused = isJudged && host.accepts(head)
        // A stream of events has no end that could be waited for, and its connection is worth less than the time.
        if isRefused, head.expectedLength ?? .max > Self.longestRefusal {
            return giveUp(task, NetworkError.refusedByPolicy(head), number)
        }
        do {
            // What is no success for them is not for the operation's own collector.
            let collector =
                isRefused
                ? ErrorBodyCollector(limit: host.errorBodyBytes) : try host.makeCollector(for: head, of: request)
            var old: AnyResponseCollector? = collector
            state.withLock { state in
                if state.machine.mayBeTold(number) { swap(&old, &state.collector) }
            }
            withExtendedLifetime(old) {}
            // What is refused is no progress, and may be followed by another answer.
            if !(collector is ErrorBodyCollector) {
                teller.note(.download, nil, of: head.expectedLength, for: host)
            }
            if isJudged { linger(head, number) }
        } catch {
            giveUp(task, error, number)
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer, by task: any NetworkTask, _ number: Int) {
        let (host, collector, count): ((any AttemptHost)?, AnyResponseCollector?, Int64) = state.withLock { state in
            guard state.machine.mayBeTold(number) else { return (nil, nil, 0) }
            state.received += Int64(bytes.count)
            return (state.host, state.collector, state.received)
        }
        guard let host, let collector else { return }
        do {
            try collector.receive(bytes, flow: task)
            if collector is ErrorBodyCollector { return }
            teller.note(.download, count, of: head?.expectedLength, for: host)
        } catch is EnoughOfBody {
            let action = transferred(number)
            task.cancel()
            perform(action)
        } catch {
            giveUp(task, error, number)
        }
    }

    /// So many bytes of a refused response are read, so that its connection can be used again.
    private static var longestRefusal: Int64 { 64 << 10 }

    /// The head of a file that is being saved: it is told by itself only when all of it is there.
    func foresee(_ head: ResponseHead, _ number: Int) {
        state.withLock { state in
            if state.machine.mayBeTold(number) { state.take(head) }
        }
    }

    /// Whether one of those who have a say refuses the response that begins: a file of it must not come to its place.
    ///
    /// It may be told late, when the attempt was given up: nothing of that response is wanted any more.
    func refuses(_ head: ResponseHead, _ number: Int) -> Bool {
        let (request, isWanted) = state.withLock { ($0.request, $0.machine.mayBeTold(number)) }
        guard isWanted else { return true }
        guard let request, judge(head, request, number) else { return false }
        linger(head, number)
        return true
    }

    /// Shows the head to those who have a say, as early as possible; whether one of them refuses the response.
    private func judge(_ head: ResponseHead, _ request: NetworkRequest, _ number: Int) -> Bool {
        let policies = state.withLock { $0.policies }
        guard !policies.isEmpty else { return false }
        var isRefused = false
        for policy in policies where policy.refuses(head, of: request, number) { isRefused = true }
        state.withLock { if $0.machine.mayBeTold(number) { $0.isRefused = isRefused } }
        return isRefused
    }

    /// So much of a file is on the disk: what was there before this attempt counts, too.
    func saved(_ progress: DownloadProgress, _ number: Int) {
        let host: (any AttemptHost)? = state.withLock { state in
            guard state.machine.mayBeTold(number) else { return nil }
            (state.received, state.saved) = (progress.received, progress.received)
            return state.host
        }
        if let host { teller.note(.download, progress.received, of: progress.total, for: host) }
    }

    /// What came is not wanted: the rest of it is not, either.
    private func giveUp(_ task: any NetworkTask, _ error: any Error, _ number: Int) {
        let action = failed(error, .receiving, number)
        task.cancel()
        perform(action)
    }

    func transferEnded(_ error: NetworkError?, _ number: Int) {
        // A transfer of which enough came was cancelled by ourselves, and its end is no failure.
        guard state.withLock({ $0.machine.mayBeTold(number) }) else { return }
        if let error {
            perform(failed(error, error.phase, number, isTransfer: true))
        } else {
            perform(transferred(number))
        }
    }

    /// The response is complete, so that the attempt cannot run out of time any more.
    private func transferred(_ number: Int) -> AttemptMachine.Action {
        var timer: (any OperationTimer)?
        let action = state.withLock { state in
            guard state.machine.mayBeTold(number) else { return AttemptMachine.Action.none }
            timer = state.stopTime()
            return state.machine.transferred(number)
        }
        timer?.cancel()
        return action
    }

    /// - Parameter isLastWord: Whether nobody else tells that all of a body was sent.
    func sent(_ count: Int64, of total: Int64?, _ number: Int, isLastWord: Bool) {
        let host = state.withLock { $0.machine.mayBeTold(number) ? $0.host : nil }
        guard let host else { return }
        teller.note(.upload, count, of: total, for: host)
        if count == total, isLastWord { note(.bodySent, number, host) }
    }

    func collected(_ metrics: TransferMetrics, _ number: Int) {
        let (observation, host): ((any AttemptObservation)?, (any AttemptHost)?) = state.withLock { state in
            guard state.machine.mayBeTold(number) else { return (nil, nil) }
            state.metrics = metrics
            return (state.observation, state.observation == nil ? nil : state.host)
        }
        if let observation, let host { observation.note(.measured(metrics), number, by: host) }
    }
}

extension NetworkAttempts.State {
    /// There is a head, maybe in the place of another one, of which a response may have been made.
    fileprivate mutating func take(_ head: ResponseHead) {
        self.head = head
        response = nil
    }
}

/// Hands what a task tells on to the attempts of its operation, with the number of the attempt.
package final class AttemptReceiver: NetworkReceiver {
    /// Nil once the attempt is over: a task may keep its receiver for as long as it likes, and the attempts keep the task.
    private let attempts: Locked<NetworkAttempts?>
    private let number: Int
    /// Whether somebody is told of the requests that the session sends for it.
    private let isObserved: Bool
    /// Whether the session tells of each request, and with that when its body was sent.
    private let hasHops = Atomic(false)

    init(_ attempts: NetworkAttempts, _ number: Int, isObserved: Bool) {
        self.attempts = Locked(attempts)
        self.number = number
        self.isObserved = isObserved
    }

    /// The attempt is over: what comes from now on is not heard.
    func letGo() {
        let left = attempts.withLock { exchange(&$0, with: nil) }
        withExtendedLifetime(left) {}
    }

    /// Whether the attempt is over, so that all calls are ignored.
    var isOver: Bool { present == nil }

    private var present: NetworkAttempts? { attempts.withLock { $0 } }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        present?.received(head, by: task, number)
    }

    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        present?.received(bytes, by: task, number)
    }

    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        present?.transferEnded(error, number)
    }

    package func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) { sent(count, of: total) }

    package func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        present?.collected(metrics, number)
    }

    package func taskMayLeave(_ task: any NetworkTask) -> Bool { present?.mayLeave(number) ?? false }

    package var nextReceiver: (any NetworkReceiver)? { isObserved ? HopObserverReceiver(self) : nil }

    /// So much of the body of the request was sent.
    ///
    /// Word of it may come when the next request has begun, whose body is another.
    func sent(_ count: Int64, of total: Int64?) {
        present?.sent(count, of: total, number, isLastWord: !hasHops.load(ordering: .relaxed))
    }

    /// That will be the head, if all goes well; it is told again in the end.
    func foresee(_ head: ResponseHead) {
        present?.foresee(head, number)
    }

    /// Whether a file of that response must not come to its place.
    func refuses(_ head: ResponseHead) -> Bool {
        present?.refuses(head, number) ?? true
    }

    /// So much of a file is on the disk.
    func saved(_ progress: DownloadProgress) {
        present?.saved(progress, number)
    }
}

extension AttemptReceiver: DownloadHost {}

extension AttemptReceiver: HopWatcher {
    package func hopBegins(_ request: NetworkRequest) {
        hasHops.store(true, ordering: .relaxed)
        present?.noteHop(.hopBegins(request), number)
    }

    package func sentBody() { present?.noteHop(.bodySent, number) }

    package func left(_ head: ResponseHead) { present?.noteHop(.left(head), number) }

    package func answered(_ head: ResponseHead) { present?.noteHop(.received(head), number) }

    package func measured(_ metrics: TransferMetrics) { present?.noteHop(.measured(metrics), number) }

    package func hopIsOver() { present?.noteHop(.hopIsOver, number) }
}

/// The side of a network operation that its attempts call: hooks and types.
package protocol AttemptHost: AnyNetworkOperation {
    /// Makes the request, by the synchronous hooks.
    func requestOfAttempt() throws -> NetworkRequest
    /// Whether there is an asynchronous hook to be called.
    var adaptsRequests: Bool { get }
    func adaptRequest(_ request: NetworkRequest) async throws -> NetworkRequest
    /// The session of the operation if it is an `ExchangeSession`, which may limit the rate of requests.
    var exchangeOfAttempts: ExchangeSession? { get }
    /// Makes a task that tells the receiver, or that the user's own code follows.
    func makeTask(_ request: NetworkRequest, _ receiver: AttemptReceiver) throws -> any NetworkTask
    /// Makes what takes in the body of a response.
    func makeCollector(for head: ResponseHead, of request: NetworkRequest) throws -> AnyResponseCollector
    /// Whether such a response is a success, as far as its head says.
    func accepts(_ head: ResponseHead) -> Bool
    /// How many bytes of the body an error carries.
    var errorBodyBytes: Int { get }
    /// Makes the result, and returns what gives it to the operation.
    func evaluate(_ answer: Answer) throws -> @Sendable () -> Void
    /// What the last task gave, as it came.
    var anyTaskResult: Any? { get }
    /// The outcome, with its result as a value of any type.
    var outcomeOfAnyType: OperationOutcome<any Sendable, NetworkError>? { get }
    /// Notifies the delegates of the end, each on its queue, if the operation has ended and they were not notified before.
    func tellDelegateOfEnd()
    func tellOfEnd(_ delegate: any NetworkOperationDelegate)
    /// Ends the operation with an error.
    func fail(with error: NetworkError)
}
