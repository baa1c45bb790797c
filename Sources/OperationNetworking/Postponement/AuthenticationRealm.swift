// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Those requests that one credential is for: what an ``Authenticator`` keeps, whatever the type of its credential.
///
/// It is the shell of ``PostponementMachine``: applies events under its lock, and performs on a queue of its own what
/// concerns many, in the order in which it was decided.
public final class AuthenticationRealm: Sendable {
    typealias Machine = PostponementMachine<any Sendable>

    struct Closures: Sendable {
        let apply: @Sendable (any Sendable, NetworkRequest) throws -> NetworkRequest
        let lifetime: @Sendable (any Sendable) -> Duration?
        var refresh: (@Sendable ((any Sendable)?) async throws -> any Sendable)?
    }

    /// One that waits for a credential.
    struct Waiter: Sendable {
        weak var operation: (any AttemptHost)?
        let goOn: @Sendable () -> Void
        let fail: @Sendable (NetworkError) -> Void
    }

    struct State {
        var machine: Machine
        var waiters: [Machine.Ticket: Waiter] = [:]
        var refresh: Refresh?
        /// What was decided and is still to be done, in that order.
        var due = Fifo<Machine.Action>()
        var isBusy = false

        /// Whether somebody has to begin doing it.
        mutating func note(_ actions: [Machine.Action]) -> Bool {
            for action in actions { due.append(action) }
            return !due.isEmpty && !exchange(&isBusy, with: true)
        }
    }

    /// A refresh that is under way.
    struct Refresh {
        let number: Int
        let task: Task<Void, Never>
        let timer: any OperationTimer
    }

    let options: AuthenticationOptions
    let closures: Closures
    let state: Locked<State>
    let queue = DispatchQueue(label: "OperationKit.AuthenticationRealm")
    private let origins: Set<RequestOrigin>?

    init(_ options: AuthenticationOptions, _ closures: Closures) {
        self.options = options
        self.closures = closures
        origins = options.origins.map { Set($0.compactMap(RequestOrigin.init(of:))) }
        var limits = Machine.Limits()
        limits.leeway = options.leeway
        limits.mostRefreshes = options.maximumRefreshes
        limits.window = options.refreshWindow
        limits.pauseAfterFailure = options.pauseAfterFailure
        limits.pace = options.pace
        state = Locked(State(machine: Machine(limits: limits, canRefresh: closures.refresh != nil)))
    }

    /// The name of the options.
    public var name: String { options.name }

    var credential: (any Sendable)? { state.withLock { $0.machine.credential } }
    var postponedCount: Int { state.withLock { $0.machine.waitingCount } }

    /// Whether requests to that place get the credential.
    func covers(_ origin: RequestOrigin) -> Bool { origins?.contains(origin) ?? true }

    /// What a response to such a request says of it.
    func isRejected(_ head: ResponseHead, _ request: NetworkRequest) -> Bool {
        // What another place says, to which a redirect led, says nothing of this credential.
        options.isRejected(head) && (head.url == request.url || RequestOrigin(of: head.url) == request.origin)
    }

    /// Those that wait, in the order in which they came.
    var postponed: [any AnyNetworkOperation] {
        let waiters = state.withLock { $0.waiters }
        return waiters.sorted { $0.key < $1.key }.compactMap { $0.value.operation }
    }

    // What the operations ask.

    /// The credential that may be used now; nil if somebody has to be asked.
    func current() -> (credential: any Sendable, version: Int)? {
        let now = options.clock.now
        return state.withLock { $0.machine.current(now: now) }
    }

    /// A request is ready and wants a credential.
    func want(_ waiter: Waiter) -> Machine.Answer {
        ask(waiter) { $0.want(now: $1) }
    }

    /// The credential of that version was rejected.
    func reject(_ version: Int, isSecond: Bool, _ waiter: Waiter) -> Machine.Answer {
        ask(waiter) { $0.reject(version, isSecond: isSecond, now: $1) }
    }

    private func ask(
        _ waiter: Waiter, _ question: (inout Machine, OperationInstant) -> (Machine.Answer, [Machine.Action])
    ) -> Machine.Answer {
        let now = options.clock.now
        let (answer, begins) = state.withLock { state in
            let (answer, actions) = question(&state.machine, now)
            if case .wait(let ticket) = answer { state.waiters[ticket] = waiter }
            return (answer, state.note(actions))
        }
        if begins { queue.async { self.performDue() } }
        return answer
    }

    /// The operation does not wait any more.
    func leave(_ ticket: Machine.Ticket) {
        let waiter = state.withLock { state in
            state.machine.leave(ticket)
            return state.waiters.removeValue(forKey: ticket)
        }
        withExtendedLifetime(waiter) {}
    }

    // What the user says.

    func set(_ credential: any Sendable) {
        let lifetime = closures.lifetime(credential)
        apply { $0.set(credential, lifetime: lifetime, now: $1) }
        tell(.credentialCame)
    }

    func signOut() { apply { machine, _ in machine.signOut() } }

    func failPostponed(because error: (any Error)?) {
        apply { machine, _ in machine.failWaiting(Machine.Failure(.failed, error: error)) }
    }

    /// Applies an event, and has done what follows.
    func apply(_ event: (inout Machine, OperationInstant) -> [Machine.Action]) {
        let now = options.clock.now
        let (begins, old) = state.withLock { state in
            let old = state.machine.lastCredential
            let actions = event(&state.machine, now)
            return (state.note(actions), old)
        }
        // It is the user's, and let go of outside of the lock.
        withExtendedLifetime(old) {}
        if begins { queue.async { self.performDue() } }
    }

    private func performDue() {
        while let action = state.withLock({ state in
            let action = state.due.popFirst()
            if action == nil { state.isBusy = false }
            return action
        }) { perform(action) }
    }
}
