// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import Testing

@Suite("State machine of an authentication realm")
struct CredentialMachineTests {
    typealias Play = RefreshPlay

    @Test func `each event in each state gives the result in the table`() {
        let states: [(name: String, make: () -> Play)] = [
            ("absent", { Play() }),
            ("valid", { Play.valid() }),
            ("refreshing", { Play.refreshing() }),
            ("failed", { Play.failed(mayPass: false) }),
            ("failed for now", { Play.failed(mayPass: true) }),
            ("signed out", { Play.signedOut() }),
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
            ("signed out of", { $0.signOut() }),
            ("given up", { $0.giveUp() }), ("noted", { $0.recordRejection($0.machine.version) }),
        ]
        let failed = [
            "fail failed", "fail failed", "fail failed", "refuse", "dropped", "", "dropped; ", "", "", "", "",
        ]
        let wanted: [String: [String]] = [
            "absent": [
                "wait 1, refresh 1 of nothing", "wait 1", "wait 1", "refuse", "dropped", "", "dropped; ", "", "", "",
                "",
            ],
            "valid": [
                "give A 1", "replay", "wait 1, refresh 1 of A", "refuse", "dropped", "", "dropped; ", "", "", "",
                "refresh 1 of A",
            ],
            "refreshing": [
                "wait 3", "wait 3", "wait 3", "refuse", "taken, release [1, 2]", "fail [1, 2] failed", "dropped; ",
                "drop 1, release [1, 2]", "drop 1, fail [1, 2] signedOut", "fail [1, 2] failed", "",
            ],
            "failed": failed, "failed for now": failed,
            "signed out": [
                "fail signedOut", "fail signedOut", "fail signedOut", "refuse", "dropped", "", "dropped; ", "", "", "",
                "",
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

    @Test func `no more refreshes begin than the window allows`() {
        let play = Play.valid()
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

    @Test func `waiting operations are released in order at the configured pace, and withdrawn ones are skipped`() {
        let play = Play { $0.pace = PostponementPace(2, every: .seconds(1)) }
        _ = play.set("A")
        _ = play.reject(1)
        for _ in 0..<6 { _ = play.want() }
        _ = play.machine.leave(2)
        _ = play.machine.leave(7)
        #expect(play.refreshed(1, "B") == "taken, release [1, 3], call at 1001")
        #expect(play.pass(.milliseconds(999)) == "")
        #expect(play.pass(.milliseconds(1)) == "release [4, 5], call at 1002")
        // A rejection keeps the remaining operations waiting, ahead of the operations that join later.
        #expect(play.reject(2) == "wait 8, refresh 2 of B")
        #expect(play.pass(.seconds(1)) == "")
        #expect(play.refreshed(2, "C") == "taken, release [6, 8]")
        #expect(play.machine.waitingCount == 0)
    }

    @Test func `without a refresh function, operations wait until a credential is set`() {
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

    @Test func `without a refresh function, the next operation asks again after the waiting ones gave up`() {
        let play = Play(canRefresh: false)
        #expect(play.want() == "wait 1, refresh 1 of nothing")
        #expect(play.giveUp() == "fail [1] failed")
        #expect(play.want() == "wait 2, refresh 2 of nothing")
        #expect(play.set("A") == "drop 2, release [2]")
        #expect(play.recordRejection(1) == "refresh 3 of A")
        #expect(play.giveUp() == "")
        #expect(play.reject(1) == "wait 3, refresh 4 of A")
    }
}
