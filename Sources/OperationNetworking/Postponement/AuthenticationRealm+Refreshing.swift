// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// A refresh, from its beginning on the realm's queue to its end, which may never come.
extension AuthenticationRealm {
    func refresh(_ number: Int, _ old: (any Sendable)?) {
        let scope = state.withLock { $0.scopes.removeValue(forKey: number) } ?? .none
        guard let fetch = closures.refresh else { return tell(event(.credentialWanted)) }
        tell(event(.refreshBegan))
        let scopeOfTask = scope.with(number, of: self)
        // A task of its own, which no operation's cancellation reaches.
        let task = Task.detached {
            do {
                let credential = try await RefreshScope.$current.withValue(scopeOfTask) { try await fetch(old) }
                self.came(credential, number)
            } catch {
                let pause = AuthenticationOptions.networkError(in: error)?.retryAfter
                let mayPass = self.options.mayPass(error)
                self.failed(
                    Machine.Failure(.failed, error: error, mayPass: mayPass, pause: pause.map(Self.bounded)), number)
            }
        }
        let timer = options.clock.schedule(after: options.refreshTimeout) { [weak self] in
            guard let self else { return }
            failed(Machine.Failure(.timedOut, mayPass: true), number)
        }
        let before = state.withLock { exchange(&$0.refresh, with: Refresh(number: number, task: task, timer: timer)) }
        before?.end()
        // It may be over already, or dropped.
        if !state.withLock({ $0.machine.isUnderWay(number) }) { stop(number) }
    }

    /// What a server asks to wait counts up to ten minutes.
    private static func bounded(_ pause: Duration) -> Duration { min(max(pause, .zero), .seconds(600)) }

    private func came(_ credential: any Sendable, _ number: Int) {
        let lifetime = closures.lifetime(credential)
        apply(telling: { $0 ? Told(kind: .credentialCame) : nil }) {
            $0.refreshed(number, credential, lifetime: lifetime, now: $1)
        }
        stop(number)
    }

    private func failed(_ failure: Machine.Failure, _ number: Int) {
        let error = error(failure)
        apply(telling: { $0 ? Told(kind: .refreshFailed, error: error) : nil }) { machine, now in
            (machine.isUnderWay(number), machine.refreshFailed(number, failure, now: now))
        }
        stop(number)
    }

    /// The refresh is over, or nobody wants it any more.
    func stop(_ number: Int) {
        let refresh = state.withLock { state in
            state.refresh?.number == number ? exchange(&state.refresh, with: nil) : nil
        }
        refresh?.end()
    }
}

extension AuthenticationRealm.Refresh {
    fileprivate func end() {
        timer.cancel()
        // What is done on its cancellation is the user's, and takes as long as it likes.
        DispatchQueue.global().async { [task] in task.cancel() }
    }
}
