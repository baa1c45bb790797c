// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

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
        let (observation, host): (NetworkObservation?, (any AttemptHost)?) = state.withLock { state in
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
