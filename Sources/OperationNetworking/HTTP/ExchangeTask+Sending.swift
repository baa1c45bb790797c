// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From a hop to a request of the session, or to a stored response.
extension ExchangeTask {
    /// Begins the next request, with the machine in the state `preparing`.
    func start(_ hop: Hop, proof: Proof?, isRedirect: Bool = false) {
        let prepared = PreparedHop(hop, proof: proof, session: session)
        let (step, failure): (Int?, RedirectFailure?) = state.withLock { state in
            let step = state.machine.advance()
            guard isRedirect else { return (step, nil) }
            let (cookies, credential) = (prepared.cookies, prepared.proof?.credential)
            return (step, state.detours?.redirects.follow(hop, cookies: cookies, credential: credential))
        }
        guard let step else { return }
        if let failure { return finish(error(failure.code, .awaitingResponse, failure.message)) }
        guard let cache = configuration.cache, CacheDecision.mayAnswer(hop.method) else {
            return send(prepared, kept: nil, step: step)
        }
        cache.perform { [self] disk, now in look(prepared, in: disk, now: now, step: step) }
    }

    /// Searches the cache, on the queue of the cache.
    private func look(_ prepared: PreparedHop, in disk: DiskCache, now: Date, step: Int) {
        let metadata = disk.metadata(prepared.resource, now: now)
        let decision = CacheDecision.decide(
            method: prepared.hop.method, request: prepared.selecting, responses: metadata?.responses ?? [], now: now,
            key: disk.key)
        switch decision {
        case .serve(let index, let age), .serveAndRevalidate(let index, let age):
            guard let variant = metadata?.variants[index] else { break }
            // A suspended exchange sends nothing. The next exchange for the address revalidates the response.
            if case .serveAndRevalidate = decision, !state.withLock({ $0.machine.isSuspended }) {
                revalidate(prepared)
            }
            return serve(variant, age: age, to: prepared, from: disk, now: now, step: step)
        case .revalidate(let index): return send(prepared, kept: metadata?.variants[index], from: disk, step: step)
        case .unavailable: return refuse(prepared, step: step)
        case .forward: break
        }
        send(prepared, kept: nil, from: disk, step: step)
    }

    /// Sends a request whose response does not restore anything that is removed from the cache from now on.
    func send(_ prepared: PreparedHop, kept: CacheMetadata.Variant?, from disk: DiskCache, step: Int) {
        send(PreparedHop(prepared, since: disk.moment), kept: kept, step: step)
    }

    private func revalidate(_ prepared: PreparedHop) {
        var headers = prepared.hop.headers
        headers["Cache-Control"] = "max-age=0"
        guard let request = try? prepared.hop.request(headers: headers) else { return }
        session.revalidate(request, resource: prepared.resource)
    }

    /// Responds with status 504, because the request accepts only a stored response and there is none (RFC 9111,
    /// section 5.2.1.7).
    private func refuse(_ prepared: PreparedHop, step: Int) {
        guard let url = prepared.hop.address.url else { return }
        let head = ResponseHead(url: url, status: 504, headers: ["Content-Length": "0"], reason: "Not in the cache")
        guard isPresent(step) else { return }
        deliver(head, from: .nothing(prepared), step: step)
    }

    /// Opens the body of a stored response and continues with its headers, on the queue of the cache.
    func serve(
        _ variant: CacheMetadata.Variant, age: Int, to prepared: PreparedHop, from disk: DiskCache, now: Date, step: Int
    ) {
        var body: Int?
        if prepared.hop.method != "HEAD" {
            body = disk.openReader(variant.body, of: prepared.resource, now: now)
            // A body that is damaged or was removed by another program counts as never stored.
            guard body != nil else {
                return CacheDecision.onlyWantsKept(prepared.headers)
                    ? refuse(prepared, step: step) : send(prepared, kept: nil, from: disk, step: step)
            }
        }
        guard let url = prepared.hop.address.url, isPresent(step) else {
            if let body { disk.closeReader(body) }
            return
        }
        let head = variant.response.head(url: url, age: age, bodyLength: variant.body.length)
        decide(head, from: .cache(prepared, body: body), step: step)
    }

