// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// The options that determine how a ``ProbeMonitor`` sends requests and interprets the responses.
///
/// ```swift
/// func probe(_ url: URL) -> NetworkProbe {
///     var probe = NetworkProbe(url)
///     probe.interval = .seconds(300)
///     probe.judge = { head in
///         head.headers["X-Service"] == "mine" ? .reached : .intercepted
///     }
///     return probe
/// }
/// ```
public struct NetworkProbe: Sendable {
    /// A conclusion about the network that follows from a response.
    ///
    /// Only a major version may add cases.
    public enum Verdict: Sendable, Hashable {
        /// The response came from the server that the probe contacted.
        case reached
        /// The response came from another server, such as a network's captive portal.
        case intercepted
        /// The response says nothing about the network, for example because it is a server error.
        case unclear
    }

    /// The URL to which the monitor sends requests.
    public var url: URL
    /// The HTTP method of the monitor's requests.
    ///
    /// The default is `"HEAD"`.
    public var method = "HEAD"
    /// The interval between requests while the network is available and the server responds.
    ///
    /// The default is 60 seconds. The monitor extends each interval at random by up to one tenth of its length.
    public var interval: Duration = .seconds(60)
    /// The interval between requests while the network is unavailable or the server does not respond.
    ///
    /// The default is an exponential backoff from 1 to 30 seconds. By default, the monitor shortens each interval at
    /// random by up to one half.
    public var backoff = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(30), jitter: .equal)
    /// The maximum time that the monitor waits for a response.
    ///
    /// The default is 10 seconds.
    public var timeout: Duration = .seconds(10)
    /// A closure that interprets a response.
    ///
    /// The monitor calls the closure with the headers of each response, on a thread of the session. The default closure
    /// depends on the scheme of the URL that you pass to the initializer:
    ///
    /// - For `http`, the status 204 means that the response came from the server at the URL. Any other success or
    ///   redirection status, and the status 511, mean that another server, such as a captive portal, intercepted the
    ///   request.
    /// - For `https`, no other server can respond in place of the host, so any success or redirection status means that
    ///   the server responded.
    /// - All other responses prove nothing about the network.
    public var judge: @Sendable (ResponseHead) -> Verdict
    /// A closure that returns a random number from 0 to 1, which the monitor uses to vary each interval.
    package var chance: @Sendable () -> Double = { .random(in: 0..<1) }

    /// Creates options for a probe that sends requests to a URL.
    ///
    /// Only a probe with an `http` URL can detect a captive portal, such as a sign-in page. With an `https` URL, a
    /// captive portal causes a timeout or an untrusted certificate.
    ///
    /// - Parameter url: The URL to which the probe sends its requests.
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

/// A monitor that repeatedly sends requests to a server to check whether the server is reachable.
///
/// Use this monitor if you need to know whether a server responds, or whether a captive portal, such as a network's
/// sign-in page, intercepts requests (`Connectivity.isCaptive`). Use your own server and a long interval, because each
/// check sends a request. A long interval is sufficient if you combine the probe with the system's monitor in a
/// ``CombinedConnectivity``:
///
/// ```swift
/// func watch(_ url: URL) -> some ConnectivityMonitor {
///     CombinedConnectivity(path: .system, probe: ProbeMonitor(NetworkProbe(url)))
/// }
/// ```
///
/// The monitor sends requests until you release it. Do not use a session that follows redirects, such as an
/// `ExchangeSession`, because the monitor might not recognize a captive portal.
///
/// The monitor treats the network as unavailable after two consecutive requests without a response, because a single
/// request might get lost. Other failures, such as an untrusted certificate, do not change the state.
public final class ProbeMonitor: ConnectivityMonitor {
    private let board = ConnectivityBoard(.unknown)
    let run: ProbeRun

    /// Creates a monitor and sends its first request immediately.
    ///
    /// - Parameters:
    ///   - probe: The options that determine the requests and the intervals between them.
    ///   - session: The session that sends the requests. The default is `DefaultNetworkSession.platformTransport`.
    ///   - clock: The clock that measures the intervals. The default is the system clock.
    public init(
        _ probe: NetworkProbe, session: any NetworkSession = DefaultNetworkSession.platformTransport,
        clock: any OperationClock = .system
    ) {
        run = ProbeRun(probe, session, clock, board)
        run.askNow()
    }

    deinit { run.end() }

    /// The state of the network according to the most recent requests, or an unknown state before the first result.
    public var connectivity: Connectivity { board.connectivity }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The method calls the closure with the current state before it returns. Later calls are made on a thread that the
    /// session or the clock uses.
    ///
    /// - Parameter body: The closure, which receives the state of the network.
    /// - Returns: A token that ends the observation when you cancel or release the token.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }

    /// Sends a request immediately instead of waiting for the end of the interval.
    ///
    /// If a request has been in progress for less than one second, the method sends no other request. The method
    /// replaces an older request, whose result might reflect an earlier state of the network.
    public func askNow() { run.askNow() }

    /// Discards the current state because the path has changed, and sends a request as soon as possible.
    ///
    /// If the path changes often, a request is sent only once in one to two seconds.
    package func startOver() {
        run.rest()
        run.askSoon()
    }
}

/// Sends the requests of one monitor, and writes the results of a ``ProbeMachine`` to its board.
final class ProbeRun: Sendable {
    /// A request with its time limit, or the pause before the next one.
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
    /// The machine that decides when to send requests, and the request or pause that is in progress.
    private let state = Locked((machine: ProbeMachine(), work: Work()))

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

