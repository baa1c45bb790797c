// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Synchronization
import Testing

@Suite("Exploration by seeds", .timeLimit(.minutes(3)))
struct ExplorationTests {
    /// A counter of which two take the value, and put it back one greater.
    private struct Counter {
        var value = 0
        var taken = [0, 0]
    }

    /// Loses a count if one reads between the other's reading and writing.
    private func losesCounts(_ explorer: inout Explorer, noise: Int = 0) throws {
        let counter = Mutex(Counter())
        for index in 0..<2 {
            explorer.add(
                "count \(index)", { counter.withLock { $0.taken[index] = $0.value } },
                { counter.withLock { $0.value = $0.taken[index] + 1 } })
        }
        for index in 0..<noise { explorer.add("noise \(index)", {}, {}, {}) }
        explorer.run()
        let value = counter.withLock { $0.value }
        try explorer.expect(value == 2, "There are \(value) and not 2.")
    }

    @Test func `a failure is found, made short, and can be played again`() throws {
        let failure = try #require(
            #expect(throws: ExplorationFailure.self) {
                try Explorer.explore(rounds: 100) { try losesCounts(&$0, noise: 4) }
            })
        #expect(failure.reason == "There are 1 and not 2.")
        // Without what has nothing to do with it there is one change of turns and then another.
        let turns = try #require(failure.shortest.turns)
        #expect(turns.count <= 3, "\(failure)")
        #expect("\(failure)".contains("Explorer.replay(\"\(failure.shortest)\")"))
        for schedule in [failure.met, failure.shortest] {
            let again = #expect(throws: ExplorationFailure.self) {
                try Explorer.replay(schedule) { try losesCounts(&$0, noise: 4) }
            }
            #expect(again?.reason == failure.reason)
        }
        #expect(ExplorerSchedule("\(failure.shortest)") == failure.shortest)
    }

    @Test func `what never fails passes, and what always does fails in the first round`() throws {
        try Explorer.explore(rounds: 50) { explorer in
            explorer.add("one", {})
            explorer.run()
            try explorer.expect(explorer.order == ["one"], "\(explorer.order)")
        }
        let failure = #expect(throws: ExplorationFailure.self) {
            try Explorer.explore(rounds: 50, from: 7) { try $0.expect(false, "no") }
        }
        #expect(failure?.round == 1 && failure?.met.seed == 7)
        try Explorer.explore(rounds: 0) { try $0.expect(false, "no") }
    }

    @Test func `chance belongs to the schedule, whatever the order`() {
        var drawn: [[Int]] = []
        for turns in [nil, [0, 0, 1, 1], [1, 0, 1, 0]] as [[Int]?] {
            var explorer = Explorer(ExplorerSchedule(seed: 4, turns: turns))
            var numbers = [Int.random(in: 0..<1_000, using: &explorer.random)]
            for name in ["a", "b"] {
                var left = 2
                explorer.add(
                    name,
                    asking: { random in
                        guard left > 0 else { return false }
                        left -= 1
                        numbers.append(Int.random(in: 0..<1_000, using: &random))
                        return true
                    })
            }
            explorer.run()
            drawn.append(numbers)
        }
        #expect(drawn[0] == drawn[1] && drawn[1] == drawn[2] && drawn[0].count == 5)
    }

    @Test func `schedules are read as they are printed`() {
        #expect(ExplorerSchedule("12") == ExplorerSchedule(seed: 12))
        #expect(ExplorerSchedule("12:0,1") == ExplorerSchedule(seed: 12, turns: [0, 1]))
        #expect(ExplorerSchedule("12:") == ExplorerSchedule(seed: 12, turns: []))
        for text in ["", "a", "1:a", "-1", "1:0;1"] { #expect(ExplorerSchedule(text) == nil, "\(text)") }
        let literal: ExplorerSchedule = "7:1,0"
        #expect("\(literal)" == "7:1,0")
    }
}