    /// Sends a request through the transport.
    func send(_ prepared: PreparedHop, kept: CacheMetadata.Variant?, step: Int) {
        var headers = prepared.headers
        if let kept { CacheValidator(kept.response.headers)?.ask(in: &headers) }
        let request: NetworkRequest
        do throws(NetworkError) {
            request = try prepared.hop.request(headers: headers)
        } catch {
            if isPresent(step) { finish(error) }
            return
        }
        guard let limit = request.ratePass?.limit ?? configuration.rateLimit else {
            return sendThroughTransport(request, prepared, kept: kept, step: step, nil)
        }
        // The operation has already waited for its first request and keeps its slot, so a redirect goes ahead of
        // others.
        takeTurn(limit, request, step: step, isAhead: step > 1 || request.options.isAhead) {
            $0.sendThroughTransport(request, prepared, kept: kept, step: step, RatePass(limit, $1))
        }
    }

    private func sendThroughTransport(
        _ request: NetworkRequest, _ prepared: PreparedHop, kept: CacheMetadata.Variant?, step: Int, _ pass: RatePass?
    ) {
        // Notify the watcher before the transport has the request, because `resume()` can start the request from then
        // on.
        let watcher = state.withLock { $0.machine.isPresent(step) ? $0.watcher : nil }
        watcher?(.begins(request))
        // An exchange behind this one finds the token in the request, and takes no other token for it.
        let asked = request.ratePass == nil ? request : pass.map { request.with($0) } ?? request
        let task = session.transport.makeTask(with: asked, receiver: HopReceiver(self, step: step))
        let flight = Flight(prepared, task, sent: configuration.cache.map { _ in configuration.now() }, kept: kept)
        let (order, left): (PauseOrder?, NetworkRequest?) = state.withLock { state in
            guard state.machine.requestWasSent(.network(flight), step) else { return (nil, nil) }
            if let pass { state.turn = .sent(pass) }
            return (state.machine.wanted?.order, exchange(&state.sent, with: request))
        }
        // The last request may hold an object of the user, so it is released outside of the lock.
        extendLifetime(left)
        // The first order starts the task. A task that was never resumed occupies nothing, and its end releases it.
        if let order { return flight.orderTarget.pass(order) }
        task.cancel()
        pass?.takeToken()?.giveBack()
    }

    func isPresent(_ step: Int) -> Bool { state.withLock { $0.machine.isPresent(step) } }
}

/// The state of a request of an exchange under its rate limit.
enum RateTurn {
    /// The request waits in the queue of the limit.
    case waiting(RateLimit.Ticket)
    /// The exchange is suspended, and calling the closure when it resumes asks the limit again.
    case postponed(@Sendable (ExchangeTask) -> Void)
    /// The session has the request, and has not yet asked whether to send it.
    case sent(RatePass)

    /// Leaves the queue of the limit, because the exchange ended.
    func end() {
        if case .waiting(let ticket) = self { _ = ticket.leave() }
    }
}

