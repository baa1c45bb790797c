// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From the headers of a response to the exchange.
extension HopReceiver {
    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        guard case .network(let flight) = exchange.state.withLock({ $0.machine.headArrived(step) }) else { return }
        exchange.session.keepCookies(of: head)
        if let cache = exchange.configuration.cache { exchange.invalidate(head, flight, in: cache) }
        if let kept = flight.kept, let next = exchange.afterAsking(head, flight, about: kept) {
            exchange.leave(.network(flight), head, for: next, step: step)
        } else {
            exchange.decide(head, from: .network(flight), step: step)
        }
    }
}

// From response headers to the decision about the response.
extension ExchangeTask {
    private enum Verdict {
        case deliver
        case next(NextStep)
        case askForCredential([CredentialQuestion])
        case askForRedirect(RedirectProposal, Hop)
        case fail(RedirectFailure)
    }

    /// Returns the step after a revalidation, or `nil` if the response is like any other response.
    fileprivate func afterAsking(
        _ head: ResponseHead, _ flight: Flight, about kept: CacheMetadata.Variant
    ) -> NextStep? {
        let prepared = flight.prepared
        // The server is asked only about a stored response with a validator. Otherwise a 304 is not about it.
        if head.status == 304, let validator = CacheValidator(kept.response.headers) {
            guard validator.isMatched(by: head) else {
                configuration.cache?.perform { disk, _ in disk.forget(prepared.resource) }
                return .startOver(prepared)
            }
            return freshen(kept, head, flight)
        }
        guard [500, 502, 503, 504].contains(head.status) else { return nil }
        return stale(flight)
    }

    /// Updates a stored response after a 304 response, or removes it if the server no longer allows it to be stored.
    private func freshen(_ kept: CacheMetadata.Variant, _ head: ResponseHead, _ flight: Flight) -> NextStep {
        let (now, prepared) = (configuration.now(), flight.prepared)
        let response = kept.response.freshened(
            by: head, to: prepared.selecting, requested: flight.sent ?? now, received: now,
            key: configuration.cache?.key ?? .none)
        let variant = CacheMetadata.Variant(response: response, body: kept.body)
        let age = CacheFreshness(response, now: now).age
        guard CacheRules.mayStore(response, method: prepared.hop.method, request: prepared.headers) else {
            configuration.cache?.perform { disk, now in
                disk.withdraw(kept.body, of: prepared.resource, now: now)
            }
            return .keptUntilNow(prepared, variant, age: age)
        }
        configuration.cache?.perform { disk, now in
            disk.freshen(kept.body, with: response, at: prepared.resource, now: now)
        }
        return .kept(prepared, variant, age: age)
    }

    /// Removes the stored responses that a successful change made invalid, whatever happens to the response.
    fileprivate func invalidate(_ head: ResponseHead, _ flight: Flight, in cache: HTTPCache) {
        let hop = flight.prepared.hop
        for address in CacheRules.invalidated(by: head, method: hop.method, at: hop.address) {
            cache.perform { disk, _ in disk.forget(address.resource) }
        }
    }

    /// Returns the step that delivers the stored response although the server failed, or `nil` if that is not allowed.
    func stale(_ flight: Flight) -> NextStep? {
        guard let kept = flight.kept else { return nil }
        let age = CacheDecision.staleOnError(
            kept.response, request: flight.prepared.headers, now: configuration.now())
        return age.map { .kept(flight.prepared, kept, age: $0) }
    }

    /// Decides what to do with a response from any source.
    func decide(_ head: ResponseHead, from source: ResponseSource, step: Int) {
        let prepared = source.prepared
        guard head.status == 401 || (300..<400).contains(head.status) else {
            // The server accepted the proof, if there is one.
            if let proof = prepared.proof { session.remember(proof, acceptedBy: prepared) }
            return deliver(head, from: source, step: step)
        }
        if let proof = prepared.proof, prepared.isProofFromMemory, head.status == 401 { session.forget(proof) }
        let (verdict, accepted) = state.withLock { state in
            self.verdict(&state, head, prepared)
        }
        if let accepted { session.remember(accepted, acceptedBy: prepared) }
        carryOut(verdict, head, source, step: step)
    }

