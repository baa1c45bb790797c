// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import Testing

@Suite("State machine of an authentication realm: refreshes")
struct RefreshRaceTests {
    typealias Play = RefreshPlay

    @Test func `the late result of a timed-out refresh is used unless there is a newer credential`() {
        var play = Play.refreshing()
        #expect(play.failed(1, .timedOut, mayPass: true) == "fail [1, 2] timedOut")
        #expect(play.refreshed(1, "B") == "taken")
        #expect(play.want() == "give B 2")
        play = Play.refreshing()
        _ = play.failed(1, .timedOut, mayPass: true)
        _ = play.set("D")
        #expect(play.refreshed(1, "B") == "dropped")
        #expect(play.want() == "give D 2")
    }

    @Test func `if two refreshes run, the first result is used and the other one is dropped`() {
        for firstGives in [true, false] {
            let play = Play.refreshing()
            _ = play.failed(1, .timedOut, mayPass: true)
            _ = play.pass(.seconds(10))
            #expect(play.want() == "wait 3, refresh 2 of A")
            #expect(play.machine.isOfUse(1) && play.machine.isOfUse(2))
            if firstGives {
                #expect(play.refreshed(1, "B") == "taken, drop 2, release [3]")
                #expect(play.failed(2) == "")
            } else {
                #expect(play.refreshed(2, "B") == "taken, release [3]")
                #expect(play.refreshed(1, "C") == "dropped")
            }
            #expect(play.want() == "give B 2")
            #expect(!play.machine.isOfUse(1) && !play.machine.isOfUse(2))
        }
        // The late result may arrive while the old credential is still in use.
        let play = Play.refreshingEarly()
        #expect(play.failed(1, .timedOut, mayPass: true) == "release [1]")
        #expect(play.refreshed(1, "B") == "taken")
        #expect(play.want() == "give B 2")
    }

    @Test func `the pause that the service requests also delays the next early refresh`() {
        for (pause, expected) in [(nil, 10), (5, 10), (30, 30)] as [(Int?, Int)] {
            let play = Play.refreshingEarly()
            #expect(play.failed(1, mayPass: true, pause: pause.map { .seconds($0) }) == "release [1]")
            _ = play.pass(.seconds(expected) - .milliseconds(1))
            #expect(play.want() == "give A 1", "the old credential is valid until it expires")
            _ = play.pass(.milliseconds(1))
            #expect(play.want() == "wait 2, refresh 2 of A")
        }
    }

