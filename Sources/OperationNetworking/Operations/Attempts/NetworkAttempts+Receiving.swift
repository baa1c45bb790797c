// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Events of an attempt's task, on the thread of the session.
extension NetworkAttempts {
    /// Records the headers of a file that is being saved, because the task reports them only when the file is
    /// complete.
    func willReceive(_ head: ResponseHead, _ number: Int) {
        state.withLock { if $0.machine.acceptsEvents(number) { $0.attempt.head = head } }
    }

    /// Returns whether a policy refuses the response, so that its file must not be moved to the destination.
    ///
    /// The call may come after the attempt was abandoned. In this case, the response is no longer needed.
    func refuses(_ head: ResponseHead, _ number: Int) -> Bool {
        let (request, policies, isWanted) = state.withLock {
            ($0.attempt.request, $0.policies, $0.machine.acceptsEvents(number))
        }
        guard isWanted else { return true }
        guard let request, policies?.refuse(head, of: request, number) == true else { return false }
        drain(head, number)
        return true
    }

    /// Records how much of a file is on disk, including the data of earlier attempts.
    func saved(_ progress: DownloadProgress, _ number: Int) {
        let owner = state.withLock { state in
            let owner = state.receivingOwner(number)
            if owner != nil { (state.attempt.received, state.attempt.saved) = (progress.received, progress.received) }
            return owner
        }
        if let owner { reporter.record(.download, progress.received, of: progress.total, for: owner) }
    }

    /// Returns whether the file may be moved to its destination, and stops the time limit in this case.
    ///
    /// The next attempt could not replace the file that an abandoned attempt is moving to the destination.
    func mayPublish(_ number: Int) -> Bool {
        let (isWanted, timer): (Bool, (any OperationTimer)?) = state.withLock { state in
            guard state.machine.acceptsEvents(number) else { return (false, nil) }
            return (true, state.attempt.stopTime())
        }
        timer?.cancel()
        return isWanted
    }

    /// Cancels the task, because its response is not needed.
    fileprivate func giveUp(_ task: any NetworkTask, _ error: any Error, _ number: Int) {
        let action = failed(error, .receiving, number)
        task.cancel()
        perform(action)
    }

    /// Records that the response is complete, so that the attempt can no longer exceed its time limit.
    fileprivate func transferred(_ number: Int) -> AttemptMachine.Action {
        let (action, timer): (AttemptMachine.Action, (any OperationTimer)?) = state.withLock { state in
            guard state.machine.acceptsEvents(number) else { return (.none, nil) }
            return (state.machine.transferred(number), state.attempt.stopTime())
        }
        timer?.cancel()
        return action
    }

    /// - Parameter isOnlyReport: Whether no other source reports that the whole body was sent.
    func sent(_ count: Int64, of total: Int64?, _ number: Int, isOnlyReport: Bool) {
        let owner = state.withLock { $0.receivingOwner(number) }
        guard let owner else { return }
        reporter.record(.upload, count, of: total, for: owner)
        if count == total, isOnlyReport { record(.hop(.bodySent), number, owner) }
    }
}

