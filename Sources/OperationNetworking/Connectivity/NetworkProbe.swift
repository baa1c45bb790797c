// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What a ``ProbeMonitor`` asks, how it reads the answer, and how often it asks.
///
/// ```swift
/// func probe(_ url: URL) -> NetworkProbe {
///     var probe = NetworkProbe(url)
///     probe.interval = .seconds(300)
///     probe.judge = { head in head.headers["X-Service"] == "mine" ? .reached : .intercepted }
///     return probe
/// }
/// ```
public struct NetworkProbe: Sendable {
    /// What an answer says.
    ///
    /// No case will be added.
    public enum Verdict: Sendable, Hashable {
        /// It is from whom it was asked of.
        case reached
        /// It is somebody else's: the page on which one signs in to a network.
        case intercepted
        /// It says nothing about the network, such as an error of the server.
        case unclear
    }

    /// What is asked for.
    public var url: URL
    /// By which method: HEAD.
    public var method = "HEAD"
    /// How often it is asked while the network is there: every minute.
    ///
    /// Chance makes it up to a tenth longer.
    public var interval: Duration = .seconds(60)
    /// How soon it is asked again while it is not: after one second, two, four … 30, or down to half of that by chance.
    ///
    /// One probe without an answer may have been lost: only after a second one the network counts as gone.
    public var backoff = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(30), jitter: .equal)
    /// How long an answer may take: 10 seconds.
    public var timeout: Duration = .seconds(10)
    /// Reads an answer: 204 is the right one.
    ///
    /// Another that is a success or a redirect, and 511, are somebody else's; anything else says nothing. Nobody else can
    /// answer in the place of a host that is asked by https, so there each success or redirect is right, and 511 says
    /// nothing. It is that of the URL with which the probe was made.
    public var judge: @Sendable (ResponseHead) -> Verdict
    /// Gives a number from 0 up to 1 for each pause.
    public var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Makes a probe that expects the status 204, or by https any success or redirect.
    ///
    /// A page on which one signs in is only found by a URL with `http`: by `https` there is no answer, or a certificate
    /// that is not trusted, which says nothing.
    public init(_ url: URL) {
        self.url = url
        let isSecure = url.scheme?.lowercased() == "https"
        judge = { head in
            switch head.status {
            case 204: .reached
            case 200..<400: isSecure ? .reached : .intercepted
            case 511: isSecure ? .unclear : .intercepted
            default: .unclear
            }
        }
    }
}

/// Watches whether a server can be reached, by asking it again and again.
///
/// It is for those who must know more than that there is a way out of this machine: whether there is a network behind
/// it, or only the page on which one signs in (``Connectivity/isCaptive``). It costs a request each time, so ask a
/// server of yours, and not too often; together with the system's monitor (``CombinedConnectivity``) it can do with
/// seldom.
///
/// ```swift
/// func watch(_ url: URL) -> some ConnectivityMonitor {
///     CombinedConnectivity(path: .system, probe: ProbeMonitor(NetworkProbe(url)))
/// }
/// ```
///
/// The session should not follow redirects (as an ``ExchangeSession`` does), for then a sign-in page is hardly known
/// from what was asked for. It asks from the beginning until it is let go of. It takes two probes without an answer, one
/// soon after the other, for the network to count as gone; failures that have other causes, such as a certificate that
/// is not trusted, say nothing about it, and what is known stays.
public final class ProbeMonitor: ConnectivityMonitor {
    private let board = ConnectivityBoard(.unknown)
    private let run: ProbeRun

    /// Makes a monitor, which begins to ask at once.
    ///
    /// - Parameters:
    ///   - probe: What is asked.
    ///   - session: By what it is asked.
    ///   - clock: On which the pauses are counted.
    public init(
        _ probe: NetworkProbe, session: any NetworkSession = DefaultNetworkSession.platformTransport,
        clock: any OperationClock = .system
    ) {
        run = ProbeRun(probe, session, clock, board)
        run.askNow()
    }

    deinit { run.end() }

    /// What came of the last probe that says something; unknown before.
    public var connectivity: Connectivity { board.connectivity }

    /// Calls `body` with what is known now, and whenever that has changed: on the session's thread, or the clock's.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }

    /// Asks now, and not only when it is time to.
    ///
    /// A probe that has been under way for a second or more is given up, since it may be about what was before.
    public func askNow() { run.askNow() }

    /// Forgets what it knew, since there is another way out, and asks as soon as it may: a path that comes and goes
    /// has it ask once in a second or two.
    package func beginAnew() {
        run.rest()
        run.askSoon()
    }

    /// Asks as soon as it may, unless it is asking: something about the way out has changed, and it may be the same.
    package func lookAgain() { run.lookAgain() }

    /// What is known in this moment, which those who observe are told.
    var known: Connectivity { run.known }

    /// Asks no more until `askNow()`, and knows nothing meanwhile.
    package func rest() { run.rest() }
}

