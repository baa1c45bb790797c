// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// One realm as a pure value: its credential and its versions, who waits for the next one, and what became of a refresh.
///
/// It knows nothing of requests, threads or clocks; time is told. What it is asked by an operation it answers at once; what
/// concerns many follows as actions.
///
/// ```text
///            set                    rejected, or nearly out of date
/// absent ─────────▶ valid(version) ─────────────────────────────────▶ refreshing
///   │ wanted          ▲   ▲ refreshed: version + 1, the line is released ──┤
///   └─────────────────│───┴────────────────────────────────────────────────┤
///                     └──── set ──── failed(for that version) ◀── failed ──┘
/// ```
package struct PostponementMachine<Credential: Sendable>: Sendable {
    /// Names one that waits; those that came later have a larger one.
    package typealias Ticket = UInt64

    package struct Limits: Sendable {
        /// How long before its end a credential is no longer used.
        package var leeway = Duration.seconds(60)
        /// How many refreshes may begin within the window.
        package var mostRefreshes = 5
        package var window = Duration.seconds(30)
        /// How long a failure counts that may pass.
        package var pauseAfterFailure = Duration.seconds(10)
        package var pace = PostponementPace.standard

        package init() {}
    }

    /// What is remembered of a refresh that gave nothing.
    package struct Failure: Sendable {
        package enum Kind: Sendable, Equatable {
            case failed
            case timedOut
            case signedOut
            case tooMany
        }

        package let kind: Kind
        package let error: (any Error)?
        /// Whether another refresh may do better, later.
        package let mayPass: Bool

        package init(_ kind: Kind, error: (any Error)? = nil, mayPass: Bool = false) {
            self.kind = kind
            self.error = error
            self.mayPass = mayPass
        }
    }

    /// What becomes of a request that wants a credential, or of one whose credential was rejected.
    package enum Answer: Sendable {
        case give(Credential, version: Int)
        /// Wait under that ticket.
        case wait(Ticket)
        /// Send it again now: there is a newer credential than it had.
        case replay
        case fail(Failure)
        /// The credential that was rejected is newer than one that was rejected before.
        case refuse
    }

    package enum Action: Sendable {
        /// Fetch a new credential in the place of that one.
        case refresh(Int, old: Credential?)
        /// Nobody wants that refresh any more.
        case dropRefresh(Int)
        /// These may go on.
        case release([Ticket])
        /// Say when that time has come.
        case callAt(OperationInstant)
        case fail([Ticket], Failure)
    }

    private enum State {
        /// There was none yet, and nobody fetches one.
        case absent
        /// To be renewed from the first moment on, and of no use from the second.
        case valid(Credential, staleAt: OperationInstant?, endsAt: OperationInstant?)
        /// The old one may be used until that moment if nothing better comes: it was not rejected.
        case refreshing(Int, old: Credential?, usableUntil: OperationInstant?)
        case failed(Failure, until: OperationInstant?, old: Credential?)
    }

    private var state = State.absent
    /// Counts up with each credential; 0 before the first one.
    package private(set) var version = 0
    private var line = TicketLine()
    /// The moments at which the last refreshes began.
    private var begun: [OperationInstant] = []
    private var refreshes = 0
    /// The last refresh that was given up because it took too long: what it gives after all is better than nothing.
    private var late: Int?
    /// When the next of the line may go, while it is being released.
    private var nextRelease: OperationInstant?
    private let limits: Limits
    /// Whether somebody can be asked for a credential; else it comes from outside, whenever it comes.
    private let canRefresh: Bool

    package init(limits: Limits, canRefresh: Bool) {
        self.limits = limits
        self.canRefresh = canRefresh
    }

    package var isRefreshing: Bool { if case .refreshing = state { true } else { false } }
    package var waitingCount: Int { line.count }
    /// Whether it is that refresh for which is waited.
    package func isUnderWay(_ refresh: Int) -> Bool {
        if case .refreshing(refresh, _, _) = state { true } else { false }
    }
    /// The last one that there was, whether or not it may be used.
    package var lastCredential: Credential? {
        switch state {
        case .valid(let credential, _, _): credential
        case .refreshing(_, let old, _), .failed(_, _, let old): old
        case .absent: nil
        }
    }
    /// The one that may be used.
    package var credential: Credential? {
        switch state {
        case .valid(let credential, _, _): credential
        case .absent, .refreshing, .failed: nil
        }
    }
}

// What operations ask.
extension PostponementMachine {
    /// The credential that may be used now, as far as nothing else has to be done for it.
    package func current(now: OperationInstant) -> (credential: Credential, version: Int)? {
        guard case .valid(let credential, let staleAt, _) = state, staleAt.map({ now < $0 }) ?? true else { return nil }
        return (credential, version)
    }

    /// A request is ready and wants a credential.
    package mutating func want(now: OperationInstant) -> (Answer, [Action]) {
        switch state {
        case .valid(let credential, let staleAt, let end):
            guard let staleAt, staleAt <= now, canRefresh, mayBegin(now) else {
                return (.give(credential, version: version), [])
            }
            return wait(begin(old: credential, usableUntil: end, now))
        case .absent: return wait(begin(old: nil, now))
        case .refreshing: return (.wait(line.append()), [])
        case .failed(let failure, let end, let old):
            guard let end, end <= now else { return (.fail(failure), []) }
            return beginUnlessTooMany(old: old, now)
        }
    }

