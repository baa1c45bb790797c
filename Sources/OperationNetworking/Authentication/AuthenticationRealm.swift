// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// The state of an ``Authenticator``, without the type of its credential.
package final class AuthenticationRealm: Sendable {
    typealias Machine = CredentialMachine<any Sendable, Waiter>

    struct Closures: Sendable {
        let apply: @Sendable (any Sendable, NetworkRequest) throws -> NetworkRequest
        let lifetime: @Sendable (any Sendable) -> Duration?
        var refresh: (@Sendable ((any Sendable)?) async throws -> any Sendable)?
    }

    typealias Waiter = WaitingOperation<NetworkError?>

    struct State {
        var machine: Machine
        var refresh: Refresh?
        /// The scopes of the refreshes that are about to begin, by the number of the refresh.
        var scopes: [Int: RefreshScope] = [:]
        /// The realm, which a timer must not release under the lock.
        var realm: WeakReference<AuthenticationRealm>?
    }

    /// A refresh that is in progress.
    struct Refresh {
        let number: Int
        let task: Task<Void, Never>
        let timer: any OperationTimer
    }

    /// A number that identifies the realm in this process.
    let number: UInt64 = AuthenticationRealm.lastNumber.withLock { last in
        last += 1
        return last
    }
    private static let lastNumber = Locked<UInt64>(0)

    let options: AuthenticationOptions
    let closures: Closures
    let state: GateShell<State>
    /// The queue on which the event handler is called, which may take any time.
    let events = DispatchQueue(label: "OperationKit.AuthenticationRealm.events")
    private let origins: Set<RequestOrigin>?
    /// The first URL in the options that does not identify an origin.
    let badOrigin: URL?

    init(_ options: AuthenticationOptions, _ closures: Closures) {
        self.options = options
        self.closures = closures
        origins = options.origins.map { Set($0.compactMap(RequestOrigin.init(of:))) }
        badOrigin = options.origins?.first { RequestOrigin(of: $0) == nil }
        var limits = Machine.Limits()
        limits.leeway = options.leeway
        limits.mostRefreshes = options.maximumRefreshes
        limits.window = options.refreshWindow
        limits.pauseAfterFailure = options.pauseAfterFailure
        limits.pace = options.pace
        state = GateShell(
            State(machine: Machine(limits: limits, canRefresh: closures.refresh != nil)), clock: options.clock,
            callingOn: DispatchQueue(label: "OperationKit.AuthenticationRealm"), nextDue: \.machine.nextDue
        ) { state, now, _ in
            state.machine.timePassed(now).map { [realm = state.realm] action in { realm?.object?.perform(action) } }
        }
        state.withLock { $0.realm = WeakReference(self) }
    }

    /// The name of the realm, as set in ``AuthenticationOptions/name``.
    var name: String { options.name }

    var credential: (any Sendable)? { state.withLock { $0.machine.credential } }
    var postponedCount: Int { state.withLock { $0.machine.waitingCount } }

    /// Returns whether requests to an origin get the credential.
    ///
    /// - Parameter allowedOrigins: The only origins that get the credential if the options name no origins, or `nil`
    ///   for any origin.
    func covers(_ origin: RequestOrigin, allowedOrigins: [RequestOrigin]?) -> Bool {
        (origins?.contains(origin) ?? allowedOrigins?.contains(origin)) ?? true
    }

    /// Returns whether a response rejects the credential of a request.
    ///
    /// - Parameter isSaidByBody: Whether the body of the response rejects the credential, regardless of the status
    ///   and headers.
    func isRejected(_ head: ResponseHead, _ request: NetworkRequest, isSaidByBody: Bool = false) -> Bool {
        // The response of another origin, to which a redirect led, does not concern this credential.
        guard head.url == request.url || RequestOrigin(of: head.url) == request.origin else { return false }
        return isSaidByBody || options.isRejected(head)
    }

    /// The waiting operations, in the order of their arrival.
    var postponed: [any AnyNetworkOperation] { state.withLock { $0.machine.waiters }.compactMap(\.operation) }

    // Calls of the operations.

    /// Returns the credential if it can be used now, or nil if ``want(_:in:)`` must be called.
    func current() -> (credential: any Sendable, version: Int)? {
        let now = options.clock.now
        return state.withLock { $0.machine.current(now: now) }
    }

    /// Requests a credential for a request that is ready.
    ///
    /// - Parameter scope: The refreshes on whose behalf the operation was created, which must not wait for a refresh
    ///   that the operation causes.
    func want(_ waiter: Waiter, in scope: RefreshScope) -> Machine.Answer {
        apply(in: scope) { $0.want(waiter, now: $1) }
    }

    /// Reports that the credential of a version was rejected.
    ///
    /// If the credential was replaced before the rejection, the rejection does not concern its replacement.
    ///
    /// - Parameter first: The version of the credential at the first rejection in the same operation, or nil if there
    ///   was none.
    func reject(_ version: Int, after first: Int?, _ waiter: Waiter, in scope: RefreshScope) -> Machine.Answer {
        apply(in: scope) { $0.reject(version, isSecond: first.map { version > $0 } ?? false, waiter, now: $1) }
    }

    /// Reports a rejection before the response is complete, and returns the current version.
    func recordRejection(_ version: Int, after first: Int?, _ scope: RefreshScope) -> Int {
        apply(in: scope) { machine, now in
            let present = machine.version
            // The rejection of a new credential does not cause another refresh.
            let isSecond = first.map { version > $0 } ?? false
            return (present, isSecond ? [] : machine.recordRejection(version, now: now))
        }
    }

    /// Returns whether a request with the credential of a version may be sent.
    func maySend(_ version: Int) -> Bool { state.withLock { $0.machine.maySend(version) } }

    /// Returns whether the credential of a refresh would be accepted.
    func isOfUse(_ refresh: Int) -> Bool { state.withLock { $0.machine.isOfUse(refresh) } }

    /// Forgets failures of refreshes before a time, because their cause, such as a missing network, is gone.
    func forgetFailure(before moment: OperationInstant) {
        let now = options.clock.now
        state.withLock { $0.machine.forgetFailure(before: moment, now: now) }
    }

    /// Removes an operation that no longer waits.
    func leave(_ ticket: UInt64) { _ = state.apply { state, _, _ in (state.machine.leave(ticket), []) } }

    // Calls of the user.

    func set(_ credential: any Sendable) {
        let lifetime = closures.lifetime(credential)
        apply(reporting: { event(.credentialCame, $1) }) {
            ((), $0.set(credential, lifetime: lifetime, now: $1))
        }
    }

    func signOut() { apply { ((), $0.signOut(now: $1)) } }

    func failPostponed(because error: (any Error)?) {
        apply { ((), $0.failWaiting(Machine.Failure(.failed, error: error), now: $1)) }
    }

    /// Applies an event, and starts to perform its actions.
    ///
    /// - Parameters:
    ///   - scope: The refreshes on whose behalf the event occurs.
    ///   - report: A closure that returns the event to report before the actions, or nil.
    @discardableResult
    func apply<Result>(
        in scope: RefreshScope = .none, reporting report: (Result, Int) -> AuthenticationEvent? = { _, _ in nil },
        _ change: (inout Machine, OperationInstant) -> (Result, [Machine.Action])
    ) -> Result {
        let (result, old) = state.apply { state, now, _ in
            let old = (state.machine.lastCredential, state.machine.lastError)
            let (result, actions) = change(&state.machine, now)
            for case .refresh(let number, _) in actions where !scope.isEmpty { state.scopes[number] = scope }
            var calls = actions.map { action -> GateShell<State>.Call in { self.perform(action) } }
            if options.areEventsWanted, let event = report(result, state.machine.version) {
                calls.insert({ self.notify(event) }, at: 0)
            }
            return ((result, old), calls)
        }
        // The old credential and error may hold user objects, so they are released without holding the lock.
        extendLifetime(old)
        return result
    }
}

