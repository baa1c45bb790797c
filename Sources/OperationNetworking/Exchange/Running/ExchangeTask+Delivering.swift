// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From the answer to its receiver.
extension ExchangeTask {
    /// Hands the head over, and lets the body follow.
    func deliver(_ head: ResponseHead, from source: ResponseSource, step: Int) {
        let hop = source.prepared.hop
        if let limit = configuration.limits.bodyBytes, Self.announcedLength(of: head, to: hop) > limit {
            if isPresent(step) { finish(bodyTooLarge(head.status, limit)) }
            return discard(source)
        }
        let tee = source.task.flatMap { _ in keep(head, from: source) }
        switch state.withLock({ $0.machine.delivers(source, head, tee, step) }) {
        case .drop:
            tee?.end(isComplete: false)
            discard(source)
        case .keep: settle()
        case .finish(let error):
            tee?.end(isComplete: false)
            finish(error)
        case .tellHead(let after):
            calls.make { [self] in $0.task(self, didReceive: head) }
            if case .release = after { release(.decision) }
        case .tellKept(let broken):
            tellKeptHead()
            if let broken { finish(broken) }
        }
    }

    /// Hands over the head that was kept, if no call that is being made on another thread sets a brake, and lets the body
    /// follow.
    func tellKeptHead() {
        calls.make { [self] receiver in
            guard let head = state.withLock({ $0.machine.tellsHead() }) else { return }
            receiver.task(self, didReceive: head)
        } after: { [self] in
            if let release = state.withLock({ $0.machine.headWasTold() }) { perform(release) }
        }
    }

    /// How many bytes of a body are to come, as far as that is told: whatever a head says, some have none.
    static func announcedLength(of head: ResponseHead, to hop: Hop) -> Int64 {
        hop.method == "HEAD" || [204, 304].contains(head.status) ? 0 : head.expectedLength ?? 0
    }

    /// Something that writes the response to the cache, if it is to be kept.
    func keep(_ head: ResponseHead, from source: ResponseSource) -> CacheTee? {
        guard let cache = configuration.cache, case .network(let flight) = source else { return nil }
        let hop = flight.prepared.hop
        let response = CachedResponse(
            head, to: flight.prepared.wishes, requested: flight.sent, received: configuration.now(), key: cache.key)
        guard CacheRules.mayStore(response, method: hop.method, request: flight.prepared.headers) else { return nil }
        return CacheTee(response, at: flight.prepared.resource, in: cache, since: flight.prepared.moment)
    }

    private func bodyTooLarge(_ status: Int?, _ limit: Int64) -> NetworkError {
        var error = error(
            .bodyTooLarge, .receiving,
            "The body is larger than \(limit) bytes. Raise bodyBytes of the limits, or ask for a part of it.")
        error.status = status
        return error
    }

    /// Bytes came from the session.
    func received(_ bytes: UnsafeRawBufferPointer, by task: any NetworkTask, step: Int) {
        let limit = configuration.limits.bodyBytes ?? .max
        let fate = state.withLock {
            $0.machine.received(bytes.count, limit: limit, drainLimit: Self.drainLimit, step)
        }
        switch fate {
        case .ignore: break
        case .discard(let tee, let isEnough):
            // Less than what the cache would ask to be held for.
            tee?.append(bytes, hold: {}, proceed: {})
            if isEnough { task.cancel() }
        case .tooMany: finish(bodyTooLarge(nil, limit))
        case .tooSoon: finish(ExchangeMachine<ResponseSource, NextStep, CacheTee>.toldWhileHeld)
        case .handOver(let tee): handOver(bytes, tee)
        }
    }

