// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// The realms for which a task fetches credentials: what is made in it never waits for them.
enum RefreshScope {
    @TaskLocal static var realms: Set<ObjectIdentifier> = []
}

// What follows from an event, on the realm's queue.
extension AuthenticationRealm {
    func perform(_ action: Machine.Action) {
        switch action {
        case .refresh(let number, let old): refresh(number, old)
        case .dropRefresh(let number): stop(number)
        case .release(let tickets):
            let waiters = take(tickets)
            tell(.released, count: waiters.count)
            for waiter in waiters { waiter.goOn() }
        case .fail(let tickets, let failure):
            let waiters = take(tickets)
            let error = error(failure)
            tell(.failed, count: waiters.count, error)
            for waiter in waiters { waiter.fail(error) }
        case .callAt(let moment):
            _ = options.clock.schedule(at: moment) { [weak self] in self?.apply { $0.passTime($1) } }
        }
    }

    private func take(_ tickets: [Machine.Ticket]) -> [Waiter] {
        state.withLock { state in tickets.compactMap { state.waiters.removeValue(forKey: $0) } }
    }

    // A refresh.

    private func refresh(_ number: Int, _ old: (any Sendable)?) {
        guard let fetch = closures.refresh else { return tell(.credentialWanted) }
        tell(.refreshBegan)
        let realms = RefreshScope.realms.union([ObjectIdentifier(self)])
        // A task of its own, which no operation's cancellation reaches.
        let task = Task.detached {
            do {
                let credential = try await RefreshScope.$realms.withValue(realms) { try await fetch(old) }
                self.came(credential, number)
            } catch {
                self.failed(Machine.Failure(.failed, error: error, mayPass: self.options.mayPass(error)), number)
            }
        }
        let timer = options.clock.schedule(after: options.refreshTimeout) { [weak self] in
            guard let self else { return }
            failed(Machine.Failure(.timedOut, mayPass: true), number)
        }
        let old = state.withLock { exchange(&$0.refresh, with: Refresh(number: number, task: task, timer: timer)) }
        old?.task.cancel()
        old?.timer.cancel()
        // It may be over already, or dropped.
        if !state.withLock({ $0.machine.isUnderWay(number) }) { stop(number) }
    }

    private func came(_ credential: any Sendable, _ number: Int) {
        let lifetime = closures.lifetime(credential)
        let isTaken = Locked(false)
        apply { machine, now in
            let (taken, actions) = machine.refreshed(number, credential, lifetime: lifetime, now: now)
            isTaken.withLock { $0 = taken }
            return actions
        }
        stop(number)
        if isTaken.withLock({ $0 }) { tell(.credentialCame) }
    }

    private func failed(_ failure: Machine.Failure, _ number: Int) {
        guard state.withLock({ $0.machine.isUnderWay(number) }) else { return stop(number) }
        apply { $0.refreshFailed(number, failure, now: $1) }
        tell(.refreshFailed, error(failure))
        stop(number)
    }

    /// The refresh is over, or nobody wants it any more.
    private func stop(_ number: Int) {
        let refresh = state.withLock { state in
            state.refresh?.number == number ? exchange(&state.refresh, with: nil) : nil
        }
        refresh?.timer.cancel()
        refresh?.task.cancel()
    }

    // Words.

    func tell(_ kind: AuthenticationEvent.Kind, count: Int = 0, _ error: NetworkError? = nil) {
        guard let handler = options.eventHandler else { return }
        let event = AuthenticationEvent(
            kind: kind, realm: name, version: state.withLock { $0.machine.version }, count: count, error: error)
        queue.async { handler(event) }
    }

    var reason: WaitReason {
        WaitReason(.credential, "waiting for a credential" + (name.isEmpty ? "" : " (\(name))"))
    }

    func error(_ failure: Machine.Failure) -> NetworkError {
        let place = name.isEmpty ? "" : " of \(name)"
        let (code, message): (NetworkError.Code, String) =
            switch failure.kind {
            case .failed: (.refreshFailed, "No new credential\(place) could be had. Let the user sign in again.")
            case .timedOut:
                (.refreshTimedOut, "Fetching a new credential\(place) took too long. Try again, or allow more time.")
            case .signedOut: (.signedOut, "There is no credential\(place) after signing out. Sign in first.")
            case .tooMany:
                (
                    .tooManyRefreshes,
                    "The credential\(place) was renewed \(options.maximumRefreshes) times in \(options.refreshWindow) and "
                        + "is rejected again. Look whether the server accepts what is fetched."
                )
            }
        var error = NetworkError(code: code, phase: .waiting, message: message)
        error.cause = failure.error
        return error
    }

    /// The error of an operation whose second credential was rejected as well.
    func rejection(_ error: NetworkError) -> NetworkError {
        var rejection = NetworkError(
            code: .credentialRejected, phase: error.phase,
            message:
                "The server rejected the credential\(name.isEmpty ? "" : " of \(name)"), and the new one as well. Look "
                + "whether this user may do that, and whether the credential is put where the server looks for it.",
            request: error.request)
        rejection.status = error.status
        rejection.bodyPrefix = error.bodyPrefix
        rejection.cause = error
        return rejection
    }
}
