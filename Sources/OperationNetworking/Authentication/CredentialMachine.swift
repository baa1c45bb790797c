// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The state of one realm as a value: its credential, the operations that wait for the next one, and the state of a
/// refresh.
///
/// The machine knows nothing of requests, threads and clocks, and receives the time as an argument. It answers the
/// question of an operation immediately. Actions for several operations follow separately.
///
/// ```text
///            set                    rejected, or nearly out of date
/// absent ─────────▶ valid(version) ─────────────────────────────────▶ refreshing
///   │ wanted          ▲   ▲ refreshed: version + 1, waits end ─────────────┤
///   └─────────────────│───┴────────────────────────────────────────────────┤
///                     └──── set ──── failed(for that version) ◀── failed ──┘
/// ```
package struct CredentialMachine<Credential: Sendable, Waiter: Sendable> {
    /// The decision about a request that needs a credential, or whose credential was rejected.
    package enum Answer: Sendable {
        case give(Credential, version: Int)
        /// Wait, with this ticket.
        case wait(UInt64)
        /// Send the request again now, because there is a newer credential.
        case replay
        case fail(Failure)
        /// Fail, because the same operation already had an older credential rejected.
        case refuse
    }

    package enum Action: Sendable {
        /// Fetch a new credential to replace the old one.
        case refresh(Int, old: Credential?)
        /// Cancel a refresh that is no longer needed.
        case dropRefresh(Int)
        /// Let these operations continue.
        case release([Waiter])
        case fail([Waiter], Failure)
    }

    private enum State {
        /// There was no credential yet, and no refresh is in progress.
        case absent
        /// The credential must be refreshed from the first time on, and cannot be used from the second time on.
        case valid(Credential, staleAt: OperationInstant?, endsAt: OperationInstant?)
        /// A refresh is in progress, or the user must set a credential.
        ///
        /// If the refresh fails, the old credential may be used until this time, unless it was rejected.
        case refreshing(Int, old: Credential?, usableUntil: OperationInstant?)
        case failed(Failure, until: OperationInstant?, old: Credential?)
    }

    private var state = State.absent
    /// A number that increases with each new credential and each sign-out, starting at 0.
    package private(set) var version = 0
    /// The gate, which is open while there is a valid credential.
    private var gate: GateMachine<Waiter>
    /// The times at which the last refreshes began.
    private var begun: [OperationInstant] = []
    private var refreshes = 0
    /// The refreshes that timed out, whose credentials are still accepted.
    private var late: Set<Int> = []
    /// The failure of an early refresh, and the time until which no other early refresh begins.
    private var pause: (failure: Failure, until: OperationInstant)?
    private let limits: Limits
    /// Whether the realm can fetch a credential itself.
    private let canRefresh: Bool

    package init(limits: Limits, canRefresh: Bool) {
        self.limits = limits
        self.canRefresh = canRefresh
        gate = GateMachine(pace: limits.pace, now: OperationInstant(offset: .zero))
    }

    package var isRefreshing: Bool { if case .refreshing = state { true } else { false } }
    package var waitingCount: Int { gate.count }
    /// The waiting operations, in the order of their arrival.
    package var waiters: [Waiter] { gate.waiters }
    /// The next time at which operations may continue, or `nil` if there is none.
    package var nextDue: OperationInstant? { gate.nextDue }
    /// Returns whether operations wait for this refresh.
    package func isUnderWay(_ refresh: Int) -> Bool {
        if case .refreshing(refresh, _, _) = state { true } else { false }
    }
    /// Returns whether the credential of this refresh would be accepted.
    package func isOfUse(_ refresh: Int) -> Bool { isUnderWay(refresh) || late.contains(refresh) }
    /// The last credential, whether or not it may be used.
    package var lastCredential: Credential? {
        switch state {
        case .valid(let credential, _, _): credential
        case .refreshing(_, let old, _), .failed(_, _, let old): old
        case .absent: nil
        }
    }
    /// The error of the last failed refresh, as long as it is in effect.
    package var lastError: (any Error)? {
        if case .failed(let failure, _, _) = state { failure.error } else { pause?.failure.error }
    }
    /// The credential, if it may be used.
    package var credential: Credential? {
        switch state {
        case .valid(let credential, _, _): credential
        case .absent, .refreshing, .failed: nil
        }
    }
}

// Calls of the operations.
extension CredentialMachine {
    /// Returns the credential if it can be used now without further actions.
    package func current(now: OperationInstant) -> (credential: Credential, version: Int)? {
        guard case .valid(let credential, let staleAt, _) = state, staleAt.map({ now < $0 }) ?? true else { return nil }
        return (credential, version)
    }

    /// Returns whether a request with the credential of a version may be sent.
    package func maySend(_ version: Int) -> Bool { if case .valid = state { version == self.version } else { false } }