    private func handOver(_ bytes: UnsafeRawBufferPointer, _ tee: CacheTee?) {
        tee?.append(bytes, hold: { setBrake(.cache) }, proceed: { [weak self] in self?.release(.cache) })
        if !calls.makeNow({ $0.task(self, didReceive: bytes) }) {
            // A call is being made on another thread: these bytes come after it.
            let copy = Data(bytes)
            calls.make { receiver in copy.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
        }
    }

    /// The request ended.
    func ended(_ error: NetworkError?, step: Int) {
        switch state.withLock({ $0.machine.ended(error, step) }) {
        case .ignore: break
        case .finish(let error): finish(error)
        case .goOn(let next, let tee):
            tee?.end(isComplete: error == nil)
            state.withLock { $0.watcher }?.hopIsOver()
            go(next)
        case .failed(.network(let flight)): fail(flight, error, step: step)
        case .failed: break
        }
    }

    /// A request ended without a response.
    private func fail(_ flight: Flight, _ error: NetworkError?, step: Int) {
        let error =
            error ?? self.error(.invalidResponse, .awaitingResponse, "The session ended without a response.")
        // What its receiver took back is wanted from nowhere.
        guard error.code != .cancelled, let next = stale(flight) else { return finish(error) }
        guard state.withLock({ $0.machine.failsOver(step) }) else { return }
        state.withLock { $0.watcher }?.hopIsOver()
        go(next)
    }

    /// Something of the answer that is neither head nor body.
    func handOn(step: Int, _ call: @escaping @Sendable (any NetworkReceiver, ExchangeTask) -> Void) {
        if state.withLock({ $0.machine.handsOn(step) }) { calls.make { [self] in call($0, self) } }
    }

    /// How a request spent its time: the receiver is told of that of the answer.
    func collected(_ metrics: TransferMetrics, step: Int) {
        let (handsOn, watcher) = state.withLock { state in
            let handsOn = state.machine.handsOn(step)
            return (handsOn, !handsOn && state.machine.isDraining(step) ? state.watcher : nil)
        }
        if handsOn { calls.make { [self] in $0.task(self, didCollect: metrics) } }
        watcher?.measured(metrics)
    }

    /// Whether the receiver still wants the request to be sent; once it was, what follows from the answer is sent, too.
    func mayLeave(step: Int) -> Bool {
        let (isFirst, token): (Bool, RateLimit.Token?) = state.withLock { state in
            guard state.machine.isFirst(step) else { return (false, nil) }
            guard case .sent(let token)? = state.turn else { return (true, nil) }
            state.turn = nil
            return (true, token)
        }
        guard isFirst else { return true }
        var mayLeave = true
        _ = calls.makeNow { mayLeave = $0.taskMayLeave(self) }
        // The exchange may have ended meanwhile, but the request is not sent.
        if !mayLeave { token?.giveBack() }
        return mayLeave
    }

    /// The request's body moved on; told only where it is further than before, whichever request it was.
    func sent(_ count: Int64, of total: Int64?, step: Int) {
        let (isNews, watcher) = state.withLock { state in
            (state.machine.sent(count, step), count == total && state.machine.isPresent(step) ? state.watcher : nil)
        }
        if isNews { calls.make { [self] in $0.task(self, didSend: count, of: total) } }
        // A request that follows sends its own body, and is told of whatever was sent before.
        watcher?.sentBody()
    }

    /// Reads on from the cache, unless somebody does so already or may not.
    func pump() {
        guard let (source, step) = state.withLock({ $0.machine.startsReading() }) else { return }
        var body: Int?
        if case .cache(_, let number) = source { body = number }
        configuration.cache?.perform { [self, body] disk, _ in pump(body, from: disk, step: step) }
    }

    /// One portion; on the queue of the cache, which others want to use as well.
    private func pump(_ body: Int?, from disk: DiskCache, step: Int) {
        guard state.withLock({ $0.machine.reads(step) }) else { return }
        switch body.map({ disk.read($0) }) ?? .end {
        case .bytes(let data):
            let limit = configuration.limits.bodyBytes ?? .max
            switch state.withLock({ $0.machine.received(data.count, limit: limit, drainLimit: 0, step) }) {
            case .handOver:
                calls.make { [self] receiver in data.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
                pump()
            case .tooMany: finish(bodyTooLarge(nil, limit))
            case .ignore, .discard, .tooSoon: break
            }
        case .end: finish(nil)
        case .failed:
            finish(error(.truncatedBody, .receiving, "The body in the cache can no longer be read. Ask again."))
        }
    }
}
