// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

/// A machine whose events can be used in an expectation.
private final class Machine {
    typealias Demand = CategoryMachine<String, Int>.Demand

    private var machine = CategoryMachine<String, Int>()

    var isEmpty: Bool { machine.isEmpty }

    func ask(_ party: Int, _ keys: String..., limit: Int = 1) -> Bool {
        ask(party, for: keys.map { Demand($0, limit: limit) })
    }

    func ask(_ party: Int, for demands: [Demand]) -> Bool { machine.ask(party, for: demands) }
    func leave(_ party: Int) -> [Int] { machine.leave(party) }
}

@Suite("Holders and waiters of categories", .timeLimit(.minutes(3)))
struct CategoryMachineTests {
    private let machine = Machine()

    @Test func `repeated requests, a second leave and an empty request are handled`() {
        #expect(machine.ask(1, "a") && machine.ask(1, "a") && !machine.ask(2, "a") && !machine.ask(2, "a"))
        #expect(machine.leave(1) == [2] && machine.leave(1) == [])
        #expect(machine.ask(9, for: []) && machine.leave(9) == [])
        #expect(machine.ask(3, "z", limit: -5) && !machine.ask(4, "z", limit: -5))
    }

    @Test func `100,000 waiters in one line are served in order`() {
        #expect(machine.ask(0, "a"))
        for party in 1...100_000 { _ = machine.ask(party, "a") }
        // Removes from the middle, in the worst order for an array.
        for party in stride(from: 50_001, through: 100_000, by: 1) { #expect(machine.leave(party) == []) }
        for party in 0..<50_000 { #expect(machine.leave(party) == [party + 1]) }
        #expect(machine.leave(50_000) == [] && machine.isEmpty)
    }
}
