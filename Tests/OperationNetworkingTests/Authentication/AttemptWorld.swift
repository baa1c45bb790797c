// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit

/// Operations with their attempts, a realm, and a server that knows the valid token.
///
/// All of them are plain values, and their events occur in an order that is drawn from a seed. To add another
/// participant, for example a network that comes and goes, add its state to the world and its events to
/// `possibilities`.
struct AttemptWorld {
    typealias Realm = CredentialMachine<Int, Int>

    struct Actor {
        var machine = AttemptMachine()
        /// The action that the operation performs next, on any thread.
        var action = AttemptMachine.Action.none
        /// The version of the credential that the current attempt was sent with.
        var used: Int?
        var token = 0
        /// The version of the credential when the first rejection arrived.
        var rejectedAt: Int?
        /// The number of times the request was sent again after a rejection.
        var replays = 0
        /// Whether the operation was suspended since it got its credential, so that the credential may be old.
        var wasSuspended = false
        var ticket: UInt64?
        /// The question that the operation waits to have answered.
        var question: Question?
        var isInFlight = false
        var pauseEnds: OperationInstant?
        var outcome: Outcome?
        var sends = 0
        /// The number of failed attempts that count.
        var failures = 0
        /// Whether the operation has a slot in its queue, which it holds from its start to its first wait.
        var hasPlace = true
        var isSuspended: Bool { machine.isSuspended }
    }

    enum Question { case clear(round: Int), decide(number: Int) }
    enum Outcome: Equatable { case success, failure(String), cancelled }