// Actions that follow from an event, on the realm's queue.
extension AuthenticationRealm {
    func perform(_ action: Machine.Action) {
        switch action {
        case .refresh(let number, let old): refresh(number, old)
        case .dropRefresh(let number): stop(number)
        case .release(let waiters):
            notify(event(.released, count: waiters.count))
            for waiter in waiters { waiter.end(nil) }
        case .fail(let waiters, let failure):
            let error = error(failure)
            notify(event(.failed, count: waiters.count, error: error))
            for waiter in waiters { waiter.end(error) }
        }
    }

    // Events.

    func notify(_ event: AuthenticationEvent) {
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

// Calls for a single waiting operation.
extension AuthenticationRealm {
    func run(_ operation: any AnyNetworkOperation, changing change: @escaping PostponedOperations.Change) -> Bool {
        guard let waiter = takeOut(operation), let owner = waiter.operation else { return false }
        (owner.networkAttempts.policies?[.credential] as? CredentialAgent)?.skipCredential(self)
        owner.networkAttempts.change(with: change)
        waiter.end(nil)
        return true
    }

    func fail(_ operation: any AnyNetworkOperation, because error: (any Error)?) -> Bool {
        guard let waiter = takeOut(operation) else { return false }
        waiter.end(self.error(Machine.Failure(.failed, error: error)))
        return true
    }

    /// Removes a waiting operation, and returns nil if it does not wait.
    private func takeOut(_ operation: any AnyNetworkOperation) -> Waiter? {
        state.apply { state, _, _ in (state.machine.leave { $0.belongs(to: operation) }, []) }
    }
}

extension Authenticator {
    /// Resumes a waiting operation with a changed request that does not contain this authenticator's credential.
    ///
    /// After this call, the authenticator no longer adds its credential to the operation's requests. Add another
    /// credential in the `change` closure. If the server rejects a request, the operation does not wait for this
    /// authenticator again.
    ///
    /// - Parameters:
    ///   - operation: An operation in ``postponed``.
    ///   - change: A closure that changes the request for this attempt and for all later attempts.
    /// - Returns: `true` if the operation was waiting for a credential; otherwise, `false`.
    @discardableResult
    public func run(
        _ operation: any AnyNetworkOperation, changing change: @escaping PostponedOperations.Change
    ) -> Bool {
        realm.run(operation, changing: change)
    }

    /// Makes an operation that waits for a credential fail with ``NetworkError/Code/refreshFailed``.
    ///
    /// - Parameters:
    ///   - operation: An operation in ``postponed``.
    ///   - error: The ``NetworkError/cause`` of the error with which the operation fails. The default is `nil`, which
    ///     means that the error has no cause.
    /// - Returns: `true` if the operation was waiting for a credential; otherwise, `false`.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation, because error: (any Error)? = nil) -> Bool {
        realm.fail(operation, because: error)
    }
}

// Texts about waits and failures.
extension AuthenticationRealm {
    var reason: WaitReason {
        WaitReason(.credential, "waiting for a credential" + (name.isEmpty ? "" : " (\(name))"))
    }