/// Sends the probes of one monitor, and writes on its board what comes of them: the shell of ``ProbeMachine``.
final class ProbeRun: Sendable {
    private struct State {
        var machine = ProbeMachine()
        /// What is under way.
        var work = Work()
    }

    /// A probe and its limit, or the pause before the next one.
    private struct Work {
        var task: (any NetworkTask)?
        var timer: (any OperationTimer)?

        func cancel() {
            task?.cancel()
            timer?.cancel()
        }
    }

    private let probe: NetworkProbe
    private let session: any NetworkSession
    private let clock: any OperationClock
    private let board: ConnectivityBoard
    private let state = Locked(State())

    init(_ probe: NetworkProbe, _ session: any NetworkSession, _ clock: any OperationClock, _ board: ConnectivityBoard)
    {
        (self.probe, self.session, self.clock, self.board) = (probe, session, clock, board)
    }

    func askNow() {
        let now = clock.now
        apply { $0.askNow(now) }
    }

    func askSoon() {
        let (now, chance) = (clock.now, probe.chance())
        apply { $0.askSoon(now, chance: chance) }
    }

    func lookAgain() {
        let (now, chance) = (clock.now, probe.chance())
        apply { $0.lookAgain(now, chance: chance) }
    }

    /// What is known in this moment.
    var known: Connectivity { state.withLock { $0.machine.known } }

    func rest() {
        take { $0.rest() }.cancel()
        write()
    }

    func end() { take { $0.end() }.cancel() }

    /// Applies an event after which nothing is under way any more.
    private func take(_ event: (inout ProbeMachine) -> Void) -> Work {
        state.withLock { state in
            event(&state.machine)
            return exchange(&state.work, with: Work())
        }
    }

    /// Applies an event, and does what follows; what was under way goes if something follows, and stays if not.
    private func apply(_ event: (inout ProbeMachine) -> ProbeMachine.Action) {
        let (action, old) = state.withLock { state in
            let action = event(&state.machine)
            return (action, action == .none ? Work() : exchange(&state.work, with: Work()))
        }
        old.cancel()
        write()
        switch action {
        case .none: break
        case .ask(let number): ask(number)
        case .wait(let pause, let number):
            keep(clock.schedule(after: pause) { [weak self] in self?.waited(number) }, number)
        }
    }

    private func waited(_ number: Int) {
        let now = clock.now
        apply { $0.waited(number, now) }
    }

    private func ask(_ number: Int) {
        let request: NetworkRequest
        do throws(NetworkError) {
            request = try NetworkRequest(probe.method, url: probe.url)
        } catch {
            // Nothing can be asked so, and nobody knows.
            return ended(number, .answer(.unclear))
        }
        let receiver = ProbeReceiver(probe.judge) { [weak self] result in self?.ended(number, result) }
        let task = session.makeTask(with: request, receiver: receiver)
        let isPresent = state.withLock { state in
            guard state.machine.isPresent(number) else { return false }
            state.work.task = task
            return true
        }
        guard isPresent else { return task.cancel() }
        // What ends the probe cancels its task.
        keep(clock.schedule(after: probe.timeout) { [weak self] in self?.ended(number, .silence) }, number)
        task.resume()
    }

    private func keep(_ timer: any OperationTimer, _ number: Int) {
        let isPresent = state.withLock { state in
            guard state.machine.isPresent(number) else { return false }
            state.work.timer = timer
            return true
        }
        if !isPresent { timer.cancel() }
    }

    /// Each probe ends once.
    private func ended(_ number: Int, _ result: ProbeMachine.Result) {
        // The chance is the user's, and so asked for outside the lock.
        let chance = probe.chance()
        apply { $0.ended(number, result, of: probe, chance: chance) ?? .none }
    }

    /// Writes the known state to the board.
    ///
    /// Several threads may do so at the same time.
    private func write() { applyLatest({ known }) { board.write($0) } }
}

/// Hears of one probe: its head is all that counts.
private final class ProbeReceiver: NetworkReceiver {
    private let judge: @Sendable (ResponseHead) -> NetworkProbe.Verdict
    private let end: Locked<(@Sendable (ProbeMachine.Result) -> Void)?>

    init(
        _ judge: @escaping @Sendable (ResponseHead) -> NetworkProbe.Verdict,
        _ end: @escaping @Sendable (ProbeMachine.Result) -> Void
    ) {
        self.judge = judge
        self.end = Locked(end)
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        let verdict = judge(head)
        end.withLock { $0.take() }?(.answer(verdict))
        task.cancel()
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}

    /// Only what may come of a network that is gone says something about it: no certificate does, nor a proxy, nor a
    /// process that has no more files to open.
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let isSilence = OfflineRule.standard.contains { $0.code == error?.code }
        end.withLock { $0.take() }?(isSilence ? .silence : .nothing)
    }
}

