// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From a response that is not the answer to the next step.
extension ExchangeTask {
    /// How much of a body is read that nobody wants: so the connection can be used again.
    static let drainLimit = 64 << 10

    /// Leaves a response behind; what is left of one from the session runs out.
    func leave(_ source: ResponseSource, _ head: ResponseHead, for next: NextStep, step: Int) {
        var tee: CacheTee?
        // A redirect can be kept like any other response, and may tell of a change.
        if case .redirect = next { tee = keep(head, from: source) }
        switch state.withLock({ $0.machine.leaves(source, for: next, tee, step) }) {
        case .drop:
            tee?.end(isComplete: false)
            discard(source)
        case .goOn:
            tee?.end(isComplete: false)
            discard(source)
            go(next)
        case .drain:
            settle()
            let isLong = source.prepared.hop.method != "HEAD" && (head.expectedLength ?? 0) > Int64(Self.drainLimit)
            if isLong { source.task?.cancel() }
        }
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

    private func nextStep() -> Int? { state.withLock { $0.machine.advance() } }
}