    /// Sends a request as soon as possible, unless one is in progress, because the path has changed slightly.
    func lookAgain() {
        let (now, chance) = (clock.now, probe.chance())
        apply { $0.lookAgain(now, chance: chance) }
    }

    /// The current state of the machine.
    var known: Connectivity { state.withLock { $0.machine.known } }

    /// Discards the current state, and sends no requests until `askNow()` is called.
    func rest() {
        take { $0.rest() }.cancel()
        write()
    }

    func end() { take { $0.end() }.cancel() }

    /// Applies an event, and removes the work in progress.
    private func take(_ event: (inout ProbeMachine) -> Void) -> Work {
        state.withLock { state in
            event(&state.machine)
            return exchange(&state.work, with: Work())
        }
    }

    /// Applies an event and performs its action, which replaces the work in progress.
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
            // No request can be created, so the state is unknown.
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
        // The end of the probe cancels its task.
        keep(clock.schedule(after: probe.timeout) { [weak self] in self?.ended(number, .silence) }, number)
        task.resume()
    }

    private func keep(_ timer: any OperationTimer, _ number: Int) {
        state.keep(timer, in: \.work.timer) { $0.machine.isPresent(number) }
    }

    /// Records the end of a probe, which happens once.
    private func ended(_ number: Int, _ result: ProbeMachine.Result) {
        // The closure is user code, so it is called without holding the lock.
        let chance = probe.chance()
        apply { $0.ended(number, result, of: probe, chance: chance) ?? .none }
    }

    /// Writes the known state to the board.
    ///
    /// Several threads may do so at the same time.
    private func write() { applyLatest({ known }) { board.write($0) } }
}

/// A receiver for the response of one probe, which needs only the headers.
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

    /// Handles the end of the task, where only an error that an unavailable network can cause counts as silence.
    ///
    /// An untrusted certificate, a failed proxy or a lack of file descriptors does not.
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let isSilence = error.map { error in RetryRule.offline.contains { $0.matches(error) } } ?? false
        end.withLock { $0.take() }?(isSilence ? .silence : .nothing)
    }
}

/// A state machine for the requests of a probe, which receives the time and random numbers as arguments.
///
/// Each request and each pause has a number, and an event with an outdated number is ignored. After one request
/// without a response, which may have been lost, the state does not change until the next one.
package struct ProbeMachine: Sendable, Equatable {
    package enum Action: Sendable, Equatable {
        case none
        /// Cancel the work in progress, send a request, and report its result with this number.
        case ask(Int)
        /// Report with this number that the time has passed.
        case wait(Duration, Int)
    }

    package enum Result: Sendable, Equatable {
        case answer(NetworkProbe.Verdict)
        /// There was no response, possibly because the network is unavailable.
        case silence
        /// There was no response for another reason, so that the state does not change.
        case nothing
    }

    private enum State: Sendable, Equatable {
        /// Not started, or stopped.
        case resting
        case asking
        case waiting
        case ended
    }

    /// The current state of the network.
    package private(set) var known = Connectivity.unknown
    private var state = State.resting
    private var number = 0
    /// The number of consecutive requests without a connection to the server.
    private var failures = 0
    /// The number of consecutive conclusive requests without a response.
    private var silences = 0
    private var lastAsked: OperationInstant?

    /// The number of requests without a response after which the network counts as unavailable.
    private static let silenceLimit = 2
    /// The minimum time between a request and the next one for another path, which is randomly extended up to twice
    /// this value.
    ///
    /// A request that is younger than this is not replaced. The pauses after failed requests follow the user's
    /// backoff and may be shorter.
    private static let leastDistance = Duration.seconds(1)

    package init() {}

    /// Sends a request now, at the start or on demand.
    ///
    /// The result of a request that has been in progress for a long time may reflect an earlier state, so the request
    /// is replaced. A recent request is kept.
    package mutating func askNow(_ now: OperationInstant) -> Action {
        switch state {
        case .resting, .waiting: return ask(now)
        case .asking:
            let isFresh = lastAsked.map { $0.duration(to: now) < Self.leastDistance } ?? false
            return isFresh ? .none : ask(now)
        case .ended: return .none
        }
    }

    /// Sends a request as soon as possible for another path, which may change often and on many machines at the same
    /// time.
    package mutating func askSoon(_ now: OperationInstant, chance: Double) -> Action {
        if state == .ended { return .none }
        let distance = Self.leastDistance * (1 + chance.asChance)
        let left = lastAsked.map { now.duration(to: $0.advanced(by: distance)) } ?? .zero
        guard left > .zero else { return ask(now) }
        state = .waiting
        number += 1
        return .wait(left, number)
    }

    /// Sends a request as soon as possible, but keeps the state and a request that is in progress.
    package mutating func lookAgain(_ now: OperationInstant, chance: Double) -> Action {
        state == .waiting ? askSoon(now, chance: chance) : .none
    }

    private mutating func ask(_ now: OperationInstant) -> Action {
        state = .asking
        number += 1
        lastAsked = now
        return .ask(number)
    }

    /// Discards the state, and sends no requests until the next event.
    package mutating func rest() {
        if state == .ended { return }
        state = .resting
        number += 1
        (failures, silences, known) = (0, 0, .unknown)
    }

    /// Records the result of a request, and returns nil if the request is outdated.
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

    /// Returns whether the request or the pause with this number is in progress.
    package func isPresent(_ number: Int) -> Bool {
        number == self.number && [.asking, .waiting].contains(state)
    }

    /// Records that a pause is over.
    package mutating func waited(_ number: Int, _ now: OperationInstant) -> Action {
        state == .waiting && number == self.number ? ask(now) : .none
    }

    /// Ends the probe.
    package mutating func end() { state = .ended }
}