    private func carryOut(_ verdict: Verdict, _ head: ResponseHead, _ source: ResponseSource, step: Int) {
        switch verdict {
        case .deliver: deliver(head, from: source, step: step)
        case .next(let next): leave(source, head, for: next, step: step)
        case .fail(let failure):
            var error = error(failure.code, .awaitingResponse, failure.message)
            error.status = head.status
            finish(error)
            discard(source)
        case .askForCredential(let questions):
            ask(about: head, from: source, step: step) {
                await $0.answer(questions, step: step)
            }
        case .askForRedirect(let proposal, let hop):
            ask(about: head, from: source, step: step) { await $0.answer(proposal, hop) }
        }
    }

    private func verdict(
        _ state: inout State, _ head: ResponseHead, _ prepared: PreparedHop
    ) -> (Verdict, Proof?) {
        var accepted: Proof?
        let maximumTries = configuration.challenges?.maximumTries ?? 0
        var detours = state.detours ?? (.init(policy: configuration.redirects), .init(maximumTries: maximumTries))
        defer { state.detours = detours }
        if configuration.challenges != nil {
            let action = detours.challenges.receive(
                head, to: prepared.hop, proof: prepared.proof, isFromMemory: prepared.isProofFromMemory,
                clientNonce: Self.newNonce())
            switch action {
            case .deliver: break
            case .accepted(let proof): accepted = proof
            case .answer(let proof): return (.next(.proof(prepared.hop, proof)), nil)
            case .ask(let questions): return (.askForCredential(questions), nil)
            }
        }
        let redirect = detours.redirects.receive(
            head, to: prepared.hop, cookies: prepared.cookies, credential: prepared.proof?.credential,
            hasHiddenCookies: session.hasHiddenCookies)
        switch redirect {
        case .deliver: return (.deliver, accepted)
        case .follow(let hop): return (.next(.redirect(hop)), accepted)
        case .ask(let proposal, let hop): return (.askForRedirect(proposal, hop), accepted)
        case .fail(let failure): return (.fail(failure), accepted)
        }
    }

    private static func newNonce() -> String {
        Hexadecimal.lower((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// Holds a response and asks a rule of the user, which may take time.
    private func ask(
        about head: ResponseHead, from source: ResponseSource, step: Int,
        _ question: @escaping @Sendable (ExchangeTask) async -> Verdict
    ) {
        guard state.withLock({ $0.machine.asksRule(source, step) }) else { return discard(source) }
        passPauseOrder()
        let task = Task { [self] in
            let verdict = await question(self)
            let isPresent = state.withLock { state in
                guard state.machine.beingDecided(step) != nil else { return false }
                state.question = nil
                return true
            }
            if isPresent { carryOut(verdict, head, source, step: step) }
        }
        let isOver = state.withLock { state in
            guard state.machine.beingDecided(step) != nil else { return true }
            state.question = task
            return false
        }
        // The rule already decided, or its decision is no longer needed.
        if isOver { task.cancel() }
    }

    private func answer(_ questions: [CredentialQuestion], step: Int) async -> Verdict {
        guard let rule = configuration.challenges?.rule else { return .deliver }
        for question in questions {
            // The exchange may have ended, so that the decision is no longer needed.
            guard state.withLock({ $0.machine.beingDecided(step) }) != nil else { break }
            let generation = session.proofGeneration
            let credential = await rule(question)
            let found: NextStep? = state.withLock { state in
                guard let source = state.machine.beingDecided(step),
                    var proof = state.detours?.challenges.take(
                        credential, for: question, clientNonce: Self.newNonce())
                else { return nil }
                proof.generation = generation
                return .proof(source.prepared.hop, proof)
            }
            if let found { return .next(found) }
        }
        return .deliver
    }

    private func answer(_ proposal: RedirectProposal, _ hop: Hop) async -> Verdict {
        guard case .ask(let rule) = configuration.redirects.rule else { return .deliver }
        switch await rule(proposal) {
        case .follow: return .next(.redirect(hop))
        case .stop: return .deliver
        case .refuse(let reason): return .fail(.refused(reason))
        }
    }
}