    /// The credential of that version was rejected.
    ///
    /// - Parameter isSecond: Whether an older one had been rejected before in the same operation.
    package mutating func reject(_ version: Int, isSecond: Bool, now: OperationInstant) -> (Answer, [Action]) {
        switch state {
        case .valid(let credential, _, _):
            if isSecond { return (.refuse, []) }
            if version < self.version { return (.replay, []) }
            return beginUnlessTooMany(old: credential, now)
        case .absent, .refreshing: return isSecond ? (.refuse, []) : (.wait(line.append()), [])
        case .failed(let failure, let end, let old):
            if isSecond { return (.refuse, []) }
            guard let end, end <= now else { return (.fail(failure), []) }
            return beginUnlessTooMany(old: old, now)
        }
    }

    /// The operation does not wait any more.
    package mutating func leave(_ ticket: Ticket) { line.remove(ticket) }

    private mutating func wait(_ actions: [Action]) -> (Answer, [Action]) { (.wait(line.append()), actions) }

    private mutating func beginUnlessTooMany(old: Credential?, _ now: OperationInstant) -> (Answer, [Action]) {
        guard !canRefresh || mayBegin(now) else { return (.fail(Failure(.tooMany, mayPass: true)), []) }
        return wait(begin(old: old, now))
    }

    private mutating func mayBegin(_ now: OperationInstant) -> Bool {
        let window = limits.window
        begun.removeAll { $0.advanced(by: window) <= now }
        return begun.count < limits.mostRefreshes
    }

    private mutating func begin(
        old: Credential?, usableUntil end: OperationInstant? = nil, _ now: OperationInstant
    ) -> [Action] {
        refreshes += 1
        // What was being released waits on, for it would get the credential that is not to be used.
        nextRelease = nil
        late = nil
        state = .refreshing(refreshes, old: old, usableUntil: end)
        if canRefresh { begun.append(now) }
        return [.refresh(refreshes, old: old)]
    }
}

// What becomes of a refresh.
extension PostponementMachine {
    /// It gave a credential, which is good for so long; false if nobody wants it any more.
    package mutating func refreshed(
        _ refresh: Int, _ credential: Credential, lifetime: Duration?, now: OperationInstant
    ) -> (isTaken: Bool, actions: [Action]) {
        switch state {
        case .refreshing(refresh, _, _): break
        case .failed where late == refresh: break
        case .absent, .valid, .refreshing, .failed: return (false, [])
        }
        return (true, take(credential, lifetime, isFresh: true, now))
    }

    /// It gave none.
    package mutating func refreshFailed(_ refresh: Int, _ failure: Failure, now: OperationInstant) -> [Action] {
        guard case .refreshing(refresh, let old, let usableUntil) = state else { return [] }
        if let old, let usableUntil, failure.mayPass, now < usableUntil {
            state = .valid(old, staleAt: now.advanced(by: limits.pauseAfterFailure), endsAt: usableUntil)
            nextRelease = now
            return passTime(now)
        }
        if failure.kind == .timedOut { late = refresh }
        let end = failure.mayPass ? now.advanced(by: limits.pauseAfterFailure) : nil
        state = .failed(failure, until: end, old: old)
        return failAll(failure)
    }

    /// The user has a new credential: what was remembered of the old one is forgotten.
    package mutating func set(_ credential: Credential, lifetime: Duration?, now: OperationInstant) -> [Action] {
        let dropped = droppedRefresh
        return dropped + take(credential, lifetime, isFresh: false, now)
    }

    /// No credential is to be used from now on, until there is another.
    package mutating func signOut() -> [Action] {
        let dropped = droppedRefresh
        version += 1
        late = nil
        nextRelease = nil
        state = .failed(Failure(.signedOut), until: nil, old: nil)
        return dropped + failAll(Failure(.signedOut))
    }

    /// Those that wait fail; those that come later do not.
    package mutating func failWaiting(_ failure: Failure) -> [Action] { failAll(failure) }

    private var isValid: Bool { if case .valid = state { true } else { false } }

    private var droppedRefresh: [Action] {
        if case .refreshing(let refresh, _, _) = state { [.dropRefresh(refresh)] } else { [] }
    }

    private mutating func failAll(_ failure: Failure) -> [Action] {
        let tickets = line.takeAll()
        return tickets.isEmpty ? [] : [.fail(tickets, failure)]
    }

    private mutating func take(
        _ credential: Credential, _ lifetime: Duration?, isFresh: Bool, _ now: OperationInstant
    ) -> [Action] {
        version += 1
        late = nil
        var staleAt = lifetime.map { now.advanced(by: $0 - limits.leeway) }
        // One that is fetched nearly out of date would be fetched for ever: it is used until it is rejected.
        if isFresh, let moment = staleAt, moment <= now { staleAt = nil }
        state = .valid(credential, staleAt: staleAt, endsAt: lifetime.map { now.advanced(by: $0) })
        nextRelease = now
        return passTime(now)
    }

    /// Time has passed: the next of the line may go.
    package mutating func passTime(_ now: OperationInstant) -> [Action] {
        guard isValid, let moment = nextRelease, moment <= now else { return [] }
        let tickets = line.take(limits.pace.count)
        guard !line.isEmpty else {
            nextRelease = nil
            return tickets.isEmpty ? [] : [.release(tickets)]
        }
        let next = now.advanced(by: limits.pace.interval)
        nextRelease = next
        return [.release(tickets), .callAt(next)]
    }
}
