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

/// A request of an exchange that is with the session.
struct Flight: Sendable {
    let prepared: PreparedHop
    let task: any NetworkTask
    let brakes: BrakeLine
    /// When it was sent.
    let sent: Date
    /// What is kept, and is asked about.
    let kept: CacheMetadata.Variant?
}

/// Where the response comes from.
enum ResponseSource: ExchangeSource {
    case network(Flight)
    /// The cache: the number of an open body, or none where only the head is wanted.
    case cache(PreparedHop, body: Int?)
    /// Nowhere: a head of our own.
    case nothing(PreparedHop)

    var prepared: PreparedHop {
        switch self {
        case .network(let flight): flight.prepared
        case .cache(let prepared, _), .nothing(let prepared): prepared
        }
    }

    var task: (any NetworkTask)? {
        if case .network(let flight) = self { flight.task } else { nil }
    }

    /// The brakes of that task.
    var brakes: BrakeLine? {
        if case .network(let flight) = self { flight.brakes } else { nil }
    }

    var isFlight: Bool { task != nil }

    /// What is not on its way from a session ends when somebody reads on, and so not before the brakes allow it.
    var isRead: Bool { !isFlight }
}

/// What comes after a response that is not the answer.
enum NextStep: Sendable {
    /// Another address.
    case redirect(Hop)
    /// The same request with a proof.
    case proof(Hop, Proof)
    /// What is kept is the answer.
    case kept(PreparedHop, CacheMetadata.Variant, age: Int)
    /// The same, for the last time: the server says that it may not be kept any longer.
    case keptUntilNow(PreparedHop, CacheMetadata.Variant, age: Int)
    /// The same request as if nothing was kept.
    case anew(PreparedHop)
}

/// Writes a body to the cache while it goes to its receiver.
package final class CacheTee: Sendable {
    /// How many bytes may wait to be written before the response is held.
    private static let highWater = 1 << 20
    private static let lowWater = 256 << 10

    private struct State {
        var pending = 0
        var isOver = false
        var isHolding = false
    }

    private let cache: HTTPCache
    private let resource: String
    private let response: CachedResponse
    private let state = Locked(State())
    // Sendable: only used on the queue of the cache.
    private nonisolated(unsafe) var writer: Int?

    /// - Parameter moment: When the response was asked for; nil for now.
    package init(
        _ response: CachedResponse, at resource: String, in cache: HTTPCache, since moment: CacheChanges.Moment? = nil
    ) {
        self.cache = cache
        self.resource = resource
        self.response = response
        cache.perform { [self] disk, _ in
            writer = disk.openWriter(since: moment)
            if writer == nil { state.withLock { $0.isOver = true } }
        }
    }

    /// Takes bytes.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - hold: Holds the response, because too many bytes wait to be written.
    ///   - proceed: Lets it go on; called on the queue of the cache, or here.
    package func append(
        _ bytes: UnsafeRawBufferPointer, hold: () -> Void, proceed: @escaping @Sendable () -> Void
    ) {
        let (isOver, mustHold): (Bool, Bool) = state.withLock { state in
            guard !state.isOver else { return (true, false) }
            state.pending += bytes.count
            let mustHold = state.pending > Self.highWater
            if mustHold { state.isHolding = true }
            return (false, mustHold)
        }
        guard !isOver else { return }
        let data = Data(bytes)
        cache.perform { [self] disk, now in
            let isWritten = writer.map { disk.append(data, to: $0, now: now) } ?? false
            let mayProceed = state.withLock { state in
                if !isWritten { state.isOver = true }
                state.pending -= data.count
                guard state.isHolding, state.pending < Self.lowWater || state.isOver else { return false }
                state.isHolding = false
                return true
            }
            if mayProceed { proceed() }
        }
        guard mustHold else { return }
        hold()
        // All may have been written before the brake was set, and `proceed` have found nothing to let go of.
        if !state.withLock({ $0.isHolding }) { proceed() }
    }

    /// The body is complete, or is not to be kept after all.
    package func end(isComplete: Bool) {
        cache.perform { [self] disk, now in
            guard let number = writer else { return }
            writer = nil
            if isComplete, !state.withLock({ $0.isOver }) {
                disk.commit(number, response, at: resource, now: now)
            } else {
                disk.discardWriter(number)
            }
        }
    }
}
