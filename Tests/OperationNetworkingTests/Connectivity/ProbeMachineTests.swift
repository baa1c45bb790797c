// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import Testing

/// Tests when a probe is sent, and how its result changes the state.
@Suite(.timeLimit(.minutes(1)))
struct ProbeMachineTests {
    private let probe: NetworkProbe

    init() throws { probe = NetworkProbe(try #require(URL(string: "http://example.com/"))) }

    private func second(_ number: Double) -> OperationInstant { OperationInstant(offset: .seconds(number)) }

    /// A machine that has started its first probe.
    private func asking() -> ProbeMachine {
        var machine = ProbeMachine()
        #expect(machine.askNow(second(0)) == .ask(1))
        return machine
    }

    @Test func `asking during a probe starts a new one, unless the first one has just begun`() {
        var machine = asking()
        #expect(machine.askNow(second(0.9)) == .none)
        #expect(machine.askNow(second(1)) == .ask(2))
        #expect(machine.ended(1, .silence, of: probe, chance: 0) == nil)
        #expect(machine.known == .unknown)
        #expect(machine.ended(2, .answer(.reached), of: probe, chance: 0) == .wait(.seconds(60), 2))
        #expect(machine.known == .satisfied)
        #expect(machine.waited(1, second(60)) == .none)
        #expect(machine.waited(2, second(61)) == .ask(3))
        #expect(machine.waited(2, second(61)) == .none)
    }

    @Test func `one unanswered probe is ignored, and two in a row mean that the network is gone`() {
        var machine = asking()
        #expect(machine.ended(1, .answer(.reached), of: probe, chance: 0) == .wait(.seconds(60), 1))
        _ = machine.waited(1, second(60))
        #expect(machine.ended(2, .silence, of: probe, chance: 0) == .wait(.milliseconds(500), 2), "soon again")
        #expect(machine.known == .satisfied)
        _ = machine.waited(2, second(71))
        #expect(machine.ended(3, .silence, of: probe, chance: 0) == .wait(.seconds(1), 3))
        #expect(machine.known == .unsatisfied)
        _ = machine.waited(3, second(82))
        #expect(machine.ended(4, .answer(.intercepted), of: probe, chance: 0) == .wait(.seconds(2), 4))
        #expect(machine.known.isOffline && machine.known.isCaptive)
        _ = machine.waited(4, second(84))
        // An unclear response is not silence.
        #expect(machine.ended(5, .answer(.unclear), of: probe, chance: 0) == .wait(.seconds(60), 5))
        #expect(machine.known == .unknown)
        _ = machine.waited(5, second(144))
        #expect(machine.ended(6, .silence, of: probe, chance: 0) == .wait(.milliseconds(500), 6))
        #expect(machine.known == .unknown)
    }

    @Test func `a failure unrelated to the network leaves the state unchanged, and the pauses keep growing`() {
        var machine = asking()
        #expect(machine.ended(1, .nothing, of: probe, chance: 0) == .wait(.seconds(60), 1))
        #expect(machine.known == .unknown)
        _ = machine.waited(1, second(60))
        #expect(machine.ended(2, .silence, of: probe, chance: 0) == .wait(.milliseconds(500), 2))
        _ = machine.waited(2, second(61))
        #expect(machine.ended(3, .silence, of: probe, chance: 0) == .wait(.seconds(1), 3))
        #expect(machine.known == .unsatisfied)
        _ = machine.waited(3, second(62))
        #expect(machine.ended(4, .nothing, of: probe, chance: 0) == .wait(.seconds(2), 4))
        #expect(machine.known == .unsatisfied)
        _ = machine.waited(4, second(64))
        #expect(machine.ended(5, .answer(.reached), of: probe, chance: 0) == .wait(.seconds(60), 5))
        _ = machine.waited(5, second(124))
        #expect(machine.ended(6, .nothing, of: probe, chance: 0) == .wait(.seconds(60), 6))
        #expect(machine.known == .satisfied)
    }

    @Test func `a resting machine knows no state, and asks again as soon as it may`() {
        var machine = asking()
        #expect(machine.ended(1, .answer(.intercepted), of: probe, chance: 0) != nil)
        machine.rest()
        #expect(machine.known == .unknown && !machine.isPresent(1))
        #expect(machine.askSoon(second(0.25), chance: 0.5) == .wait(.milliseconds(1_250), 3))
        // The path was lost and came back.
        machine.rest()
        #expect(machine.waited(3, second(1.5)) == .none)
        #expect(machine.askSoon(second(1.5), chance: 0.5) == .ask(5))
        machine.rest()
        #expect(machine.askSoon(second(100), chance: 0) == .ask(7))
        machine.end()
        #expect(machine.askSoon(second(200), chance: 0) == .none && machine.askNow(second(200)) == .none)
    }

    @Test(arguments: [-5, .nan, 1e300, -.infinity] as [Double])
    func `an invalid value of chance is limited to the valid range`(chance: Double) {
        var machine = asking()
        guard case .wait(let pause, _) = machine.ended(1, .answer(.reached), of: probe, chance: chance)
        else { return unmet("The machine does not wait.") }
        #expect(pause >= .seconds(60) && pause < .seconds(67))
    }

    @Test func `over HTTPS, no other server can respond to the probe`() throws {
        let secure = NetworkProbe(try #require(URL(string: "HTTPS://example.com/")))
        let cases: [(Int, NetworkProbe.Verdict, NetworkProbe.Verdict)] = [
            (204, .reached, .reached), (200, .intercepted, .reached), (302, .intercepted, .reached),
            (511, .intercepted, .unclear), (500, .unclear, .unclear), (404, .unclear, .unclear),
        ]
        for (status, plainly, securely) in cases {
            let head = ResponseHead(url: secure.url, status: status)
            #expect(probe.judge(head) == plainly && secure.judge(head) == securely, "\(status)")
        }
    }
}
