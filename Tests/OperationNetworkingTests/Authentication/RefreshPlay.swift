// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking

/// A state machine with a time.
///
/// Each event returns its result as text.
final class RefreshPlay {
    typealias Machine = CredentialMachine<String, UInt64>

    var machine: Machine
    var now = OperationInstant(offset: .seconds(1_000))

    init(canRefresh: Bool = true, _ change: (inout Machine.Limits) -> Void = { _ in }) {
        var limits = Machine.Limits()
        limits.pace = .atOnce
        change(&limits)
        machine = Machine(limits: limits, canRefresh: canRefresh)
    }

    /// The number of operations that have waited.
    private var waiters: UInt64 = 0

    /// Returns the actions as text, and the time at which the next waiting operations are released after these.
    private func text(_ actions: [Machine.Action]) -> String {
        let text = Self.text(actions)
        guard text.contains("release"), let due = machine.nextDue else { return text }
        return "\(text), call at \(due.offset.components.seconds)"
    }

    private func asked(_ ask: (UInt64) -> (Machine.Answer, [Machine.Action])) -> String {
        let asked = ask(waiters + 1)
        if case .wait = asked.0 { waiters += 1 }
        return Self.text(asked)
    }

    func want() -> String { asked { machine.want($0, now: now) } }
    func reject(_ version: Int, isSecond: Bool = false) -> String {
        asked { machine.reject(version, isSecond: isSecond, $0, now: now) }
    }
    func set(_ credential: String, lifetime: Duration? = nil) -> String {
        text(machine.set(credential, lifetime: lifetime, now: now))
    }
    func refreshed(_ number: Int, _ credential: String, lifetime: Duration? = nil) -> String {
        let (isTaken, actions) = machine.refreshed(number, credential, lifetime: lifetime, now: now)
        return "\(isTaken ? "taken" : "dropped")" + (actions.isEmpty ? "" : ", \(text(actions))")
    }
    func failed(
        _ number: Int, _ kind: Machine.Failure.Kind = .failed, mayPass: Bool = false, pause: Duration? = nil
    ) -> String {
        text(machine.refreshFailed(number, Machine.Failure(kind, mayPass: mayPass, pause: pause), now: now))
    }
    func signOut() -> String { text(machine.signOut(now: now)) }
    func giveUp() -> String { Self.text(machine.failWaiting(Machine.Failure(.failed), now: now)) }
    func recordRejection(_ version: Int) -> String { Self.text(machine.recordRejection(version, now: now)) }
    func pass(_ time: Duration) -> String {
        now = now.advanced(by: time)
        return text(machine.timePassed(now))
    }

    static func text(_ asked: (Machine.Answer, [Machine.Action])) -> String {
        let answer =
            switch asked.0 {
            case .give(let credential, let version): "give \(credential) \(version)"
            case .wait(let ticket): "wait \(ticket)"
            case .replay: "replay"
            case .fail(let failure): "fail \(failure.kind)"
            case .refuse: "refuse"
            }
        return asked.1.isEmpty ? answer : "\(answer), \(text(asked.1))"
    }

    static func text(_ actions: [Machine.Action]) -> String {
        actions.map { action in
            switch action {
            case .refresh(let number, let old): "refresh \(number) of \(old ?? "nothing")"
            case .dropRefresh(let number): "drop \(number)"
            case .release(let waiters): "release \(waiters)"
            case .fail(let waiters, let failure): "fail \(waiters) \(failure.kind)"
            }
        }.joined(separator: ", ")
    }
}

// The machine in each of its states.
extension RefreshPlay {
    static func valid() -> RefreshPlay {
        let play = RefreshPlay()
        _ = play.set("A")
        return play
    }

    static func refreshing() -> RefreshPlay {
        let play = valid()
        _ = play.reject(1)
        _ = play.want()
        return play
    }

    /// A play whose credential is still valid while its first early refresh is under way.
    static func refreshingEarly() -> RefreshPlay {
        let play = RefreshPlay()
        _ = play.set("A", lifetime: .seconds(100))
        _ = play.pass(.seconds(40))
        _ = play.want()
        return play
    }

    static func failed(mayPass: Bool) -> RefreshPlay {
        let play = refreshing()
        _ = play.failed(1, mayPass: mayPass)
        return play
    }

    static func signedOut() -> RefreshPlay {
        let play = valid()
        _ = play.signOut()
        return play
    }
}
