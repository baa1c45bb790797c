// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From the final response to its receiver.
extension ExchangeTask {
    /// Delivers the headers, and lets the body follow.
    func deliver(_ head: ResponseHead, from source: ResponseSource, step: Int) {
        let tee = keep(head, from: source)
        if let limit = configuration.maximumBodyBytes,
            Self.announcedLength(of: head, to: source.prepared.hop) > limit
        {
            tee?.end(isComplete: false, isTooLarge: true)
            if isPresent(step) { finish(bodyTooLarge(head.status, limit)) }
            return discard(source)
        }
        switch state.withLock({ $0.machine.delivers(source, head, tee, step) }) {
        case .drop:
            tee?.end(isComplete: false)
            discard(source)
        case .keep: passPauseOrder()
        case .finish(let error):
            tee?.end(isComplete: false)
            finish(error)
        case .deliverHead:
            @Sendable func call(_ receiver: any NetworkReceiver) { receiver.task(self, didReceive: head) }
            if !calls.makeNow(call) { calls.make(call) }
            if !source.isFlight { release(.decision) }
        case .deliverKept(let broken):
            deliverKeptHead()
            if let broken { finish(broken) }
        }
    }

    /// Delivers the kept headers unless a call that is in progress pauses delivery, and lets the body follow.
    func deliverKeptHead() {
        calls.make { [self] receiver in
            guard let head = state.withLock({ $0.machine.deliversHead() }) else { return }
            receiver.task(self, didReceive: head)
        } after: { [self] in
            if let release = state.withLock({ $0.machine.headWasDelivered() }) { perform(release) }
        }
    }

    /// Returns the announced length of a body, which is 0 for a response that cannot have a body.
    static func announcedLength(of head: ResponseHead, to hop: Hop) -> Int64 {
        ResponseHead.mayHaveBody(status: head.status, method: hop.method) ? head.expectedLength ?? 0 : 0
    }

    /// Returns a writer that copies the response to the cache, or `nil` if the response is not stored.
    func keep(_ head: ResponseHead, from source: ResponseSource) -> CacheTee? {
        guard let cache = configuration.cache, case .network(let flight) = source, let sent = flight.sent else {
            return nil
        }
        let hop = flight.prepared.hop
        let response = CachedResponse(
            head, to: flight.prepared.selecting, requested: sent, received: configuration.now(), key: cache.key)
        guard CacheRules.mayStore(response, method: hop.method, request: flight.prepared.headers) else {
            // The server was asked about a stored response, and sent another one that does not replace it.
            if let kept = flight.kept, head.status < 500, ![304, 401, 407, 408, 425, 429].contains(head.status) {
                let resource = flight.prepared.resource
                cache.perform { disk, now in disk.drop(kept.body, of: resource, now: now) }
            }
            return nil
        }
        return CacheTee(
            response, at: flight.prepared.resource, in: cache, since: flight.prepared.moment,
            replacing: flight.kept?.body)
    }

    fileprivate func bodyTooLarge(_ status: Int?, _ limit: Int64) -> NetworkError {
        var error = error(
            .bodyTooLarge, .receiving,
            "The body is larger than \(limit) bytes. Raise maximumBodyBytes, or request a part of the body.")
        error.status = status
        return error
    }