// From a prepared request to its turn under the rate limit.
extension ExchangeTask {
    /// Calls `send` with a token as soon as the rate limit has one, unless the exchange ends before.
    private func takeTurn(
        _ limit: RateLimit, _ request: NetworkRequest, step: Int, isAhead: Bool,
        _ send: @escaping @Sendable (ExchangeTask, RateLimit.Token) -> Void
    ) {
        let postponed = RateTurn.postponed {
            $0.takeTurn(limit, request, step: step, isAhead: true, send)
        }
        let number: Int? = state.withLock { state in
            guard state.machine.isPresent(step) else { return nil }
            guard !state.machine.isSuspended else {
                state.turn = postponed
                return nil
            }
            state.turnNumber += 1
            return state.turnNumber
        }
        guard let number else { return }
        if let token = request.ratePass?.takeToken() {
            // A redirect may lead to another host, whose requests need another token.
            if token.isGood(for: request.origin, of: limit) { return send(self, token) }
            token.giveBack()
        }
        let admission = limit.take(for: request.origin, isAhead: isAhead) { [self] token in
            // The session may call code of users, and this thread belongs to another request.
            DispatchQueue.global().async {
                // If the exchange is suspended now, it asks again when it resumes. Otherwise, a later resumption finds
                // no turn.
                let isNow = self.state.withLock { state in
                    guard state.machine.isPresent(step), state.turnNumber == number else { return false }
                    state.turnNumber += 1
                    state.turn = state.machine.isSuspended ? postponed : nil
                    return !state.machine.isSuspended
                }
                if isNow { send(self, token) } else { token.giveBack() }
            }
        }
        switch admission {
        case .granted(let token): send(self, token)
        case .waits(let ticket, _):
            // The turn may already have come on another thread.
            let waits = state.withLock { state in
                guard state.machine.isPresent(step), state.turnNumber == number else { return false }
                state.turn = .waiting(ticket)
                return true
            }
            if !waits { _ = ticket.leave() }
        }
    }

    /// Takes the token of a request about which the session has not asked yet, or returns `nil` if there is none.
    func takeUnusedToken() -> RateLimit.Token? {
        let pass: RatePass? = state.withLock { state in
            guard case .sent(let pass)? = state.turn else { return nil }
            state.turn = nil
            return pass
        }
        return pass?.takeToken()
    }

    /// Asks the limit again for a request whose turn came while the exchange was suspended.
    func takePostponedTurn() {
        let ask: (@Sendable (ExchangeTask) -> Void)? = state.withLock { state in
            guard !state.machine.isSuspended, case .postponed(let ask)? = state.turn else { return nil }
            state.turn = nil
            return ask
        }
        ask?(self)
    }
}

/// A hop with all headers that cookies, remembered credentials and the challenge policy add to it.
///
/// This is a class, because every source of a response holds one.
final class PreparedHop: Sendable {
    let hop: Hop
    let headers: HeaderFields
    private let boxedProof: Box<Proof>?
    /// Whether the proof is sent without a challenge.
    let isProofFromMemory: Bool
    /// The `moment` of the cache when it was searched, so that the response does not restore later removals.
    let moment: CacheChanges.Moment?

    /// The proof that created the `Authorization` header.
    var proof: Proof? { boxedProof?.value }

    /// The value of the `Cookie` header.
    var cookies: String? { headers["Cookie"] }

    init(_ hop: Hop, proof: Proof?, session: ExchangeSession) {
        var headers = hop.headers
        if let jar = session.configuration.cookies, !headers.contains("Cookie"), let url = hop.address.url {
            headers["Cookie"] = jar.header(for: url)
        }
        var used: Proof?
        var isFromMemory = false
        if session.configuration.challenges != nil, !headers.contains("Authorization") {
            if var proof {
                headers["Authorization"] = proof.value(method: hop.method, target: hop.address.target)
                used = proof
            } else if let known = session.useProof(for: hop) {
                headers["Authorization"] = known.value
                (used, isFromMemory) = (known.proof, true)
            }
        }
        self.hop = hop
        self.headers = headers
        (boxedProof, isProofFromMemory) = (used.map { Box($0) }, isFromMemory)
        moment = nil
    }

    init(_ other: PreparedHop, since moment: CacheChanges.Moment) {
        (hop, headers) = (other.hop, other.headers)
        (boxedProof, isProofFromMemory) = (other.boxedProof, other.isProofFromMemory)
        self.moment = moment
    }

    var resource: String { hop.address.resource }

    /// The headers by which the cache selects a response.
    var selecting: HeaderFields { CacheSelection.selecting(headers, hop.options) }
}
