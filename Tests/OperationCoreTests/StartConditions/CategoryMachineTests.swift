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
    func holders(of key: String) -> [Int] { machine.holders(of: key) }
    func waiting(for key: String) -> [Int] { machine.waiting(for: key) }
    func waitingCount(for key: String) -> Int { machine.waitingCount(for: key) }
}

@Suite("Holders and waiters of categories", .timeLimit(.minutes(3)))
struct CategoryMachineTests {
    private let machine = Machine()

    @Test func `a category is held by as many as its limit allows, and the others follow in order`() {
        #expect(machine.ask(1, "a", limit: 2) && machine.ask(2, "a", limit: 2))
        #expect(!machine.ask(3, "a", limit: 2) && !machine.ask(4, "a", limit: 2))
        #expect(machine.holders(of: "a") == [1, 2] && machine.waiting(for: "a") == [3, 4])
        #expect(machine.leave(2) == [3] && machine.leave(1) == [4])
        #expect(machine.leave(3) == [] && machine.leave(4) == [] && machine.isEmpty)
    }

    @Test func `a waiter for two categories is not overtaken in the free category`() {
        #expect(machine.ask(1, "a") && !machine.ask(2, "a", "b"))
        #expect(!machine.ask(3, "b"))
        #expect(machine.leave(1) == [2] && machine.holders(of: "b") == [2])
        #expect(machine.leave(2) == [3])
    }

    @Test func `when a waiter leaves the line, the waiters behind it get their turn`() {
        #expect(machine.ask(1, "a") && !machine.ask(2, "a", "b") && !machine.ask(3, "b") && !machine.ask(4, "a"))
        #expect(machine.leave(2) == [3])
        #expect(machine.waiting(for: "a") == [4] && machine.waitingCount(for: "a") == 1)
        #expect(machine.leave(1) == [4])
    }

    @Test func `a turn in one line can give further waiters a turn in another line`() {
        #expect(machine.ask(1, "a") && !machine.ask(2, for: [.init("a", limit: 1), .init("b", limit: 2)]))
        #expect(!machine.ask(3, "b", limit: 2))
        #expect(machine.leave(1).sorted() == [2, 3])
    }

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
