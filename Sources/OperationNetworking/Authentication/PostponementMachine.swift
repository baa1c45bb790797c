// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
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
    /// Those that were given up because they took too long: what one of them gives after all is better than nothing.
    private var late: Set<Int> = []
    /// When the next of the line may go, while it is being released.
    private var nextRelease: OperationInstant?
    /// Why an early renewal failed, and until when none is begun because of that.
    private var pause: (failure: Failure, until: OperationInstant)?
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
    /// Whether what that refresh gives would be taken.
    package func isOfUse(_ refresh: Int) -> Bool { isUnderWay(refresh) || late.contains(refresh) }
    /// The last one that there was, whether or not it may be used.
    package var lastCredential: Credential? {
        switch state {
        case .valid(let credential, _, _): credential
        case .refreshing(_, let old, _), .failed(_, _, let old): old
        case .absent: nil
        }
    }
    /// What made the last refresh fail, as long as that is remembered.
    package var lastError: (any Error)? {
        if case .failed(let failure, _, _) = state { failure.error } else { pause?.failure.error }
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

    /// Whether a request may be sent that waited with that one for its turn.
    package func mayLeave(_ version: Int) -> Bool { if case .valid = state { version == self.version } else { false } }

    /// A request is ready and wants a credential.
    package mutating func want(now: OperationInstant) -> (Answer, [Action]) {
        switch state {
        case .valid(let credential, let staleAt, let end):
            guard let staleAt, staleAt <= now, canRefresh else { return (.give(credential, version: version), []) }
            if let failure = pauseFailure(now) {
                return end.map { now < $0 } ?? true
                    ? (.give(credential, version: version), []) : (.fail(failure), [])
            }
            guard mayBegin(now) else { return (.give(credential, version: version), []) }
            return wait(begin(old: credential, usableUntil: end, now))
        case .absent: return wait(begin(old: nil, now))
        case .refreshing: return (.wait(line.append()), [])
        case .failed(let failure, let end, let old):
            return beginAfter(failure, until: end, old: old, now)
        }
    }

    /// The credential of that version was rejected.
    ///
    /// - Parameter isSecond: Whether it came after an older one had been rejected in the same operation.
    package mutating func reject(_ version: Int, isSecond: Bool, now: OperationInstant) -> (Answer, [Action]) {
        switch state {
        case .valid(let credential, _, _):
            if isSecond { return (.refuse, []) }
            if version < self.version { return (.replay, []) }
            if let failure = fallBack(now) { return (.fail(failure), failAll(failure)) }
            guard !canRefresh || mayBegin(now) else { return (.fail(Failure(.tooMany, mayPass: true)), []) }
            return wait(begin(old: credential, now))
        case .absent: return isSecond ? (.refuse, []) : (.wait(line.append()), [])
        case .refreshing:
            noteOldRejected(version)
            return isSecond ? (.refuse, []) : (.wait(line.append()), [])
        case .failed(let failure, let end, let old):
            return isSecond ? (.refuse, []) : beginAfter(failure, until: end, old: old, now)
        }
    }

    /// The same, said as early as possible: nobody waits yet, and whoever comes gets none that was rejected.
    package mutating func noteRejected(_ version: Int, now: OperationInstant) -> [Action] {
        switch state {
        case .valid(let credential, _, _):
            guard version == self.version else { return [] }
            if let failure = fallBack(now) { return failAll(failure) }
            guard !canRefresh || mayBegin(now) else { return [] }
            return begin(old: credential, now)
        case .refreshing:
            noteOldRejected(version)
            return []
        case .absent, .failed: return []
        }
    }

    /// One that is being renewed before its end is not used until then if it is rejected meanwhile.
    private mutating func noteOldRejected(_ version: Int) {
        guard case .refreshing(let refresh, let old, _) = state, version == self.version else { return }
        state = .refreshing(refresh, old: old, usableUntil: nil)
    }

    /// Why no refresh is to begin for now although there is a credential.
    private func pauseFailure(_ now: OperationInstant) -> Failure? {
        pause.flatMap { now < $0.until ? $0.failure : nil }
    }

    /// What was still used although its renewal had failed was rejected: until the pause is over there is none, and
    /// who is still in the line fails.
    private mutating func fallBack(_ now: OperationInstant) -> Failure? {
        guard case .valid(let credential, _, _) = state, let pause, let failure = pauseFailure(now) else { return nil }
        state = .failed(failure, until: pause.until, old: credential)
        nextRelease = nil
        return failure
    }

    /// The operation does not wait any more.
    package mutating func leave(_ ticket: Ticket) { line.remove(ticket) }

    private mutating func wait(_ actions: [Action]) -> (Answer, [Action]) { (.wait(line.append()), actions) }

    private mutating func beginAfter(
        _ failure: Failure, until end: OperationInstant?, old: Credential?, _ now: OperationInstant
    ) -> (Answer, [Action]) {
        guard let end, end <= now, !canRefresh || mayBegin(now) else { return (.fail(failure), []) }
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
        pause = nil
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
        guard isOfUse(refresh) else { return (false, []) }
        // Of two that run because one of them did not stop when it was told to, the first that gives something counts.
        let dropped = isUnderWay(refresh) ? [] : droppedRefresh
        return (true, dropped + take(credential, lifetime, isFresh: true, now))
    }

    /// It gave none.
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
            nextRelease = now
            return passTime(now)
        }
        state = .failed(failure, until: failure.mayPass ? next : nil, old: old)
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
        late = []
        (nextRelease, pause) = (nil, nil)
        state = .failed(Failure(.signedOut), until: nil, old: nil)
        return dropped + failAll(Failure(.signedOut))
    }

    /// Those that wait fail; those that come later do not.
    package mutating func failWaiting(_ failure: Failure, now: OperationInstant) -> [Action] {
        // The next that comes asks for a credential again, which nobody fetches by now.
        if !canRefresh, case .refreshing(_, let old, _) = state { state = .failed(failure, until: now, old: old) }
        return failAll(failure)
    }

    /// What made refreshes fail until then is over: the next that comes need not wait for the end of the pause.
    package mutating func forgetFailure(before moment: OperationInstant, now: OperationInstant) {
        if let (failure, until) = pause, until <= moment.advanced(by: length(of: failure)) {
            pause = (failure, min(until, now))
        }
        guard case .failed(let failure, let end?, let old) = state else { return }
        if end <= moment.advanced(by: length(of: failure)) { state = .failed(failure, until: min(end, now), old: old) }
    }

    private func length(of failure: Failure) -> Duration { max(limits.pauseAfterFailure, failure.pause ?? .zero) }

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
        late = []
        pause = nil
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

