// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From a hop to a request with the session, or to what is kept.
extension ExchangeTask {
    /// Begins with the next request; the phase is `preparing`.
    func start(_ hop: Hop, proof: Proof?, isRedirect: Bool = false) {
        let prepared = PreparedHop(hop, proof: proof, session: session)
        let (step, failure): (Int?, RedirectFailure?) = state.withLock { state in
            (state.machine.advance(), isRedirect ? state.redirects.follow(hop, cookies: prepared.cookies) : nil)
        }
        guard let step else { return }
        if let failure { return finish(error(failure.code, .awaitingResponse, failure.message)) }
        guard let cache = configuration.cache, ["GET", "HEAD"].contains(hop.method) else {
            return send(prepared, kept: nil, step: step)
        }
        cache.perform { [self] disk, now in look(prepared, in: disk, now: now, step: step) }
    }

    /// On the queue of the cache.
    private func look(_ prepared: PreparedHop, in disk: DiskCache, now: Date, step: Int) {
        let card = disk.card(prepared.resource, now: now)
        let decision = CacheDecision.decide(
            method: prepared.hop.method, request: prepared.wishes, responses: card?.responses ?? [], now: now,
            key: disk.key)
        switch decision {
        case .serve(let index, let age), .serveAndRevalidate(let index, let age):
            guard let variant = card?.variants[index] else { break }
            // Whoever is suspended sends nothing: then the next to come asks.
            if case .serveAndRevalidate = decision, !state.withLock({ $0.machine.isSuspended }) {
                revalidate(prepared)
            }
            return serve(variant, age: age, to: prepared, from: disk, now: now, step: step)
        case .revalidate(let index): return send(prepared, kept: card?.variants[index], from: disk, step: step)
        case .unavailable: return refuse(prepared, step: step)
        case .forward: break
        }
        send(prepared, kept: nil, from: disk, step: step)
    }

    /// The same as without the cache, but what is forgotten from now on is not brought back by the response.
    func send(_ prepared: PreparedHop, kept: CacheCard.Variant?, from disk: DiskCache, step: Int) {
        var prepared = prepared
        prepared.moment = disk.moment
        send(prepared, kept: kept, step: step)
    }

    private func revalidate(_ prepared: PreparedHop) {
        var headers = prepared.hop.headers
        headers["Cache-Control"] = "max-age=0"
        guard let request = try? prepared.hop.request(headers: headers) else { return }
        session.revalidate(request, resource: prepared.resource)
    }

    /// Only what is kept was wanted, and nothing is (RFC 9111, section 5.2.1.7).
    private func refuse(_ prepared: PreparedHop, step: Int) {
        guard let url = prepared.hop.address.url else { return }
        let head = ResponseHead(url: url, status: 504, headers: ["Content-Length": "0"], reason: "Not in the cache")
        guard isPresent(step) else { return }
        deliver(head, from: .nothing(prepared), step: step)
    }

    /// Opens the body and hands over the head; on the queue of the cache.
    func serve(
        _ variant: CacheCard.Variant, age: Int, to prepared: PreparedHop, from disk: DiskCache, now: Date, step: Int
    ) {
        var body: Int?
        if prepared.hop.method != "HEAD" {
            body = disk.openReader(variant.body, of: prepared.resource, now: now)
            // Damaged, or taken away by another program: as if it had never been there.
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

    /// Hands a request to the session.
    func send(_ prepared: PreparedHop, kept: CacheCard.Variant?, step: Int) {
        var headers = prepared.headers
        if let kept { CacheValidator(kept.response.headers)?.ask(in: &headers) }
        let request: NetworkRequest
        do throws(NetworkError) {
            request = try prepared.hop.request(headers: headers)
        } catch {
            if isPresent(step) { finish(error) }
            return
        }
        // Before the session has it: whoever resumes the exchange from then on starts it.
        let watcher = state.withLock { $0.machine.isPresent(step) ? $0.watcher : nil }
        watcher?.hopBegins(request)
        let task = session.transport.makeTask(with: request, receiver: HopReceiver(self, step: step))
        let flight = Flight(
            prepared: prepared, task: task, brakes: BrakeLine(task), sent: configuration.now(), kept: kept)
        // A body may be all that keeps something of the user's: the last request goes outside of the lock.
        let (isPresent, left) = state.withLock { state in
            let (isPresent, left) = (state.machine.asked(.network(flight), step), state.sent)
            if isPresent { state.sent = request }
            return (isPresent, left)
        }
        withExtendedLifetime(left) {}
        // One that was never resumed is not in anybody's way; it is let go of by its end.
        if isPresent { settle() } else { task.cancel() }
    }

    func isPresent(_ step: Int) -> Bool { state.withLock { $0.machine.isPresent(step) } }
}
