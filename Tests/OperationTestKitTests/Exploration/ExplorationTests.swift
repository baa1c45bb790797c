// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Synchronization
import Testing

@Suite("Exploration with seeds", .timeLimit(.minutes(3)))
struct ExplorationTests {
    /// A counter whose value two actors read and then write back incremented.
    private struct Counter {
        var value = 0
        var taken = [0, 0]
    }

    /// Loses a count if one actor reads between the other's read and write.
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

    @Test func `a failure is found, shortened and can be replayed`() throws {
        let failure = try #require(
            #expect(throws: ExplorationFailure.self) {
                try Explorer.explore(rounds: 100) { try losesCounts(&$0, noise: 4) }
            })
        #expect(failure.reason == "There are 1 and not 2.")
        // Without the unrelated actors, only two changes of turn remain.
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

    @Test func `a check that never fails passes, and a check that always fails does so in round 1`() throws {
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

    @Test func `a round that exceeds the turn limit fails and names the actors that poll`() throws {
        var rounds = 0
        let failure = #expect(throws: ExplorationFailure.self) {
            try Explorer.explore(rounds: 10) { explorer in
                rounds += 1
                explorer.turnLimit = 1_000
                explorer.add("work", {})
                explorer.add("poll", asking: { _ in true })
                let isOver = explorer.run()
                #expect(!isOver)
                // No actor takes another turn after that.
                explorer.run()
                try explorer.expect(false, "The check ran before the end.")
            }
        }
        #expect(failure?.reason.hasPrefix("The scenario did not end within 1000 turns.") == true)
        #expect(failure?.order == Array(repeating: "poll", count: 50) && rounds == 1)
        #expect(failure.map { "\($0)".contains("Explorer.replay(") } == true)
        var explorer = Explorer(seed: 1)
        explorer.add("poll", asking: { _ in true })
        #expect(!explorer.run() && explorer.order.count == 100_000)
    }

    @Test func `an actor that polls for another actor does not run forever`() throws {
        let failure = #expect(throws: ExplorationFailure.self) {
            try Explorer.explore(rounds: 1) { explorer in
                let isDone = Mutex(false)
                explorer.add("poll", asking: { _ in isDone.withLock { $0 } ? false : true })
                explorer.add("work", {}, {}, { isDone.withLock { $0 = true } })
                explorer.run()
                try explorer.expect(false, "It fails in any order.")
            }
        }
        let schedule = try #require(failure?.shortest)
        #expect(failure?.order.filter { $0 == "work" }.count == 3, "\(schedule)")
        // With an explicit order, the poller takes the first turn and the last.
        var explorer = Explorer(ExplorerSchedule(seed: 0, turns: []))
        let isDone = Mutex(false)
        explorer.add("poll", asking: { _ in isDone.withLock { $0 } ? false : true })
        explorer.add("idle", asking: { _ in isDone.withLock { $0 } ? false : nil })
        explorer.add("work", { isDone.withLock { $0 = true } })
        let isOver = explorer.run()
        #expect(isOver && explorer.order.last == "work" && explorer.order.count > 100)
    }

    @Test func `a description combines repeated turns of one actor`() {
        let failure = #expect(throws: ExplorationFailure.self) {
            try Explorer.explore(rounds: 1) { explorer in
                var left = 30
                explorer.add(
                    "row",
                    asking: { _ in
                        left -= 1
                        return left >= 0
                    })
                explorer.run()
                try explorer.expect(false, "no")
            }
        }
        #expect(failure?.description.contains("order: row (30 times)\n") == true)
    }

    @Test func `a shortened schedule fails for the same reason`() throws {
        func scene(_ explorer: inout Explorer) throws {
            let order = Mutex<[Int]>([])
            for index in 0..<2 {
                let step: () -> Void = { order.withLock { $0.append(index) } }
                explorer.add("\(index)", step, step, step)
            }
            explorer.run()
            // The schedules with the fewest changes of turn fail for another reason.
            let isCalm = order.withLock { [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]].contains($0) }
            try explorer.expect(!isCalm, "calm")
            try explorer.expect(false, "mixed, for the \(order.withLock { $0[1] })th time")
        }
        for seed: UInt64 in 0..<20 {
            let failure = try #require(
                #expect(throws: ExplorationFailure.self) { try Explorer.explore(rounds: 1, from: seed, scene) })
            let met = #expect(throws: ExplorationFailure.self) { try Explorer.replay(failure.met, scene) }
            #expect(failure.reason.prefix(4) == met?.reason.prefix(4), "\(failure)")
        }
    }

    @Test func `an invalid schedule in the environment is reported, and no round is run`() throws {
        var played = 0
        for text in ["37;0,1", "replay", "37:x"] {
            let failure = #expect(throws: ExplorationFailure.self) {
                try Explorer.explore(rounds: 10, said: text) { _ in played += 1 }
            }
            let start = "OPERATIONKIT_SCHEDULE is \"\(text)\", which is not a schedule"
            #expect(failure?.description.hasPrefix(start) == true)
            #expect(failure?.description.contains("to replay it") == false)
        }
        #expect(played == 0)
        try Explorer.explore(rounds: 10, said: "37:0,1") { _ in played += 1 }
        #expect(played == 1)
        for text in [nil, ""] { try Explorer.explore(rounds: 10, said: text) { _ in played += 1 } }
        #expect(played == 21)
    }

    @Test func `random numbers depend on the seed of the schedule and not on the order`() {
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

    @Test func `schedules are parsed in the format in which they are printed`() {
        #expect(ExplorerSchedule("12") == ExplorerSchedule(seed: 12))
        #expect(ExplorerSchedule("12:0,1") == ExplorerSchedule(seed: 12, turns: [0, 1]))
        #expect(ExplorerSchedule("12:") == ExplorerSchedule(seed: 12, turns: []))
        for text in ["", "a", "1:a", "-1", "1:0;1"] { #expect(ExplorerSchedule(text) == nil, "\(text)") }
        let literal: ExplorerSchedule = "7:1,0"
        #expect("\(literal)" == "7:1,0")
    }

    /// The numbers come from the reference implementation of SplitMix64, so that a failing seed fails on every system.
    @Test func `a seeded generator produces the numbers of SplitMix64`() {
        var zero = SeededGenerator(seed: 0)
        #expect(
            (0..<3).map { _ in zero.next() } == [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F])
        var other = SeededGenerator(seed: 1_234_567)
        let expected: [UInt64] = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
        ]
        #expect((0..<5).map { _ in other.next() } == expected)
    }

    @Test func `chance is true about as often as requested`() {
        var generator = SeededGenerator(seed: 3)
        let hits = (0..<10_000).count { _ in generator.chance(1, in: 4) }
        #expect((2_300...2_700).contains(hits))
        #expect((0..<100).allSatisfy { _ in generator.chance(4, in: 4) })
        #expect(!(0..<100).contains { _ in generator.chance(0, in: 4) })
    }
}
