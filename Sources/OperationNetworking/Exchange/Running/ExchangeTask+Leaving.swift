// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// From a response that is not the answer to the next step.
extension ExchangeTask {
    /// How much of a body is read that nobody wants: so the connection can be used again.
    static let drainLimit = 64 << 10
    /// For how long that is waited for.
    static let drainTime = Duration.seconds(2)

    /// Leaves a response behind; what is left of one from the session runs out.
    func leave(_ source: ResponseSource, _ head: ResponseHead, for next: NextStep, step: Int) {
        var tee: CacheTee?
        // A redirect can be kept like any other response.
        if case .redirect = next { tee = keep(head, from: source) }
        if source.isFlight { state.withLock { $0.watcher }?.left(head) }
        // What broke may carry something of the user's: it goes outside of the lock.
        let (broken, leaving) = state.withLock { state in
            (state.machine.broken, state.machine.leaves(source, for: next, tee, step))
        }
        withExtendedLifetime(broken) {}
        switch leaving {
        case .drop:
            tee?.end(isComplete: false)
            discard(source)
        case .goOn:
            tee?.end(isComplete: false)
            discard(source)
            // It may go on although it was held.
            if broken != nil {
                source.task?.cancel()
                state.withLock { $0.watcher }?.hopIsOver()
            }
            go(next)
        case .drain:
            settle()
            if Self.announcedLength(of: head, to: source.prepared.hop) > Int64(Self.drainLimit) {
                source.task?.cancel()
            } else {
                limitDraining(of: source, step: step)
            }
        }
    }

    /// One that drips is given up after a while: a new connection costs less than the wait.
    private func limitDraining(of source: ResponseSource, step: Int) {
        let timer = configuration.clock.schedule(after: Self.drainTime) { [weak self] in
            guard let self, state.withLock({ $0.machine.isDraining(step) }) else { return }
            source.task?.cancel()
        }
        let isOver = state.withLock { state in
            guard state.machine.isDraining(step) else { return true }
            state.drainTimer = timer
            return false
        }
        if isOver { timer.cancel() }
    }

    /// Lets go of a body in the cache.
    func discard(_ source: ResponseSource) {
        guard case .cache(_, let body?) = source else { return }
        configuration.cache?.perform { disk, _ in disk.closeReader(body) }
    }

    /// Takes the next step; the phase is `preparing`.
    func go(_ next: NextStep) {
        let timer = state.withLock { exchange(&$0.drainTimer, with: nil) }
        timer?.cancel()
        switch next {
        case .redirect(let hop): start(hop, proof: nil, isRedirect: true)
        case .proof(let hop, let proof): start(hop, proof: proof)
        case .anew(let prepared):
            guard let step = nextStep() else { return }
            // After what was forgotten just now.
            configuration.cache?.perform { [self] disk, _ in send(prepared, kept: nil, from: disk, step: step) }
        case .kept(let prepared, let variant, let age):
            guard let step = nextStep() else { return }
            configuration.cache?.perform { [self] disk, now in
                serve(variant, age: age, to: prepared, from: disk, now: now, step: step)
            }
        case .keptUntilNow(let prepared, let variant, let age):
            let step = nextStep()
            configuration.cache?.perform { [self] disk, now in
                if let step { serve(variant, age: age, to: prepared, from: disk, now: now, step: step) }
                // It is open for whoever reads it now.
                disk.remove(variant.body)
            }
        }
    }

    private func nextStep() -> Int? { state.withLock { $0.machine.advance() } }
}