    func error(_ failure: Machine.Failure) -> NetworkError {
        let place = name.isEmpty ? "" : " for \(name)"
        let (code, message): (NetworkError.Code, String) =
            switch failure.kind {
            case .failed: (.refreshFailed, "The credential\(place) could not be refreshed. Sign in again.")
            case .timedOut:
                (.refreshTimedOut, "Refreshing the credential\(place) timed out. Try again, or raise refreshTimeout.")
            case .signedOut: (.signedOut, "The user signed out, so there is no credential\(place). Sign in first.")
            case .tooMany:
                (
                    .tooManyRefreshes,
                    "The credential\(place) was refreshed \(options.maximumRefreshes) times within "
                        + "\(options.refreshWindow). Check whether the server accepts the new credentials."
                )
            }
        var error = NetworkError(code: code, phase: .waiting, message: message)
        error.cause = failure.error
        return error
    }

    /// The error for an invalid origin in the options.
    var errorOfOrigin: NetworkError? {
        guard let badOrigin else { return nil }
        // The text of an error must not contain secrets.
        let text = badOrigin.absoluteString.prefix { $0 != "?" }
        return NetworkError(
            code: .invalidURL, phase: .checking,
            message:
                "The realm\(name.isEmpty ? "" : " \(name)") has an origin that is not valid"
                + (text.contains("@") ? "" : " (\(text))")
                + ". Specify the scheme and the host, as in https://example.com.")
    }