    fileprivate func handOver(_ bytes: UnsafeRawBufferPointer, _ tee: CacheTee?) {
        tee?.append(bytes, hold: { addHoldReason(.cache) }, proceed: { [weak self] in self?.release(.cache) })
        if !calls.makeNow({ $0.task(self, didReceive: bytes) }) {
            // Another thread is making a call, and these bytes come after it.
            let copy = Data(bytes)
            calls.make { receiver in copy.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
        }
    }

    /// Handles a request that ended without a response.
    fileprivate func fail(_ flight: Flight, _ error: NetworkError?, step: Int) {
        let error =
            error ?? self.error(.invalidResponse, .awaitingResponse, "The session ended without a response.")
        // A canceled request needs no stored response instead.
        guard error.code != .cancelled, let next = stale(flight) else { return finish(error) }
        guard state.withLock({ $0.machine.failsOver(step) }) else { return }
        state.withLock { $0.watcher }?(.ended)
        go(next)
    }

    /// Continues reading from the cache, unless another thread reads or delivery is paused.
    func pump() {
        guard let (source, step) = state.withLock({ $0.machine.startsReading() }) else { return }
        var body: Int?
        if case .cache(_, let number) = source { body = number }
        configuration.cache?.perform { [self, body] disk, _ in pump(body, from: disk, step: step) }
    }

    /// Reads one portion on the queue of the cache, so that other users of the queue get their turn.
    private func pump(_ body: Int?, from disk: DiskCache, step: Int) {
        guard state.withLock({ $0.machine.reads(step) }) else { return }
        switch body.map({ disk.read($0) }) ?? .end {
        case .bytes(let data):
            let limit = configuration.maximumBodyBytes ?? .max
            switch state.withLock({ $0.machine.received(data.count, limit: limit, drainLimit: 0, step) }) {
            case .handOver:
                calls.make { [self] receiver in data.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
                pump()
            case .tooMany: finish(bodyTooLarge(nil, limit))
            case .ignore, .discard, .tooSoon: break
            }
        case .end: finish(nil)
        case .failed:
            finish(
                error(
                    .truncatedBody, .receiving, "The body in the cache can no longer be read. Send the request again."))
        }
    }
}

// From the other events of a request to the exchange.
extension HopReceiver {
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        let limit = exchange.configuration.maximumBodyBytes ?? .max
        let fate = exchange.state.withLock {
            $0.machine.received(bytes.count, limit: limit, drainLimit: ExchangeTask.drainLimit, step)
        }
        switch fate {
        case .ignore: break
        case .discard(let tee, let isEnough):
            // The amount is below the limit at which the cache would hold the response.
            tee?.append(bytes, hold: {}, proceed: {})
            if isEnough { task.cancel() }
        case .tooMany: exchange.finish(exchange.bodyTooLarge(nil, limit))
        case .tooSoon: exchange.finish(ExchangeTask.Machine.deliveredWhileHeld)
        case .handOver(let tee): exchange.handOver(bytes, tee)
        }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        // A request that never got a slot was not sent, and needs no token of its rate limit.
        if error?.phase == .waiting { exchange.takeUnusedToken()?.giveBack() }
        switch exchange.state.withLock({ $0.machine.ended(error, step) }) {
        case .ignore: break
        case .finish(let error): exchange.finish(error)
        case .startNext(let next, let tee):
            tee?.end(isComplete: error == nil)
            exchange.state.withLock { $0.watcher }?(.ended)
            exchange.go(next)
        case .failed(.network(let flight)): exchange.fail(flight, error, step: step)
        case .failed: break
        }
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        forward { $0.task($1, didReceiveInformational: head) }
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        forward { $0.task($1, didReceiveTrailers: fields) }
    }

    private func forward(_ call: @escaping @Sendable (any NetworkReceiver, ExchangeTask) -> Void) {
        guard exchange.state.withLock({ $0.machine.forwards(step) }) else { return }
        exchange.calls.make { [exchange] in call($0, exchange) }
    }

    /// Handles the metrics of a request, and forwards those of the final one to the receiver.
    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        let (forwards, watcher) = exchange.state.withLock { state in
            let forwards = state.machine.forwards(step)
            return (forwards, !forwards && state.machine.isDraining(step) ? state.watcher : nil)
        }
        @Sendable func call(_ receiver: any NetworkReceiver) { receiver.task(exchange, didCollect: metrics) }
        if forwards, !exchange.calls.makeNow(call) { exchange.calls.make(call) }
        watcher?(.measured(metrics))
    }

    /// Returns whether the receiver still wants its request to be sent.
    ///
    /// The requests that follow from its response are always sent. From this call on, the exchange no longer returns
    /// the token of the request.
    func taskMaySend(_ task: any NetworkTask) -> Bool {
        let (isFirst, pass): (Bool, RatePass?) = exchange.state.withLock { state in
            guard state.machine.isPresent(step) else { return (false, nil) }
            let isFirst = state.machine.isFirst(step)
            guard case .sent(let pass)? = state.turn else { return (isFirst, nil) }
            state.turn = nil
            return (isFirst, pass)
        }
        guard isFirst else { return true }
        var maySend = true
        _ = exchange.calls.makeNow { maySend = $0.taskMaySend(exchange) }
        // The exchange may have ended in the meantime, but the request was not sent, so the token is returned in any
        // case.
        if !maySend { pass?.takeToken()?.giveBack() }
        return maySend
    }

    /// Handles the progress of a request's body, and reports it only if it exceeds that of all earlier requests.
    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        let (hasChanged, watcher) = exchange.state.withLock { state in
            (state.machine.sent(count, step), count == total && state.machine.isPresent(step) ? state.watcher : nil)
        }
        if hasChanged { exchange.calls.make { [exchange] in $0.task(exchange, didSend: count, of: total) } }
        // The observer is notified for each request, because each one sends its own body.
        watcher?(.bodySent)
    }
}