    var generator: SeededGenerator
    var actors: [Actor]
    var realm: Realm
    var now = OperationInstant(offset: .zero)
    /// The token that the server accepts.
    var goodToken = 1
    /// The token that was fetched or set last.
    var lastToken = 0
    /// The numbers of the running refreshes.
    var refreshes: Set<Int> = []
    /// Refreshes that timed out or are no longer needed, but may still return a token.
    var lateRefreshes: Set<Int> = []
    let canRefresh: Bool
    var isSignedOut = false
    /// The rejected versions whose replacement an operation waits for.
    var rejected: Set<Int> = []
    var expiries: Int
    var story: [String] = []
    var faults: [String] = []
    var refreshCount = 0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        actors = Array(repeating: Actor(), count: Int.random(in: 1...6, using: &generator))
        expiries = Int.random(in: 0...3, using: &generator)
        var limits = Realm.Limits()
        limits.pace = PostponementPace(Int.random(in: 1...3, using: &generator), every: .milliseconds(50))
        canRefresh = generator.chance(4, in: 5)
        realm = Realm(limits: limits, canRefresh: canRefresh)
        if generator.chance(3, in: 4) { setToken() }
    }

    /// Performs one random possible event.
    ///
    /// Returns `false` if no event is left.
    mutating func step(isEnding: Bool = false) -> Bool {
        let possibilities = isEnding ? self.possibilities.filter(\.isProgress) : self.possibilities
        guard let chosen = possibilities.randomElement(using: &generator) else { return false }
        story.append("\(chosen)")
        happen(chosen)
        check()
        return true
    }

    // The possible events.

    enum Event {
        case start(Int), act(Int), answer(Int), cancel(Int), suspend(Int), resume(Int)
        case refreshEnds(Int), timeout(Int), time, expire, set, signOut, giveUp

        /// Whether the event brings the operations closer to their end.
        var isProgress: Bool {
            switch self {
            case .start, .act, .answer, .resume, .refreshEnds, .time: true
            case .cancel, .suspend, .timeout, .expire, .set, .signOut, .giveUp: false
            }
        }
    }

    var possibilities: [Event] {
        var events: [Event] = []
        for (index, actor) in actors.enumerated() where actor.outcome == nil {
            if actor.machine.phase == .idle { events.append(.start(index)) } else { events.append(.cancel(index)) }
            if actor.action != .none { events += [.act(index), .act(index), .act(index)] }
            if actor.isInFlight { events += [.answer(index), .answer(index)] }
            events.append(actor.isSuspended ? .resume(index) : .suspend(index))
        }
        for number in refreshes { events += [.refreshEnds(number), .timeout(number)] }
        for number in lateRefreshes { events.append(.refreshEnds(number)) }
        if nextMoment != nil { events.append(.time) }
        if expiries > 0 { events.append(.expire) }
        events += [.set, .giveUp]
        if !isSignedOut { events.append(.signOut) }
        return events
    }

    private var nextMoment: OperationInstant? { (actors.map(\.pauseEnds) + [realm.nextDue]).compactMap(\.self).min() }

    private mutating func happen(_ event: Event) {
        switch event {
        case .start(let index): actors[index].action = actors[index].machine.start()
        case .act(let index): act(index)
        case .answer(let index): answer(index)
        case .cancel(let index) where generator.chance(1, in: 8): end(index, .cancelled)
        case .suspend(let index):
            _ = actors[index].machine.suspend()
            actors[index].wasSuspended = true
        case .resume(let index):
            let action = actors[index].machine.resume()
            if action != .none, action != .resumeOrSuspendTask { actors[index].action = action }
        case .refreshEnds(let number): refreshEnds(number)
        case .timeout(let number):
            // The refresh is asked to stop.
            refreshes.remove(number)
            lateRefreshes.insert(number)
            perform(realm.refreshFailed(number, Realm.Failure(.timedOut, mayPass: true), now: now))
        case .time: passTime()
        case .expire:
            expiries -= 1
            goodToken = lastToken + 1_000
        case .set where generator.chance(1, in: 6): setToken()
        case .signOut where generator.chance(1, in: 20):
            isSignedOut = true
            perform(realm.signOut(now: now))
        case .giveUp where generator.chance(1, in: 10): perform(realm.failWaiting(Realm.Failure(.failed), now: now))
        case .cancel, .set, .signOut, .giveUp: break
        }
    }

    private mutating func setToken() {
        lastToken += 1
        goodToken = lastToken
        isSignedOut = false
        perform(realm.set(lastToken, lifetime: lifetime(), now: now))
    }

    private mutating func lifetime() -> Duration? { generator.chance(1, in: 2) ? .seconds(90) : nil }

    private mutating func refreshEnds(_ number: Int) {
        refreshes.remove(number)
        lateRefreshes.remove(number)
        guard !generator.chance(1, in: 4) else {
            let failure = Realm.Failure(.failed, mayPass: generator.chance(1, in: 2))
            return perform(realm.refreshFailed(number, failure, now: now))
        }
        let token = lastToken + 1
        let (isTaken, actions) = realm.refreshed(number, token, lifetime: lifetime(), now: now)
        if isTaken {
            lastToken = token
            goodToken = generator.chance(1, in: 10) ? token + 1_000 : token
        }
        perform(actions)
    }

    private mutating func passTime() {
        guard let moment = nextMoment else { return }
        now = max(now, moment)
        if realm.nextDue.map({ $0 <= now }) == true { perform(realm.timePassed(now)) }
        for index in actors.indices where actors[index].pauseEnds.map({ $0 <= now }) ?? false {
            actors[index].pauseEnds = nil
            move(index) { $0.waited($0.attempt) }
        }
    }

    // The invariants.

    private mutating func check() {
        if refreshes.count > 1 { faults.append("\(refreshes.count) refreshes at once") }
        for (index, actor) in actors.enumerated() {
            if actor.failures > 3 { faults.append("\(index) failed \(actor.failures) times") }
            if actor.outcome != nil, actor.ticket != nil { faults.append("\(index) ended and waits") }
        }
        let waiting = actors.count { $0.ticket != nil }
        if realm.waitingCount != waiting { faults.append("\(waiting) wait, and \(realm.waitingCount) are known") }
    }

    /// Runs all operations to their end.
    ///
    /// Returns `false` if an operation does not end.
    mutating func finish() -> Bool {
        for index in actors.indices where actors[index].isSuspended && actors[index].outcome == nil {
            happen(.resume(index))
        }
        for _ in 0..<10_000 {
            if actors.allSatisfy({ $0.outcome != nil }) { return true }
            if step(isEnding: true) { continue }
            // Without a refresh function, only a token that is set from outside can help.
            if canRefresh { faults.append("an operation waits, and nothing is in progress") }
            setToken()
        }
        return false
    }
}
