// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Those requests that one credential is for: what an ``Authenticator`` keeps, whatever the type of its credential.
///
/// It is the shell of `PostponementMachine`: applies events under its lock, and performs on a queue of its own what
/// concerns many, in the order in which it was decided. Nothing of the user's runs on that queue.
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
        /// For which refreshes it was made, which must not wait for the one that it begins.
        let scope: RefreshScope
        let goOn: @Sendable () -> Void
        let fail: @Sendable (NetworkError) -> Void
    }

    struct State {
        var machine: Machine
        var waiters: [Machine.Ticket: Waiter] = [:]
        var refresh: Refresh?
        /// For which other refreshes those are that are about to begin.
        var scopes: [Int: RefreshScope] = [:]
        /// What was decided and is still to be done, in that order.
        var due = DeliveryQueue<Step>()

        /// Whether somebody has to begin doing it.
        mutating func note(_ steps: [Step]) -> Bool {
            var begins = false
            for step in steps where due.append(step) { begins = true }
            return begins
        }
    }

    /// What is told of an event.
    struct Told {
        let kind: AuthenticationEvent.Kind
        var error: NetworkError?
    }

    /// What is done on the realm's queue.
    enum Step {
        case act(Machine.Action)
        case tell(AuthenticationEvent)
    }

    /// A refresh that is under way.
    struct Refresh {
        let number: Int
        let task: Task<Void, Never>
        let timer: any OperationTimer
    }

    /// Which it is of all that there ever were.
    let number: UInt64 = AuthenticationRealm.lastNumber.withLock { last in
        last += 1
        return last
    }
    private static let lastNumber = Locked<UInt64>(0)

    let options: AuthenticationOptions
    let closures: Closures
    let state: Locked<State>
    private let queue = DispatchQueue(label: "OperationKit.AuthenticationRealm")
    /// Where the event handler runs, which may take as long as it likes.
    let events = DispatchQueue(label: "OperationKit.AuthenticationRealm.events")
    private let origins: Set<RequestOrigin>?
    /// One of the options' places to which nothing can be sent, so that it is not known what was meant.
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
        state = Locked(State(machine: Machine(limits: limits, canRefresh: closures.refresh != nil)))
    }

    /// The name of the options.
    public var name: String { options.name }

    var credential: (any Sendable)? { state.withLock { $0.machine.credential } }
    var postponedCount: Int { state.withLock { $0.machine.waitingCount } }

    /// Returns whether requests to an origin get the credential.
    ///
    /// - Parameter homes: The only origins that get the credential if the options name no origins; `nil` for any origin.
    func covers(_ origin: RequestOrigin, homes: [RequestOrigin]?) -> Bool {
        (origins?.contains(origin) ?? homes?.contains(origin)) ?? true
    }

    /// What a response to such a request says of it.
    ///
    /// - Parameter isSaidByBody: Whether the body of the response rejects the credential, whatever its head says.
    func isRejected(_ head: ResponseHead, _ request: NetworkRequest, isSaidByBody: Bool = false) -> Bool {
        // What another place says, to which a redirect led, says nothing of this credential.
        guard head.url == request.url || RequestOrigin(of: head.url) == request.origin else { return false }
        return isSaidByBody || options.isRejected(head)
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

    /// The credential of that version was rejected, and in the same operation one before when there were so many.
    ///
    /// One that was rejected after it had been replaced says nothing of the one in its place.
    func reject(_ version: Int, after first: Int?, _ waiter: Waiter) -> Machine.Answer {
        ask(waiter) { $0.reject(version, isSecond: first.map { version > $0 } ?? false, now: $1) }
    }

    /// That will be said of it as soon as the response is complete; returns how many there were by now.
    func noteRejected(_ version: Int, after first: Int?, _ scope: RefreshScope) -> Int {
        apply(in: scope) { machine, now in
            let present = machine.version
            // A fresh one that is rejected is no reason for another.
            let isSecond = first.map { version > $0 } ?? false
            return (present, isSecond ? [] : machine.noteRejected(version, now: now))
        }
    }

    /// Whether a request may be sent that was made with that one.
    func mayLeave(_ version: Int) -> Bool { state.withLock { $0.machine.mayLeave(version) } }

    /// Whether what that refresh gives would be taken.
    func isOfUse(_ refresh: Int) -> Bool { state.withLock { $0.machine.isOfUse(refresh) } }

    /// What made refreshes fail until that moment, such as a network that was gone, is over.
    func forgetFailure(before moment: OperationInstant) {
        let now = options.clock.now
        state.withLock { $0.machine.forgetFailure(before: moment, now: now) }
    }

    private func ask(
        _ waiter: Waiter, _ question: (inout Machine, OperationInstant) -> (Machine.Answer, [Machine.Action])
    ) -> Machine.Answer {
        let now = options.clock.now
        let (answer, begins, old) = state.withLock { state in
            let old = state.machine.lastError
            let (answer, actions) = question(&state.machine, now)
            if case .wait(let ticket) = answer { state.waiters[ticket] = waiter }
            return (answer, note(actions, &state, waiter.scope), old)
        }
        // It is the user's, and let go of outside of the lock.
        withExtendedLifetime(old) {}
        if begins { queue.async { self.performDue() } }
        return answer
    }

    private func note(_ actions: [Machine.Action], _ state: inout State, _ scope: RefreshScope) -> Bool {
        for case .refresh(let number, _) in actions where !scope.isEmpty { state.scopes[number] = scope }
        return state.note(actions.map(Step.act))
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
        apply(telling: { _ in Told(kind: .credentialCame) }) { ((), $0.set(credential, lifetime: lifetime, now: $1)) }
    }

    func signOut() { apply { machine, _ in ((), machine.signOut()) } }

    func failPostponed(because error: (any Error)?) {
        apply { ((), $0.failWaiting(Machine.Failure(.failed, error: error), now: $1)) }
    }

    /// Applies an event, and has done what follows.
    ///
    /// - Parameters:
    ///   - scope: For which other refreshes is whoever brings it about.
    ///   - told: What is told of it before all that follows, if it is.
    @discardableResult
    func apply<Result>(
        in scope: RefreshScope = .none, telling told: (Result) -> Told? = { _ in nil },
        _ happen: (inout Machine, OperationInstant) -> (Result, [Machine.Action])
    ) -> Result {
        let now = options.clock.now
        let (result, begins, old) = state.withLock { state in
            let old = (state.machine.lastCredential, state.machine.lastError)
            let (result, actions) = happen(&state.machine, now)
            var begins = false
            if options.areEventsWanted, let told = told(result) {
                begins = state.note([.tell(event(told.kind, state.machine.version, error: told.error))])
            }
            // Only the first that has something to be done begins with it.
            return (result, note(actions, &state, scope) || begins, old)
        }
        // They are the user's, and let go of outside of the lock.
        withExtendedLifetime(old) {}
        if begins { queue.async { self.performDue() } }
        return result
    }

    private func performDue() {
        while let step = state.withLock({ $0.due.next() }) {
            switch step {
            case .act(let action): perform(action)
            case .tell(let event): tell(event)
            }
        }
    }
}

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

