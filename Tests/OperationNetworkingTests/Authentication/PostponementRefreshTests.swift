// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking
import Testing

@Suite("The state machine of a realm: what becomes of a refresh")
struct PostponementRefreshTests {
    typealias Play = PostponementPlay

    @Test("What a refresh gives that took too long is taken after all, unless there is something newer")
    func late() {
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

    @Test("Of two that run because the first does not stop, the one counts that gives something first")
    func lateDuringTheNext() {
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
        // It may come while the old one is used on.
        let play = Play()
        _ = play.set("A", lifetime: .seconds(100))
        _ = play.pass(.seconds(40))
        _ = play.want()
        #expect(play.failed(1, .timedOut, mayPass: true) == "release [1]")
        #expect(play.refreshed(1, "B") == "taken")
        #expect(play.want() == "give B 2")
    }

    @Test("A service that asks for a pause is not asked before that for an early renewal, either")
    func pauseOfEarlyRenewal() {
        for (pause, expected) in [(nil, 10), (5, 10), (30, 30)] as [(Int?, Int)] {
            let play = Play()
            _ = play.set("A", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            _ = play.want()
            #expect(play.failed(1, mayPass: true, pause: pause.map { .seconds($0) }) == "release [1]")
            _ = play.pass(.seconds(expected) - .milliseconds(1))
            #expect(play.want() == "give A 1", "the old one is good until its end")
            _ = play.pass(.milliseconds(1))
            #expect(play.want() == "wait 2, refresh 2 of A")
        }
    }

    @Test("What is still used after an early renewal failed is rejected: those that are not yet released fail, too")
    func lineRejectedInThePause() {
        for isNoted in [false, true] {
            let play = Play { $0.pace = PostponementPace(1, every: .seconds(1)) }
            _ = play.set("A", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            for _ in 0..<3 { _ = play.want() }
            #expect(play.failed(1, mayPass: true) == "release [1], call at 1041")
            if isNoted {
                #expect(play.noteRejected(0) == "", "an older one says nothing of this")
                #expect(play.noteRejected(1) == "fail [2, 3] failed")
            } else {
                #expect(play.reject(1) == "fail failed, fail [2, 3] failed")
            }
            #expect(play.machine.waitingCount == 0 && play.pass(.seconds(1)) == "")
            _ = play.pass(.seconds(9))
            #expect(play.want() == "wait 4, refresh 2 of A")
        }
    }

    @Test("The error of an early renewal that failed is remembered for as long as the pause")
    func errorOfThePause() {
        let play = Play()
        _ = play.set("A", lifetime: .seconds(100))
        _ = play.pass(.seconds(40))
        _ = play.want()
        let error = NetworkError(code: .timedOut, phase: .waiting, message: "")
        _ = play.machine.refreshFailed(1, .init(.failed, error: error, mayPass: true), now: play.now)
        #expect(play.machine.lastError is NetworkError)
        _ = play.pass(.seconds(10))
        _ = play.want()
        #expect(play.machine.lastError == nil)
    }

    @Test("A credential is not used beyond its end because the service asked for a longer pause, nor is that broken")
    func pauseBeyondTheEnd() {
        let play = Play()
        _ = play.set("A", lifetime: .seconds(100))
        _ = play.pass(.seconds(40))
        _ = play.want()
        #expect(play.failed(1, mayPass: true, pause: .seconds(600)) == "release [1]")
        _ = play.pass(.seconds(60) - .milliseconds(1))
        #expect(play.want() == "give A 1")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "fail failed", "it has ended, and the service is left alone")
        _ = play.pass(.seconds(540) - .milliseconds(1))
        #expect(play.want() == "fail failed")
        _ = play.pass(.milliseconds(1))
        #expect(play.want() == "wait 2, refresh 2 of A")
    }

    @Test("A credential that is rejected in such a pause begins no refresh before its end")
    func rejectedInThePause() {
        for isNoted in [true, false] {
            let play = Play()
            _ = play.set("A", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            _ = play.want()
            _ = play.failed(1, mayPass: true, pause: .seconds(30))
            #expect((isNoted ? play.noteRejected(1) : play.reject(1)) == (isNoted ? "" : "fail failed"))
            #expect(play.want() == "fail failed" && !play.machine.mayLeave(1))
            _ = play.pass(.seconds(30))
            #expect(play.want() == "wait 2, refresh 2 of A")
        }
    }

    @Test("A credential that is rejected while it is renewed before its end is not used again")
    func rejectedWhileRenewed() {
        for isNoted in [true, false] {
            let play = Play()
            _ = play.set("A", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            #expect(play.want() == "wait 1, refresh 1 of A")
            #expect((isNoted ? play.noteRejected(1) : play.reject(1)) == (isNoted ? "" : "wait 2"))
            #expect(play.failed(1, mayPass: true) == (isNoted ? "fail [1] failed" : "fail [1, 2] failed"))
            #expect(play.want() == "fail failed")
            // An older one says nothing.
            _ = play.set("B", lifetime: .seconds(100))
            _ = play.pass(.seconds(40))
            _ = play.want()
            _ = play.noteRejected(1)
            #expect(play.failed(2, mayPass: true).hasPrefix("release"))
        }
    }

    @Test("Where it cannot be asked for again yet, what went wrong is said, and a longer pause is kept")
    func rememberedFailure() {
        let play = Play { $0.mostRefreshes = 2 }
        _ = play.set("A")
        _ = play.reject(1)
        _ = play.failed(1, mayPass: true)
        _ = play.pass(.seconds(10))
        _ = play.want()
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

    @Test("A failure of before is forgotten when what caused it is over, and one of after is not")
    func forgetting() {
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
}