    /// Returns the error of an operation whose second credential was rejected too.
    func rejection(_ error: NetworkError) -> NetworkError {
        var rejection = NetworkError(
            code: .credentialRejected, phase: error.phase,
            message:
                "The server rejected the credential\(name.isEmpty ? "" : " for \(name)"), and then the new "
                + "credential. Check whether the user has this permission, and whether the request contains the "
                + "credential where the server expects it.",
            request: error.request)
        rejection.status = error.status
        rejection.bodyPrefix = error.bodyPrefix
        rejection.cause = error
        return rejection
    }
}

extension NetworkError {
    /// The code of the network error that made a refresh fail, or nil for another error.
    var codeOfRefresh: Code? {
        switch code {
        case .refreshFailed: cause.flatMap(AuthenticationOptions.networkError)?.code
        case .refreshTimedOut: .timedOut
        default: nil
        }
    }
}

// A refresh, from its start on the realm's queue to its end.
extension AuthenticationRealm {
    func refresh(_ number: Int, _ old: (any Sendable)?) {
        let scope = state.withLock { $0.scopes.removeValue(forKey: number) } ?? .none
        // A sign-out or a new credential may have dropped the refresh while it waited for the realm's queue.
        guard isOfUse(number) else { return }
        guard let fetch = closures.refresh else { return notify(event(.credentialWanted)) }
        notify(event(.refreshBegan))
        let scopeOfTask = scope.with(refreshOf: self.number) { [weak self] in self?.isOfUse(number) ?? false }
        // A detached task is not canceled together with an operation.
        let task = Task.detached {
            // The task may begin late.
            guard self.isOfUse(number) else { return }
            do {
                let credential = try await RefreshScope.$current.withValue(scopeOfTask) { try await fetch(old) }
                self.came(credential, number)
            } catch {
                // The pause that a server asks for is limited to ten minutes.
                let pause = AuthenticationOptions.networkError(in: error)?.retryAfter
                    .map { min(max($0, .zero), .seconds(600)) }
                let mayPass = self.options.mayPass(error)
                self.failed(Machine.Failure(.failed, error: error, mayPass: mayPass, pause: pause), number)
            }
        }
        let timer = options.clock.schedule(after: options.refreshTimeout) { [weak self] in
            guard let self else { return }
            failed(Machine.Failure(.timedOut, mayPass: true), number)
        }
        let before = state.withLock { exchange(&$0.refresh, with: Refresh(number: number, task: task, timer: timer)) }
        before?.end()
        // The refresh may have ended or been dropped already.
        if !state.withLock({ $0.machine.isUnderWay(number) }) { stop(number) }
    }

    private func came(_ credential: any Sendable, _ number: Int) {
        let lifetime = closures.lifetime(credential)
        apply(reporting: { $0 ? event(.credentialCame, $1) : nil }) {
            $0.refreshed(number, credential, lifetime: lifetime, now: $1)
        }
        stop(number)
    }

    private func failed(_ failure: Machine.Failure, _ number: Int) {
        let error = error(failure)
        apply(reporting: { $0 ? event(.refreshFailed, $1, error: error) : nil }) { machine, now in
            (machine.isUnderWay(number), machine.refreshFailed(number, failure, now: now))
        }
        stop(number)
    }

    /// Stops a refresh that is over or no longer needed.
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
        // The cancellation handlers are user code and may take any time.
        DispatchQueue.global().async { [task] in task.cancel() }
    }
}
