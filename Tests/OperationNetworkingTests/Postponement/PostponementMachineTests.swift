// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking
import Testing

@Suite("The state machine of a realm")
struct PostponementMachineTests {
    typealias Machine = PostponementMachine<String>

    /// A machine and a time, and what each event gives, as text.
    private final class Play {
        var machine: Machine
        var now = OperationInstant(offset: .seconds(1_000))

        init(canRefresh: Bool = true, _ change: (inout Machine.Limits) -> Void = { _ in }) {
            var limits = Machine.Limits()
            limits.pace = .atOnce
            change(&limits)
            machine = Machine(limits: limits, canRefresh: canRefresh)
        }

        func want() -> String { Self.text(machine.want(now: now)) }
        func reject(_ version: Int, isSecond: Bool = false) -> String {
            Self.text(machine.reject(version, isSecond: isSecond, now: now))
        }
        func set(_ credential: String, lifetime: Duration? = nil) -> String {
            Self.text(machine.set(credential, lifetime: lifetime, now: now))
        }
        func refreshed(_ number: Int, _ credential: String, lifetime: Duration? = nil) -> String {
            let (isTaken, actions) = machine.refreshed(number, credential, lifetime: lifetime, now: now)
            return "\(isTaken ? "taken" : "dropped")" + (actions.isEmpty ? "" : ", \(Self.text(actions))")
        }
        func failed(_ number: Int, _ kind: Machine.Failure.Kind = .failed, mayPass: Bool = false) -> String {
            Self.text(machine.refreshFailed(number, Machine.Failure(kind, mayPass: mayPass), now: now))
        }
        func pass(_ time: Duration) -> String {
            now = now.advanced(by: time)
            return Self.text(machine.passTime(now))
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
                case .release(let tickets): "release \(tickets)"
                case .callAt(let moment): "call at \(moment.offset.components.seconds)"
                case .fail(let tickets, let failure): "fail \(tickets) \(failure.kind)"
                }
            }.joined(separator: ", ")
        }
    }

    @Test("Each event in each state gives what the table says")
    func table() {
        let states: [(name: String, make: () -> Play)] = [
            ("absent", { Play() }),
            ("valid", { Self.valid() }),
            ("refreshing", { Self.refreshing() }),
            ("failed", { Self.failed(mayPass: false) }),
            ("failed for now", { Self.failed(mayPass: true) }),
            ("signed out", { Self.signedOut() }),
        ]
        let events: [(name: String, happen: (Play) -> String)] = [
            ("want", { $0.want() }),
            ("old rejected", { $0.reject($0.machine.version - 1) }),
            ("rejected", { $0.reject($0.machine.version) }),
            ("rejected again", { $0.reject($0.machine.version, isSecond: true) }),
            ("refreshed", { $0.refreshed(1, "B") }),
            ("refresh failed", { $0.failed(1) }),
            ("another refresh", { $0.refreshed(7, "C") + "; " + $0.failed(7) }),
            ("set", { $0.set("D") }),
            ("signed out of", { Play.text($0.machine.signOut()) }),
            ("given up", { Play.text($0.machine.failWaiting(.init(.failed))) }),
        ]
        let wanted: [String: [String]] = [
            "absent": [
                "wait 1, refresh 1 of nothing", "wait 1", "wait 1", "refuse", "dropped", "", "dropped; ", "", "", "",
            ],
            "valid": [
                "give A 1", "replay", "wait 1, refresh 1 of A", "refuse", "dropped", "", "dropped; ", "", "", "",
            ],
            "refreshing": [
                "wait 3", "wait 3", "wait 3", "refuse", "taken, release [1, 2]", "fail [1, 2] failed", "dropped; ",
                "drop 1, release [1, 2]", "drop 1, fail [1, 2] signedOut", "fail [1, 2] failed",
            ],
            "failed": [
                "fail failed", "fail failed", "fail failed", "refuse", "dropped", "", "dropped; ", "", "", "",
            ],
            "failed for now": [
                "fail failed", "fail failed", "fail failed", "refuse", "dropped", "", "dropped; ", "", "", "",
            ],
            "signed out": [
                "fail signedOut", "fail signedOut", "fail signedOut", "refuse", "dropped", "", "dropped; ", "", "", "",
            ],
        ]
        for state in states {
            for (index, event) in events.enumerated() {
                let play = state.make()
                let got = event.happen(play)
                #expect(got == wanted[state.name]?[index], "\(event.name), \(state.name)")
            }
        }
    }

    private static func valid() -> Play {
        let play = Play()
        _ = play.set("A")
        return play
    }

    private static func refreshing() -> Play {
        let play = valid()
        _ = play.reject(1)
        _ = play.want()
        return play
    }

    private static func failed(mayPass: Bool) -> Play {
        let play = refreshing()
        _ = play.failed(1, mayPass: mayPass)
        return play
    }

    private static func signedOut() -> Play {
        let play = valid()
        _ = play.machine.signOut()
        return play
    }

    @Test("A failure is remembered for its credential, and forgotten with the next one")
    func memory() {
        let play = Self.failed(mayPass: false)
        #expect(play.pass(.seconds(1_000_000)) == "")
        #expect(play.want() == "fail failed")
        #expect(play.set("D") == "")
        #expect(play.want() == "give D 2")
    }

    @Test("A failure that may pass is remembered for a while, and then another refresh may begin")
    func passingFailure() {
        let play = Self.failed(mayPass: true)
        _ = play.pass(.milliseconds(9_999))
        #expect(play.want() == "fail failed")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "wait 3, refresh 2 of A")
        #expect(play.refreshed(2, "B") == "taken, release [3]")
        #expect(play.want() == "give B 2")
    }

    @Test("What a refresh gives that took too long is taken after all, unless there is something newer")
    func late() {
        var play = Self.refreshing()
        #expect(play.failed(1, .timedOut, mayPass: true) == "fail [1, 2] timedOut")
        #expect(play.refreshed(1, "B") == "taken")
        #expect(play.want() == "give B 2")
        play = Self.refreshing()
        _ = play.failed(1, .timedOut, mayPass: true)
        _ = play.set("D")
        #expect(play.refreshed(1, "B") == "dropped")
        #expect(play.want() == "give D 2")
    }

    @Test("A credential is renewed before its end, once, and used until then if it cannot be for now")
    func proactive() {
        let play = Play()
        _ = play.set("A", lifetime: .seconds(100))
        _ = play.pass(.milliseconds(39_999))
        #expect(play.want() == "give A 1")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "wait 1, refresh 1 of A")
        #expect(play.want() == "wait 2")
        #expect(play.failed(1, mayPass: true) == "release [1, 2]")
        #expect(play.want() == "give A 1")
        _ = play.pass(.seconds(10))
        #expect(play.want() == "wait 3, refresh 2 of A")
        // It ends before the refresh does.
        _ = play.pass(.seconds(50))
        #expect(play.failed(2, mayPass: true) == "fail [3] failed")
        // One that comes nearly out of date is not renewed for ever.
        _ = play.pass(.seconds(10))
        #expect(play.want() == "wait 4, refresh 3 of A")
        #expect(play.refreshed(3, "B", lifetime: .seconds(5)) == "taken, release [4]")
        _ = play.pass(.seconds(100))
        #expect(play.want() == "give B 2")
        // One that was stored may be out of date.
        _ = play.set("C", lifetime: .seconds(-5))
        #expect(play.want() == "wait 5, refresh 4 of C")
    }

    @Test("More refreshes than may begin in the window do not")
    func storm() {
        let play = Self.valid()
        for number in 1...5 {
            #expect(play.reject(number) == "wait \(number), refresh \(number) of \(number == 1 ? "A" : "B")")
            _ = play.refreshed(number, "B")
            _ = play.pass(.seconds(1))
        }
        #expect(play.reject(6) == "fail tooMany")
        #expect(play.want() == "give B 6")
        _ = play.pass(.seconds(25))
        #expect(play.reject(6) == "wait 6, refresh 6 of B")
    }

    @Test("Those that wait go on in their order, so many at a time; what left goes nowhere")
    func pace() {
        let play = Play { $0.pace = PostponementPace(2, every: .seconds(1)) }
        _ = play.set("A")
        _ = play.reject(1)
        for _ in 0..<6 { _ = play.want() }
        play.machine.leave(2)
        play.machine.leave(7)
        #expect(play.refreshed(1, "B") == "taken, release [1, 3], call at 1001")
        #expect(play.pass(.milliseconds(999)) == "")
        #expect(play.pass(.milliseconds(1)) == "release [4, 5], call at 1002")
        // What is rejected now lets the rest wait on, and it comes before what waits later.
        #expect(play.reject(2) == "wait 8, refresh 2 of B")
        #expect(play.pass(.seconds(1)) == "")
        #expect(play.refreshed(2, "C") == "taken, release [6, 8]")
        #expect(play.machine.waitingCount == 0)
    }

    @Test("Where nobody can be asked, they wait until a credential is set")
    func fromOutside() {
        let play = Play(canRefresh: false)
        #expect(play.want() == "wait 1, refresh 1 of nothing")
        #expect(play.want() == "wait 2")
        _ = play.pass(.seconds(100_000))
        #expect(play.set("A") == "drop 1, release [1, 2]")
        for version in 1...20 {
            #expect(play.reject(version) == "wait \(version + 2), refresh \(version + 1) of A")
            _ = play.set("A")
        }
    }

    @Test("The line forgets those that left, however many")
    func leaving() {
        let play = Play(canRefresh: false)
        for _ in 0..<10_000 { _ = play.want() }
        for ticket in 1...9_999 { play.machine.leave(UInt64(ticket)) }
        #expect(play.machine.waitingCount == 1)
        #expect(play.set("A") == "drop 1, release [10000]")
    }
}