    /// Requests a credential for a request that is ready.
    package mutating func want(_ waiter: Waiter, now: OperationInstant) -> (Answer, [Action]) {
        switch state {
        case .valid(let credential, let staleAt, let end):
            guard let staleAt, staleAt <= now, canRefresh else { return (.give(credential, version: version), []) }
            if let failure = pauseFailure(now) {
                return end.map { now < $0 } ?? true
                    ? (.give(credential, version: version), []) : (.fail(failure), [])
            }
            guard mayBegin(now) else { return (.give(credential, version: version), []) }
            return wait(waiter, now, begin(old: credential, usableUntil: end, now))
        case .absent: return wait(waiter, now, begin(old: nil, now))
        case .refreshing: return wait(waiter, now)
        case .failed(let failure, let end, let old):
            return beginAfter(failure, until: end, old: old, waiter, now)
        }
    }

    /// Reports that the credential of a version was rejected.
    ///
    /// - Parameter isSecond: Whether the same operation already had an older credential rejected.
    package mutating func reject(
        _ version: Int, isSecond: Bool, _ waiter: Waiter, now: OperationInstant
    ) -> (Answer, [Action]) {
        switch state {
        case .valid(let credential, _, _):
            if isSecond { return (.refuse, []) }
            if version < self.version { return (.replay, []) }
            if let failure = fallBack(now) { return (.fail(failure), failAll(failure)) }
            guard !canRefresh || mayBegin(now) else { return (.fail(Failure(.tooMany, mayPass: true)), []) }
            return wait(waiter, now, begin(old: credential, now))
        case .absent: return isSecond ? (.refuse, []) : wait(waiter, now)
        case .refreshing:
            recordOldRejection(version)
            return isSecond ? (.refuse, []) : wait(waiter, now)
        case .failed(let failure, let end, let old):
            return isSecond ? (.refuse, []) : beginAfter(failure, until: end, old: old, waiter, now)
        }
    }

    /// Reports a rejection as early as possible, so that no other request gets the credential.
    package mutating func recordRejection(_ version: Int, now: OperationInstant) -> [Action] {
        switch state {
        case .valid(let credential, _, _):
            guard version == self.version else { return [] }
            if let failure = fallBack(now) { return failAll(failure) }
            guard !canRefresh || mayBegin(now) else { return [] }
            return begin(old: credential, now)
        case .refreshing:
            recordOldRejection(version)
            return []
        case .absent, .failed: return []
        }
    }

    /// Prevents the use of a credential that is rejected during its early refresh.
    private mutating func recordOldRejection(_ version: Int) {
        guard case .refreshing(let refresh, let old, _) = state, version == self.version else { return }
        state = .refreshing(refresh, old: old, usableUntil: nil)
    }

    /// Returns the reason not to begin an early refresh now.
    private func pauseFailure(_ now: OperationInstant) -> Failure? {
        pause.flatMap { now < $0.until ? $0.failure : nil }
    }

    /// Fails the waiting operations if a credential is rejected whose early refresh has failed.
    ///
    /// Until the end of the pause, there is no credential.
    private mutating func fallBack(_ now: OperationInstant) -> Failure? {
        guard case .valid(let credential, _, _) = state, let pause, let failure = pauseFailure(now) else { return nil }
        state = .failed(failure, until: pause.until, old: credential)
        gate.close(now: now)
        return failure
    }

    /// Removes and returns an operation that no longer waits.
    package mutating func leave(_ ticket: UInt64) -> Waiter? { gate.leave(ticket) }

    /// Removes and returns the waiting operation for which the closure returns `true`.
    package mutating func leave(where isWanted: (Waiter) -> Bool) -> Waiter? {
        gate.leave(where: isWanted)
    }

    private mutating func wait(
        _ waiter: Waiter, _ now: OperationInstant, _ actions: [Action] = []
    ) -> (Answer, [Action]) {
        // The gate has no capacity, so it always returns a ticket.
        (gate.enter(waiter, now: now).map { .wait($0) } ?? .refuse, actions)
    }

    private mutating func beginAfter(
        _ failure: Failure, until end: OperationInstant?, old: Credential?, _ waiter: Waiter, _ now: OperationInstant
    ) -> (Answer, [Action]) {
        guard let end, end <= now, !canRefresh || mayBegin(now) else { return (.fail(failure), []) }
        return wait(waiter, now, begin(old: old, now))
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
        // The gate may be releasing operations, which would get the invalid credential.
        gate.close(now: now)
        pause = nil
        state = .refreshing(refreshes, old: old, usableUntil: end)
        if canRefresh { begun.append(now) }
        return [.refresh(refreshes, old: old)]
    }
}

// Events of a refresh.
extension CredentialMachine {
    /// Records the credential of a refresh, and returns false if the credential is no longer needed.
    package mutating func refreshed(
        _ refresh: Int, _ credential: Credential, lifetime: Duration?, now: OperationInstant
    ) -> (isTaken: Bool, actions: [Action]) {
        guard isOfUse(refresh) else { return (false, []) }
        // If a refresh that timed out did not stop, two refreshes run, and the first credential is accepted.
        let dropped = isUnderWay(refresh) ? [] : droppedRefresh
        return (true, dropped + take(credential, lifetime, isFresh: true, now))
    }