    @Test func `if the old credential is rejected after a failed early refresh, waiting operations fail`() {
        for isNoted in [false, true] {
            let play = Play { $0.pace = PostponementPace(1, every: .seconds(1)) }
            _ = play.set("A", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            for _ in 0..<3 { _ = play.want() }
            #expect(play.failed(1, mayPass: true) == "release [1], call at 1041")
            if isNoted {
                #expect(play.recordRejection(0) == "", "an older version says nothing about this credential")
                #expect(play.recordRejection(1) == "fail [2, 3] failed")
            } else {
                #expect(play.reject(1) == "fail failed, fail [2, 3] failed")
            }
            #expect(play.machine.waitingCount == 0 && play.pass(.seconds(1)) == "")
            _ = play.pass(.seconds(9))
            #expect(play.want() == "wait 4, refresh 2 of A")
        }
    }

    @Test func `the error of a failed early refresh is remembered until the pause ends`() {
        let play = Play.refreshingEarly()
        let error = NetworkError(code: .timedOut, phase: .waiting, message: "")
        _ = play.machine.refreshFailed(1, .init(.failed, error: error, mayPass: true), now: play.now)
        #expect(play.machine.lastError is NetworkError)
        _ = play.pass(.seconds(10))
        _ = play.want()
        #expect(play.machine.lastError == nil)
    }

    @Test func `a pause beyond the expiry neither prolongs the use of the credential nor ends early`() {
        let play = Play.refreshingEarly()
        #expect(play.failed(1, mayPass: true, pause: .seconds(600)) == "release [1]")
        _ = play.pass(.seconds(60) - .milliseconds(1))
        #expect(play.want() == "give A 1")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "fail failed", "the credential has expired, and no refresh begins")
        _ = play.pass(.seconds(540) - .milliseconds(1))
        #expect(play.want() == "fail failed")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "wait 2, refresh 2 of A")
    }

    @Test func `a credential that is rejected during a pause starts no refresh before the pause ends`() {
        for isNoted in [true, false] {
            let play = Play.refreshingEarly()
            _ = play.failed(1, mayPass: true, pause: .seconds(30))
            #expect((isNoted ? play.recordRejection(1) : play.reject(1)) == (isNoted ? "" : "fail failed"))
            #expect(play.want() == "fail failed" && !play.machine.maySend(1))
            _ = play.pass(.seconds(30))
            #expect(play.want() == "wait 2, refresh 2 of A")
        }
    }

    @Test func `a credential that is rejected during its early refresh is not used again`() {
        for isNoted in [true, false] {
            let play = Play()
            _ = play.set("A", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            #expect(play.want() == "wait 1, refresh 1 of A")
            #expect((isNoted ? play.recordRejection(1) : play.reject(1)) == (isNoted ? "" : "wait 2"))
            #expect(play.failed(1, mayPass: true) == (isNoted ? "fail [1] failed" : "fail [1, 2] failed"))
            #expect(play.want() == "fail failed")
            // The rejection of an older version has no effect.
            _ = play.set("B", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            _ = play.want()
            _ = play.recordRejection(1)
            #expect(play.failed(2, mayPass: true).hasPrefix("release"))
        }
    }

    @Test func `until another refresh is allowed, operations fail with the last failure, and a longer pause is kept`() {
        let play = Play { $0.mostRefreshes = 2 }
        _ = play.set("A")
        _ = play.reject(1)
        _ = play.failed(1, mayPass: true)
        _ = play.pass(.milliseconds(9_999))
        #expect(play.want() == "fail failed")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "wait 2, refresh 2 of A")
        _ = play.failed(2, .timedOut, mayPass: true)
        _ = play.pass(.seconds(10))
        #expect(play.want() == "fail timedOut")
        #expect(play.reject(1) == "fail timedOut")
        _ = play.pass(.seconds(10))
        #expect(play.want() == "wait 3, refresh 3 of A")
        _ = play.failed(3, mayPass: true, pause: .seconds(60))
        _ = play.pass(.milliseconds(59_999))
        #expect(play.want() == "fail failed")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "wait 4, refresh 4 of A")
    }

    @Test func `only a temporary failure is forgotten, and only if it is not newer than the given moment`() {
        let play = Play.failed(mayPass: true)
        let moment = play.now
        _ = play.pass(.seconds(1))
        play.machine.forgetFailure(before: moment.advanced(by: .seconds(-1)), now: play.now)
        #expect(play.want() == "fail failed")
        play.machine.forgetFailure(before: moment, now: play.now)
        #expect(play.want() == "wait 3, refresh 2 of A")
        for final in [Play.failed(mayPass: false), Play.signedOut()] {
            final.machine.forgetFailure(before: final.now, now: final.now)
            #expect(final.want().hasPrefix("fail"))
        }
    }

    @Test func `a credential is refreshed once before it expires, and is used until then if the refresh fails`() {
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
        // The credential expires before the refresh ends.
        _ = play.pass(.seconds(50))
        #expect(play.failed(2, mayPass: true) == "fail [3] failed")
        // A credential that has nearly expired on arrival is not refreshed again and again.
        _ = play.pass(.seconds(10))
        #expect(play.want() == "wait 4, refresh 3 of A")
        #expect(play.refreshed(3, "B", lifetime: .seconds(5)) == "taken, release [4]")
        _ = play.pass(.seconds(100))
        #expect(play.want() == "give B 2")
        // A stored credential may have expired.
        _ = play.set("C", lifetime: .seconds(-5))
        #expect(play.want() == "wait 5, refresh 4 of C")
    }
}