extension PostponementMachine {
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
        /// After which time, at least.
        package let pause: Duration?

        package init(_ kind: Kind, error: (any Error)? = nil, mayPass: Bool = false, pause: Duration? = nil) {
            self.kind = kind
            self.error = error
            self.mayPass = mayPass
            self.pause = pause
        }
    }
}

/// Stands in a queue of choice for an operation that was put aside, and goes on when its turn comes there.
///
/// It takes a place for as long as the operation works, and none while that waits.
final class PostponedRun: AsyncOperation<Void, Never>, @unchecked Sendable {
    // Sendable: what it keeps does not change.
    private let operation: any AttemptHost
    private let begin: @Sendable () -> Void

    init(of operation: any AttemptHost, _ begin: @escaping @Sendable () -> Void) {
        self.operation = operation
        self.begin = begin
        super.init()
        name = operation.name.map { "\($0), again" }
        // Whether or not its turn had come.
        whenEnded { [weak self, operation] in
            if let cause = self?.outcome?.cancellationCause { operation.cancelIfUndecided(because: cause) }
        }
    }

    override func main() {
        // Whoever stood for it before has done so.
        (operation.networkAttempts.takeStandIn() as? PostponedRun)?.finish(withResult: ())
        operation.whenEnded { [weak self] in self?.finish(withResult: ()) }
        operation.networkAttempts.stand(self)
        begin()
    }
}

/// Those that wait, in the order in which they came; one leaves at constant cost.
struct TicketLine: Sendable {
    private var present: Set<UInt64> = []
    private var order = Fifo<UInt64>()
    private var last: UInt64 = 0

    var isEmpty: Bool { present.isEmpty }
    var count: Int { present.count }

    mutating func append() -> UInt64 {
        last += 1
        present.insert(last)
        order.append(last)
        return last
    }

    mutating func remove(_ ticket: UInt64) {
        present.remove(ticket)
        // What has left stays in the order until it would be the most of it.
        guard order.count > 64, order.count > present.count * 2 else { return }
        var kept = Fifo<UInt64>()
        while let ticket = order.popFirst() { if present.contains(ticket) { kept.append(ticket) } }
        order = kept
    }

    mutating func take(_ count: Int) -> [UInt64] {
        var taken: [UInt64] = []
        while taken.count < count, let ticket = order.popFirst() {
            if present.remove(ticket) != nil { taken.append(ticket) }
        }
        return taken
    }

    mutating func takeAll() -> [UInt64] { take(.max) }
}