// Single ones of those that wait.
extension AuthenticationRealm {
    func run(
        _ operation: any AnyNetworkOperation, on queue: QueueManager?,
        changing change: @escaping PostponedOperations.Change
    ) throws(QueueError) -> Bool {
        guard let waiter = takeOut(operation), let host = waiter.operation else { return false }
        let goOn = { @Sendable [self, weak host] in
            host?.networkAttempts.policy(of: CredentialAgent.self)?.goWithout(self)
            host?.networkAttempts.change(with: change)
            waiter.goOn()
        }
        // Its own place is the one for which it would wait there, behind whoever stands for it.
        guard let queue, !host.isHosted(by: queue) else {
            goOn()
            return true
        }
        do throws(QueueError) {
            try queue.add(PostponedRun(of: host, goOn))
        } catch {
            // Its place in the line is gone, and what it waits for may have come meanwhile: it asks anew.
            waiter.goOn()
            throw error
        }
        return true
    }

    func fail(_ operation: any AnyNetworkOperation, because error: (any Error)?) -> Bool {
        guard let waiter = takeOut(operation) else { return false }
        waiter.fail(self.error(Machine.Failure(.failed, error: error)))
        return true
    }

    /// Takes it out of the line; nil if it is not in it.
    private func takeOut(_ operation: any AnyNetworkOperation) -> Waiter? {
        // Looked for outside of the lock, where an operation may go that has just ended.
        let waiters = state.withLock { $0.waiters }
        guard let ticket = waiters.first(where: { $0.value.operation === operation })?.key else { return nil }
        return state.withLock { state in
            state.machine.leave(ticket)
            return state.waiters.removeValue(forKey: ticket)
        }
    }
}

extension Authenticator {
    /// Sends one of the ``postponed`` operations again, changed, without this realm's credential; false if it is not one of
    /// them.
    ///
    /// From now on it is yours: the realm puts no credential into its requests any more, `change` does, and one that is
    /// rejected fails with that.
    ///
    /// - Parameters:
    ///   - operation: One of those that wait.
    ///   - queue: Lets it go on when it would begin in that queue, as ``PostponedOperations/runAll(on:changing:)`` does.
    ///   - change: Changes its request: of this attempt, and of those that follow.
    /// - Throws: If the queue takes no more. Then it waits for a credential as before, at the end of the line.
    @discardableResult
    public func run(
        _ operation: any AnyNetworkOperation, on queue: QueueManager? = nil,
        changing change: @escaping PostponedOperations.Change
    ) throws(QueueError) -> Bool {
        try realm.run(operation, on: queue, changing: change)
    }

    /// Lets one of the ``postponed`` operations fail; false if it is not one of them.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation, because error: (any Error)? = nil) -> Bool {
        realm.fail(operation, because: error)
    }
}

// What is said of waits and failures.
extension AuthenticationRealm {
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

    /// What is wrong with the places of the options.
    var errorOfOrigin: NetworkError? {
        guard let badOrigin else { return nil }
        // Nothing that may be a secret is in the text of an error.
        let text = badOrigin.absoluteString.prefix { $0 != "?" }
        return NetworkError(
            code: .invalidURL, phase: .checking,
            message:
                "The realm\(name.isEmpty ? "" : " \(name)") has an origin to which nothing can be sent"
                + (text.contains("@") ? "" : " (\(text))") + ". Name scheme and host, as in https://example.com.")
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

extension NetworkError {
    /// What a refresh failed with that found no network, or no server; nil if the error is about something else.
    var codeOfRefresh: Code? {
        switch code {
        case .refreshFailed: cause.flatMap(AuthenticationOptions.networkError)?.code
        case .refreshTimedOut: .timedOut
        default: nil
        }
    }
}
