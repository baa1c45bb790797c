// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking
import OperationTestKit

/// Operations with their attempts, a realm, and a server that knows which token is good: all of them pure values, whose
/// events come in an order that is drawn from a seed.
///
/// To let others join (a network that comes and goes), add what they know to the world, and what may happen to
/// `possibilities`.
struct AttemptWorld {
    typealias Realm = PostponementMachine<Int>

    struct Actor {
        var machine = AttemptMachine()
        /// What its shell is about to do, on whatever thread.
        var action = AttemptMachine.Action.none
        /// What the present attempt was sent with.
        var used: Int?
        var token = 0
        /// How many credentials there were when one was rejected first.
        var rejectedAt: Int?
        /// How often it was sent again after a rejection.
        var replays = 0
        /// Whether it was suspended since it got its credential, so that this may be of long ago.
        var wasSuspended = false
        var ticket: Realm.Ticket?
        /// For which question that is.
        var question: Question?
        var isInFlight = false
        var isAbandoned = false
        var pauseEnds: OperationInstant?
        var outcome: Outcome?
        var sends = 0
        /// How many attempts that count failed.
        var failures = 0
        /// Whether it has a place of its queue, which it has from the start to its first rest.
        var hasPlace = true
        var isSuspended: Bool { machine.isSuspended }
    }

    enum Question { case clear(round: Int), decide(number: Int) }
    enum Outcome: Equatable { case success, failure(String), cancelled }

    var generator: SeededGenerator
    var actors: [Actor]
    var realm: Realm
    var now = OperationInstant(offset: .zero)
    /// The one that the server accepts.
    var goodToken = 1
    /// The one that was fetched or set last.
    var lastToken = 0
    /// Refreshes under way, by their numbers.
    var refreshes: Set<Int> = []
    /// Those that took too long, or that nobody wants any more, and may give something after all.
    var lateRefreshes: Set<Int> = []
    let canRefresh: Bool
    var calls: [OperationInstant] = []
    var isSignedOut = false
    /// Versions that somebody waits to see replaced.
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

    /// Lets something happen that may; false if nothing is left that will.
    mutating func step(isEnding: Bool = false) -> Bool {
        let possibilities = isEnding ? self.possibilities.filter(\.isProgress) : self.possibilities
        guard let chosen = possibilities.randomElement(using: &generator) else { return false }
        story.append("\(chosen)")
        happen(chosen)
        check()
        return true
    }

    // What may happen.

    enum Event {
        case start(Int), act(Int), answer(Int), cancel(Int), suspend(Int), resume(Int)
        case refreshEnds(Int), timeout(Int), time, expire, set, signOut, giveUp

        /// Whether it brings everything nearer to its end.
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

    private var nextMoment: OperationInstant? { (calls + actors.compactMap(\.pauseEnds)).min() }

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
            if action != .none, action != .settleTask { actors[index].action = action }
        case .refreshEnds(let number): refreshEnds(number)
        case .timeout(let number):
            // It is told to stop.
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
            perform(realm.signOut())
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
        let isCalled = calls.contains { $0 <= now }
        calls.removeAll { $0 <= now }
        if isCalled { perform(realm.passTime(now)) }
        for index in actors.indices where actors[index].pauseEnds.map({ $0 <= now }) ?? false {
            actors[index].pauseEnds = nil
            move(index) { $0.waited($0.attempt) }
        }
    }

    // What must hold.

    private mutating func check() {
        if refreshes.count > 1 { faults.append("\(refreshes.count) refreshes at once") }
        for (index, actor) in actors.enumerated() {
            if actor.failures > 3 { faults.append("\(index) failed \(actor.failures) times") }
            if actor.outcome != nil, actor.ticket != nil { faults.append("\(index) ended and waits") }
        }
        let waiting = actors.count { $0.ticket != nil }
        if realm.waitingCount != waiting { faults.append("\(waiting) wait, and \(realm.waitingCount) are known") }
    }

    /// Lets everything come to its end; false if it does not.
    mutating func finish() -> Bool {
        for index in actors.indices where actors[index].isSuspended && actors[index].outcome == nil {
            happen(.resume(index))
        }
        for _ in 0..<10_000 {
            if actors.allSatisfy({ $0.outcome != nil }) { return true }
            if step(isEnding: true) { continue }
            // Only somebody from outside can help, where nobody can be asked for a credential.
            if canRefresh { faults.append("somebody waits, and nothing is under way") }
            setToken()
        }
        return false
    }
}
