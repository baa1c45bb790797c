// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// What follows from an event, on the realm's queue.
extension AuthenticationRealm {
    func perform(_ action: Machine.Action) {
        switch action {
        case .refresh(let number, let old): refresh(number, old)
        case .dropRefresh(let number): stop(number)
        case .release(let tickets):
            let waiters = take(tickets)
            tell(event(.released, count: waiters.count))
            for waiter in waiters { waiter.goOn() }
        case .fail(let tickets, let failure):
            let waiters = take(tickets)
            let error = error(failure)
            tell(event(.failed, count: waiters.count, error: error))
            for waiter in waiters { waiter.fail(error) }
        case .callAt(let moment):
            _ = options.clock.schedule(at: moment) { [weak self] in
                self?.apply { ((), $0.passTime($1)) }
            }
        }
    }

    private func take(_ tickets: [Machine.Ticket]) -> [Waiter] {
        state.withLock { state in tickets.compactMap { state.waiters.removeValue(forKey: $0) } }
    }

    // Words.

    func tell(_ event: AuthenticationEvent) {
        if let handler = options.eventHandler { events.async { handler(event) } }
        let onMain = options.mainActorEventHandlers
        guard !onMain.isEmpty else { return }
        DispatchQueue.main.async {
            MainActor.assumeIsolated { for handler in onMain { handler(event) } }
        }
    }

    func event(
        _ kind: AuthenticationEvent.Kind, count: Int = 0, error: NetworkError? = nil
    ) -> AuthenticationEvent {
        event(kind, state.withLock { $0.machine.version }, count: count, error: error)
    }

    func event(
        _ kind: AuthenticationEvent.Kind, _ version: Int, count: Int = 0, error: NetworkError? = nil
    ) -> AuthenticationEvent {
        AuthenticationEvent(kind: kind, realm: name, version: version, count: count, error: error)
    }
}
