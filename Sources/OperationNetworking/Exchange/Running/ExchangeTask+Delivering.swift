// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From the answer to its receiver.
extension ExchangeTask {
    /// Hands the head over, and lets the body follow.
    func deliver(_ head: ResponseHead, from source: ResponseSource, step: Int) {
        let hop = source.prepared.hop
        if let limit = configuration.limits.bodyBytes, hop.method != "HEAD", (head.expectedLength ?? 0) > limit {
            if isPresent(step) { finish(bodyTooLarge(head.status, limit)) }
            return discard(source)
        }
        let tee = source.task.flatMap { _ in keep(head, from: source) }
        let (isPresent, broken): (Bool, NetworkError?) = state.withLock { state in
            guard state.step == step else { return (false, nil) }
            state.phase = .delivering(source, tee)
            return (true, state.broken)
        }
        guard isPresent else {
            tee?.end(isComplete: false)
            return discard(source)
        }
        calls.make { [self] in $0.task(self, didReceive: head) }
        if let broken { return finish(broken) }
        switch source {
        case .network: if state.withLock({ $0.brakes.contains(.decision) }) { release(.decision) }
        case .cache: release(.decision)
        case .nothing: finish(nil)
        }
    }

    /// What the response means for the cache; something that writes it, if it is to be kept.
    func keep(_ head: ResponseHead, from source: ResponseSource) -> CacheTee? {
        guard let cache = configuration.cache, case .network(let flight) = source else { return nil }
        let hop = flight.prepared.hop
        for address in CacheRules.invalidated(by: head, method: hop.method, at: hop.address) {
            cache.perform { disk, _ in disk.forget(address.resource) }
        }
        let response = CachedResponse(
            head, to: flight.prepared.headers, requested: flight.sent, received: configuration.now())
        guard CacheRules.mayStore(response, method: hop.method, request: flight.prepared.headers) else { return nil }
        return CacheTee(response, at: flight.prepared.resource, in: cache)
    }

    private func bodyTooLarge(_ status: Int?, _ limit: Int64) -> NetworkError {
        var error = error(
            .bodyTooLarge, .receiving,
            "The body is larger than \(limit) bytes. Raise bodyBytes of the limits, or ask for a part of it.")
        error.status = status
        return error
    }

    /// Bytes came from the session.
    func received(_ bytes: UnsafeRawBufferPointer, step: Int) {
        enum Fate {
            case ignore
            case discard(CacheTee?, cancelled: (any NetworkTask)?)
            case tooMany
            case handOver(CacheTee?)
        }
        let limit = configuration.limits.bodyBytes
        let fate: Fate = state.withLock { state in
            guard state.step == step else { return .ignore }
            if let (tee, task) = Self.discardBytes(bytes.count, &state) { return .discard(tee, cancelled: task) }
            guard case .delivering(_, let tee) = state.phase else { return .ignore }
            state.handedOver += Int64(bytes.count)
            return state.handedOver > limit ?? .max ? .tooMany : .handOver(tee)
        }
        switch fate {
        case .ignore: break
        case .discard(let tee, let cancelled):
            // Less than what the cache would ask to be held for.
            _ = tee?.append(bytes, proceed: {})
            cancelled?.cancel()
        case .tooMany: finish(bodyTooLarge(nil, limit ?? 0))
        case .handOver(let tee): handOver(bytes, tee)
        }
    }

    private func handOver(_ bytes: UnsafeRawBufferPointer, _ tee: CacheTee?) {
        if let tee, tee.append(bytes, proceed: { [weak self] in self?.release(.cache) }) { setBrake(.cache) }
        if !calls.makeNow({ $0.task(self, didReceive: bytes) }) {
            // A call is being made on another thread: these bytes come after it.
            let copy = Data(bytes)
            calls.make { receiver in copy.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
        }
    }

    /// The request ended.
    func ended(_ error: NetworkError?, step: Int) {
        enum Fate {
            case ignore
            case finish
            case go(NextStep, CacheTee?)
            case failed(Flight)
        }
        let fate: Fate = state.withLock { state in
            guard state.step == step else { return .ignore }
            switch state.phase {
            case .asking(let flight): return .failed(flight)
            case .draining(_, let next, let tee, _):
                // However it ended: nothing was wanted of it any more.
                state.phase = .preparing
                return .go(next, tee)
            case .deciding:
                state.broken = error
                return .ignore
            case .delivering: return .finish
            case .waiting, .preparing, .ended: return .ignore
            }
        }
        switch fate {
        case .ignore: break
        case .finish: finish(error)
        case .go(let next, let tee):
            tee?.end(isComplete: error == nil)
            go(next)
        case .failed(let flight): fail(flight, error)
        }
    }

    /// A request ended without a response.
    private func fail(_ flight: Flight, _ error: NetworkError?) {
        let error =
            error ?? self.error(.invalidResponse, .awaitingResponse, "The session ended without a response.")
        guard let next = stale(flight) else { return finish(error) }
        let isPresent = state.withLock { state in
            guard case .asking = state.phase else { return false }
            state.phase = .preparing
            return true
        }
        if isPresent { go(next) }
    }

    /// Something of the answer that is neither head nor body.
    func handOn(step: Int, _ call: @escaping @Sendable (any NetworkReceiver, ExchangeTask) -> Void) {
        let isPresent = state.withLock { state in
            guard state.step == step else { return false }
            switch state.phase {
            case .asking, .delivering: return true
            default: return false
            }
        }
        if isPresent { calls.make { [self] in call($0, self) } }
    }

    /// The request's body moved on; told only where it is further than before, whichever request it was.
    func sent(_ count: Int64, of total: Int64?, step: Int) {
        let isNews = state.withLock { state in
            guard state.step == step, count > state.sent else { return false }
            state.sent = count
            return true
        }
        if isNews { calls.make { [self] in $0.task(self, didSend: count, of: total) } }
    }

    /// Reads on from the cache, unless somebody does so already or may not.
    func pump() {
        let body: (number: Int?, step: Int)? = state.withLock { state in
            guard case .delivering(.cache(_, let body), _) = state.phase, !state.isPumping, !state.isSuspended,
                state.brakes.isEmpty
            else { return nil }
            state.isPumping = true
            return (body, state.step)
        }
        guard let body else { return }
        configuration.cache?.perform { [self] disk, _ in pump(body.number, from: disk, step: body.step) }
    }

    /// One portion; on the queue of the cache, which others want to use as well.
    private func pump(_ body: Int?, from disk: DiskCache, step: Int) {
        let mayGoOn = state.withLock { state in
            state.isPumping = false
            return state.step == step && !state.isSuspended && state.brakes.isEmpty
        }
        guard mayGoOn else { return }
        switch body.map({ disk.read($0) }) ?? .end {
        case .bytes(let data):
            let limit = configuration.limits.bodyBytes ?? .max
            let isTooMuch = state.withLock { state in
                state.handedOver += Int64(data.count)
                return state.handedOver > limit
            }
            if isTooMuch { return finish(bodyTooLarge(nil, limit)) }
            calls.make { [self] receiver in data.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
            pump()
        case .end: finish(nil)
        case .failed:
            finish(error(.truncatedBody, .receiving, "The body in the cache can no longer be read. Ask again."))
        }
    }
}