/// A receiver that handles the events of the task of one attempt.
package final class AttemptReceiver: NetworkReceiver {
    /// The attempts, or nil once the attempt is over.
    ///
    /// A task may keep its receiver forever, and the attempts keep the task.
    private let attempts: Locked<NetworkAttempts?>
    private let number: Int
    /// Whether an observer is notified of the requests that the session sends for the task.
    private let isObserved: Bool
    /// Whether the session reports each request, and with it the end of its body.
    private let hasHops = Atomic(false)

    init(_ attempts: NetworkAttempts, _ number: Int) {
        self.attempts = Locked(attempts)
        self.number = number
        isObserved = attempts.isObserved.load(ordering: .relaxed)
    }

    /// Ends the attempt, so that later events are ignored.
    func detach() {
        attempts.release { exchange(&$0, with: nil) }
    }

    /// Whether the attempt is over, so that all calls are ignored.
    var isOver: Bool { present == nil }

    private var present: NetworkAttempts? { attempts.withLock { $0 } }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        guard let attempts = present else { return }
        let (owner, request, policies) = attempts.state.withLock { state in
            let owner = state.receivingOwner(number)
            if owner != nil { state.attempt.head = head }
            return (owner, state.attempt.request, state.policies)
        }
        guard let owner, let request else { return }
        attempts.record(.hop(.received(head)), number, owner)
        let isRefusedByPolicy = policies?.refuse(head, of: request, number) == true
        let isRefused = isRefusedByPolicy && owner.accepts(head)
        // An event stream has no end to wait for, and a new connection costs less than a long wait.
        if isRefused, head.expectedLength ?? .max > Self.drainLimit {
            return attempts.giveUp(task, NetworkError.refusedByPolicy(head), number)
        }
        do {
            // The operation's own collector must not receive a response that a policy refuses.
            let collector =
                isRefused
                ? ErrorBodyCollector(limit: owner.errorBodyBytes) : try owner.makeCollectorOfAttempt(for: head)
            var old: (any AnyResponseCollector)? = collector
            attempts.state.withLock { state in
                if state.machine.acceptsEvents(number) { swap(&old, &state.attempt.collector) }
            }
            extendLifetime(old)
            // A refused response is no progress, and another response may follow.
            if !(collector is ErrorBodyCollector) {
                attempts.reporter.record(.download, nil, of: head.expectedLength, for: owner)
            }
            if isRefusedByPolicy { attempts.drain(head, number) }
        } catch {
            attempts.giveUp(task, error, number)
        }
    }

    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        guard let attempts = present else { return }
        let (owner, collector, count) = attempts.state.withLock { state in
            let owner = state.receivingOwner(number)
            if owner != nil { state.attempt.received += Int64(bytes.count) }
            return (owner, state.attempt.collector, state.attempt.received)
        }
        guard let owner, let collector else { return }
        do {
            try collector.receive(bytes, flow: task)
            if collector is ErrorBodyCollector { return }
            // The expected length was recorded with the headers.
            attempts.reporter.record(.download, count, of: nil, for: owner)
        } catch is ReadLimitReached {
            let action = attempts.transferred(number)
            task.cancel()
            attempts.perform(action)
        } catch {
            attempts.giveUp(task, error, number)
        }
    }

    /// The maximum length of a refused response that is read so that its connection can be reused.
    private static var drainLimit: Int64 { 64 << 10 }

    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        guard let attempts = present else { return }
        // The machine ignores the end of a transfer that was canceled because enough data arrived.
        if let error {
            attempts.perform(attempts.failed(error, error.phase, number, isTransfer: true))
        } else {
            attempts.perform(attempts.transferred(number))
        }
    }

    package func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) { sent(count, of: total) }

    package func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        guard let attempts = present else { return }
        let owner = attempts.state.withLock { state in
            let owner = state.receivingOwner(number)
            if owner != nil { state.metrics = metrics }
            return owner
        }
        if let owner { attempts.record(.hop(.measured(metrics)), number, owner) }
    }

    package func taskMaySend(_ task: any NetworkTask) -> Bool { present?.maySend(number) ?? false }

    package var nextReceiver: (any NetworkReceiver)? {
        isObserved ? HopObserverReceiver { self.record($0) } : nil
    }

    /// Reports that a part of the request's body was sent.
    ///
    /// The report may come when the next request has begun, which has another body.
    package func sent(_ count: Int64, of total: Int64?) {
        present?.sent(count, of: total, number, isOnlyReport: !hasHops.load(ordering: .relaxed))
    }

    /// Records the headers that the task will report again when the file is complete.
    package func willReceive(_ head: ResponseHead) {
        present?.willReceive(head, number)
    }

    /// Returns whether the file of the response must not be moved to its destination.
    package func refuses(_ head: ResponseHead) -> Bool {
        present?.refuses(head, number) ?? true
    }

    /// Reports how much of a file is on disk.
    package func saved(_ progress: DownloadProgress) {
        present?.saved(progress, number)
    }

    /// Returns whether the complete file may be moved to its destination.
    package func mayPublish() -> Bool { present?.mayPublish(number) ?? false }

    private func record(_ step: HopStep) {
        if case .begins = step { hasHops.store(true, ordering: .relaxed) }
        present?.reportHop(step, number)
    }
}

extension AttemptReceiver: DownloadHost {}

/// The part of a network operation that its attempts call, with the hooks and the type parameters.
package protocol AttemptOwner: AnyNetworkOperation {
    var networkAttempts: NetworkAttempts { get }
    /// Creates the request with the synchronous hooks.
    func requestOfAttempt() throws -> NetworkRequest
    /// Returns the request of a hook or a change, without the headers of the operation's base if the hook or the change
    /// sends it to another origin.
    func checked(_ changed: NetworkRequest, madeOf request: NetworkRequest) -> NetworkRequest
    /// Whether there is an asynchronous hook to call.
    var adaptsRequests: Bool { get }
    func adaptRequest(_ request: NetworkRequest) async throws -> NetworkRequest
    /// The session of the operation if it is an `ExchangeSession`, which may limit the rate of requests.
    var exchangeOfAttempts: ExchangeSession? { get }
    /// Creates a task that reports to the receiver, or that the user's own code handles.
    func makeTask(_ request: NetworkRequest, _ receiver: AttemptReceiver) throws -> any NetworkTask
    /// Creates the collector for the body of a response.
    func makeCollectorOfAttempt(for head: ResponseHead) throws -> any AnyResponseCollector
    /// Returns whether the status of a response indicates success.
    func accepts(_ head: ResponseHead) -> Bool
    /// The maximum number of body bytes that an error contains.
    var errorBodyBytes: Int { get }
    /// Whether the evaluation runs no code of the user except the status rule and the decoding, which consists of
    /// `makeDecoder`, its decoder and the initializers of the result type.
    var evaluatesBriefly: Bool { get }
    /// Creates the result, and returns a closure that passes it to the operation.
    func evaluate(_ answer: ReceivedResponse) throws -> Work
    /// Whether the purpose of the operation is a file, even if its request has a body.
    var isDownload: Bool { get }
    /// The unchanged result of the last task.
    var anyTaskResult: Any? { get }
    /// The outcome, with its result as a value of any type.
    var outcomeOfAnyType: OperationOutcome<any Sendable, NetworkError>? { get }
    /// Notifies the delegates of the end, each on its queue, if the operation has ended and they were not notified
    /// before.
    func notifyDelegateOfEnd()
    func notifyOfEnd(_ delegate: any NetworkOperationDelegate)
    /// Ends the operation with an error.
    func fail(with error: NetworkError)
}