/// When a probe is sent, and what follows from its answer: a pure value, told the time and chance.
///
/// Each probe and each pause has a number. What comes with another than the present one is not heard. One probe that is
/// not answered may have been lost on the way: what is known stays until the next one, which comes soon.
package struct ProbeMachine: Sendable, Equatable {
    package enum Action: Sendable, Equatable {
        case none
        /// Give up what is under way, ask, and say what came of it with this number.
        case ask(Int)
        /// Say with this number that so much time has passed.
        case wait(Duration, Int)
    }

    package enum Result: Sendable, Equatable {
        case answer(NetworkProbe.Verdict)
        /// No answer came, which may be because the network is gone.
        case silence
        /// No answer came, for a reason that says nothing about the network: what is known stays.
        case nothing
    }

    private enum State: Sendable, Equatable {
        /// Not begun, or nobody wants to know.
        case resting
        case asking
        case waiting
        case ended
    }

    /// What is known.
    package private(set) var known = Connectivity.unknown
    private var state = State.resting
    private var number = 0
    /// How many probes in a row did not come through.
    private var failures = 0
    /// How many of the last probes that said something were not answered.
    private var silences = 0
    private var lastAsked: OperationInstant?

    /// After so many that were not answered there is no network.
    private static let silenceLimit = 2
    /// The least time from a probe to the one for another way out, up to twice of it by chance.
    ///
    /// A probe that is younger is as good as another. The pauses after probes that did not come through are those of the
    /// user's backoff, and may be shorter.
    private static let leastDistance = Duration.seconds(1)

    package init() {}

    /// Asks now: at the beginning, or when the user wants to know.
    ///
    /// A probe that is under way for long may be about what was before, and is given up; one that was sent just now is
    /// as good as another.
    package mutating func askNow(_ now: OperationInstant) -> Action {
        switch state {
        case .resting, .waiting: return ask(now)
        case .asking:
            let isFresh = lastAsked.map { $0.duration(to: now) < Self.leastDistance } ?? false
            return isFresh ? .none : ask(now)
        case .ended: return .none
        }
    }

    /// Asks as soon as it may: there is another way out, which may come and go quickly, on many machines at once.
    package mutating func askSoon(_ now: OperationInstant, chance: Double) -> Action {
        if state == .ended { return .none }
        let distance = Self.leastDistance * (1 + chance.asChance)
        let left = lastAsked.map { now.duration(to: $0.advanced(by: distance)) } ?? .zero
        guard left > .zero else { return ask(now) }
        state = .waiting
        number += 1
        return .wait(left, number)
    }

    /// The same, but what is known stays, and so does a probe that is under way: it is as good as another.
    package mutating func lookAgain(_ now: OperationInstant, chance: Double) -> Action {
        state == .waiting ? askSoon(now, chance: chance) : .none
    }

    private mutating func ask(_ now: OperationInstant) -> Action {
        state = .asking
        number += 1
        lastAsked = now
        return .ask(number)
    }

    /// Asks no more until it is told to, and knows nothing meanwhile.
    package mutating func rest() {
        if state == .ended { return }
        state = .resting
        number += 1
        (failures, silences, known) = (0, 0, .unknown)
    }

    /// What is to be done then; nil if that probe does not matter any more.
    package mutating func ended(
        _ number: Int, _ result: Result, of probe: NetworkProbe, chance: Double
    ) -> Action? {
        guard number == self.number, state == .asking else { return nil }
        state = .waiting
        switch result {
        case .answer(let verdict):
            silences = 0
            known = connectivity(verdict)
        case .silence:
            silences += 1
            if silences >= Self.silenceLimit { known = .unsatisfied }
        case .nothing: break
        }
        failures = known.isOffline || result == .silence ? failures + 1 : 0
        let pause =
            failures > 0
            ? probe.backoff.pause(after: failures, chance: chance)
            : max(probe.interval, .milliseconds(1)).clamped * (1 + chance.asChance / 10)
        return .wait(max(pause, .milliseconds(1)), number)
    }

    private func connectivity(_ verdict: NetworkProbe.Verdict) -> Connectivity {
        switch verdict {
        case .reached: return .satisfied
        case .unclear: return .unknown
        case .intercepted:
            var connectivity = Connectivity.unsatisfied
            connectivity.isCaptive = true
            return connectivity
        }
    }

    /// Whether that probe, or the pause after it, is under way.
    package func isPresent(_ number: Int) -> Bool {
        number == self.number && [.asking, .waiting].contains(state)
    }

    /// The pause is over.
    package mutating func waited(_ number: Int, _ now: OperationInstant) -> Action {
        state == .waiting && number == self.number ? ask(now) : .none
    }

    /// It is over.
    package mutating func end() { state = .ended }
}

extension Double {
    /// The number that a user gave as chance: from 0 to 1, whatever it is.
    var asChance: Double { self >= 0 ? min(self, 1) : 0 }
}
