// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From a response that is not the answer to the next step.
extension ExchangeTask {
    /// How much of a body is read that nobody wants: so the connection can be used again.
    private static let drainLimit = 64 << 10

    /// Leaves a response behind.
    func leave(_ source: ResponseSource, _ head: ResponseHead, for next: NextStep, step: Int) {
        if case .network(let flight) = source { return drain(flight, head, next, step: step) }
        let isPresent = state.withLock { state in
            guard state.step == step else { return false }
            state.phase = .preparing
            state.brakes.remove(.decision)
            return true
        }
        discard(source)
        if isPresent { go(next) }
    }

    /// Lets what is left of a response run out.
    func drain(_ flight: Flight, _ head: ResponseHead, _ next: NextStep, step: Int) {
        var tee: CacheTee?
        // A redirect can be kept like any other response, and may tell of a change.
        if case .redirect = next { tee = keep(head, from: .network(flight)) }
        let (isPresent, isBroken) = state.withLock { state in
            guard state.step == step else { return (false, false) }
            let isBroken = state.broken != nil
            state.broken = nil
            state.brakes.remove(.decision)
            state.phase = isBroken ? .preparing : .draining(flight, next, tee, discarded: 0)
            return (true, isBroken)
        }
        if !isPresent || isBroken { tee?.end(isComplete: false) }
        guard isPresent else { return }
        if isBroken { return go(next) }
        settle(flight.task)
        let isLong = flight.prepared.hop.method != "HEAD" && (head.expectedLength ?? 0) > Int64(Self.drainLimit)
        if isLong { flight.task.cancel() }
    }

    /// Counts bytes that nobody wants but perhaps the cache; the task is to be cancelled when they become too many.
    static func discardBytes(_ count: Int, _ state: inout State) -> (tee: CacheTee?, cancelled: (any NetworkTask)?)? {
        guard case .draining(let flight, let next, let tee, let discarded) = state.phase else { return nil }
        let sum = discarded + count
        state.phase = .draining(flight, next, tee, discarded: sum)
        return (tee, sum > drainLimit && discarded <= drainLimit ? flight.task : nil)
    }

    /// Lets go of a body in the cache.
    func discard(_ source: ResponseSource) {
        guard case .cache(_, let body?) = source else { return }
        configuration.cache?.perform { disk, _ in disk.closeReader(body) }
    }

    /// Takes the next step; the phase is `preparing`.
    func go(_ next: NextStep) {
        switch next {
        case .redirect(let hop): start(hop, proof: nil, isRedirect: true)
        case .proof(let hop, let proof): start(hop, proof: proof)
        case .anew(let prepared):
            guard let step = nextStep() else { return }
            send(prepared, kept: nil, step: step)
        case .kept(let prepared, let variant, let age):
            guard let step = nextStep() else { return }
            configuration.cache?.perform { [self] disk, now in
                serve(variant, age: age, to: prepared, from: disk, now: now, step: step)
            }
        }
    }

    private func nextStep() -> Int? { state.withLock { $0.advance() } }
}