/// A request of an exchange that the session has.
///
/// The flight is a class, because the state machine of the exchange copies it with each event.
final class Flight: Sendable {
    let prepared: PreparedHop
    let orderTarget: PauseOrderTarget
    /// The date at which the request was sent, or `nil` if there is no cache, which alone needs it.
    let sent: Date?
    private let boxedVariant: Box<CacheMetadata.Variant>?

    var task: any NetworkTask { orderTarget.task }
    /// The stored response that the request revalidates.
    var kept: CacheMetadata.Variant? { boxedVariant?.value }

    init(_ prepared: PreparedHop, _ task: any NetworkTask, sent: Date?, kept: CacheMetadata.Variant?) {
        (self.prepared, self.sent, orderTarget, boxedVariant) = (prepared, sent, .init(task), kept.map { Box($0) })
    }
}

/// The source of a response.
enum ResponseSource: ExchangeSource {
    case network(Flight)
    /// The cache, with the number of an open body, or `nil` if only the headers are needed.
    case cache(PreparedHop, body: Int?)
    /// No source, because the exchange itself created the response.
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

    /// The target of pause orders to the task of the session.
    var orderTarget: PauseOrderTarget? {
        if case .network(let flight) = self { flight.orderTarget } else { nil }
    }

    var isFlight: Bool { if case .network = self { true } else { false } }
}

/// The step that follows a response that is not the final one.
indirect enum NextStep: Sendable {
    /// Send a request to another address.
    case redirect(Hop)
    /// Send the same request with a proof.
    case proof(Hop, Proof)
    /// Deliver the stored response.
    case kept(PreparedHop, CacheMetadata.Variant, age: Int)
    /// Deliver the stored response for the last time, because the server no longer allows it to be stored.
    case keptUntilNow(PreparedHop, CacheMetadata.Variant, age: Int)
    /// Send the same request as if nothing were stored.
    case startOver(PreparedHop)
}

/// A writer that copies a body to the cache while the receiver gets it.
package final class CacheTee: Sendable {
    private let cache: HTTPCache
    private let resource: String
    private let response: CachedResponse
    private let replaced: CacheBody?
    private let state = Locked((window: FlowWindow(bound: 1 << 20), isOver: false))
    // Sendable: only used on the queue of the cache.
    private nonisolated(unsafe) var writer: Int?

    /// Creates a writer for a response.
    ///
    /// - Parameters:
    ///   - moment: The `moment` of the cache when the response was requested. The default is `nil`, which uses the
    ///     present one.
    ///   - replaced: The body of the stored response that the new response replaces. The default is `nil`.
    package init(
        _ response: CachedResponse, at resource: String, in cache: HTTPCache, since moment: CacheChanges.Moment? = nil,
        replacing replaced: CacheBody? = nil
    ) {
        self.cache = cache
        self.resource = resource
        self.response = response
        self.replaced = replaced
        cache.perform { [self] disk, _ in
            writer = disk.openWriter(since: moment)
            if writer == nil { state.withLock { $0.isOver = true } }
        }
    }

    /// Writes bytes to the cache.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - hold: A closure that holds the response, because too many bytes wait to be written.
    ///   - proceed: A closure that releases the response, and is called on the queue of the cache.
    package func append(
        _ bytes: UnsafeRawBufferPointer, hold: () -> Void, proceed: @escaping @Sendable () -> Void
    ) {
        let isFull = state.withLock { $0.isOver ? nil : $0.window.isFull(with: bytes.count) }
        guard let isFull else { return }
        if isFull { hold() }
        state.withLock { $0.window.add(bytes.count, isHeld: isFull) }
        let data = Data(bytes)
        cache.perform { [self] disk, now in
            let isWritten = writer.map { disk.append(data, to: $0, now: now) } ?? false
            let mayProceed = state.withLock { state in
                if !isWritten { state.isOver = true }
                return state.window.remove(data.count, isLast: state.isOver)
            }
            if mayProceed { proceed() }
        }
    }

    /// Ends the copy, which is stored only if the body is complete.
    ///
    /// If the body is complete but cannot be stored, the cache removes the response that the new one replaces.
    ///
    /// - Parameters:
    ///   - isComplete: Whether the body is complete.
    ///   - isTooLarge: Whether the body is incomplete only because it is larger than the session allows. The default is
    ///     `false`.
    package func end(isComplete: Bool, isTooLarge: Bool = false) {
        cache.perform { [self] disk, now in
            var isStored = false
            if let number = writer {
                writer = nil
                if isComplete, !state.withLock({ $0.isOver }) {
                    isStored = disk.commit(number, response, at: resource, now: now)
                } else {
                    disk.discardWriter(number)
                }
            }
            guard let replaced, !isStored, isComplete || isTooLarge else { return }
            disk.drop(replaced, of: resource, now: now)
        }
    }
}