    /// Records the failure of a refresh.
    package mutating func refreshFailed(_ refresh: Int, _ failure: Failure, now: OperationInstant) -> [Action] {
        guard case .refreshing(refresh, let old, let usableUntil) = state else {
            late.remove(refresh)
            return []
        }
        if failure.kind == .timedOut { late.insert(refresh) }
        let next = now.advanced(by: length(of: failure))
        if let old, let usableUntil, failure.mayPass, now < usableUntil {
            state = .valid(old, staleAt: min(next, usableUntil), endsAt: usableUntil)
            pause = (failure, next)
            gate.open(now: now)
            return timePassed(now)
        }
        state = .failed(failure, until: failure.mayPass ? next : nil, old: old)
        return failAll(failure)
    }

    /// Sets a credential of the user, and discards the state of the old one.
    package mutating func set(_ credential: Credential, lifetime: Duration?, now: OperationInstant) -> [Action] {
        let dropped = droppedRefresh
        return dropped + take(credential, lifetime, isFresh: false, now)
    }

    /// Removes the credential, so that no credential is used until there is another.
    package mutating func signOut(now: OperationInstant) -> [Action] {
        let dropped = droppedRefresh
        version += 1
        late = []
        pause = nil
        gate.close(now: now)
        state = .failed(Failure(.signedOut), until: nil, old: nil)
        return dropped + failAll(Failure(.signedOut))
    }

    /// Fails the operations that wait now, but not later ones.
    package mutating func failWaiting(_ failure: Failure, now: OperationInstant) -> [Action] {
        // The next operation asks for a credential again, which no refresh is fetching.
        if !canRefresh, case .refreshing(_, let old, _) = state { state = .failed(failure, until: now, old: old) }
        return failAll(failure)
    }

    /// Ends the pause after earlier failures, because their cause is gone.
    package mutating func forgetFailure(before moment: OperationInstant, now: OperationInstant) {
        if let (failure, until) = pause, until <= moment.advanced(by: length(of: failure)) {
            pause = (failure, min(until, now))
        }
        guard case .failed(let failure, let end?, let old) = state else { return }
        if end <= moment.advanced(by: length(of: failure)) { state = .failed(failure, until: min(end, now), old: old) }
    }

    private func length(of failure: Failure) -> Duration { max(limits.pauseAfterFailure, failure.pause ?? .zero) }

    private var droppedRefresh: [Action] {
        if case .refreshing(let refresh, _, _) = state { [.dropRefresh(refresh)] } else { [] }
    }

    private mutating func failAll(_ failure: Failure) -> [Action] {
        let waiters = gate.takeAll()
        return waiters.isEmpty ? [] : [.fail(waiters, failure)]
    }

    private mutating func take(
        _ credential: Credential, _ lifetime: Duration?, isFresh: Bool, _ now: OperationInstant
    ) -> [Action] {
        version += 1
        late = []
        pause = nil
        var staleAt = lifetime.map { now.advanced(by: $0.clamped - limits.leeway.clamped) }
        // A new credential with too short a lifetime would be refreshed forever, so it is used until it is rejected.
        if isFresh, let moment = staleAt, moment <= now { staleAt = nil }
        state = .valid(credential, staleAt: staleAt, endsAt: lifetime.map { now.advanced(by: $0) })
        // A gate that is already releasing operations releases the next batch now.
        gate.close(now: now)
        gate.open(now: now)
        return timePassed(now)
    }

    /// Records that time has passed, so that the next operations may continue.
    package mutating func timePassed(_ now: OperationInstant) -> [Action] {
        let waiters = gate.timePassed(now: now).map(\.waiter)
        return waiters.isEmpty ? [] : [.release(waiters)]
    }
}

extension CredentialMachine {
    package struct Limits: Sendable {
        /// The time before the expiration of a credential at which it is no longer used.
        package var leeway = Duration.seconds(60)
        /// The maximum number of refreshes that may begin within the window.
        package var mostRefreshes = 5
        package var window = Duration.seconds(30)
        /// The time for which a temporary failure remains in effect.
        package var pauseAfterFailure = Duration.seconds(10)
        package var pace = PostponementPace.standard

        package init() {}
    }

    /// The failure of a refresh.
    package struct Failure: Sendable {
        package enum Kind: Sendable, Equatable {
            case failed
            case timedOut
            case signedOut
            case tooMany
        }

        package let kind: Kind
        package let error: (any Error)?
        /// Whether another refresh may succeed later.
        package let mayPass: Bool
        /// The minimum time before another refresh.
        package let pause: Duration?

        package init(_ kind: Kind, error: (any Error)? = nil, mayPass: Bool = false, pause: Duration? = nil) {
            self.kind = kind
            self.error = error
            self.mayPass = mayPass
            self.pause = pause
        }
    }
}
