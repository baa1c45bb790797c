// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Simulates operations outside queues and in several queues that constantly use categories, and counts the later
/// parties that are served while an earlier party is the first of its queue.
private struct Traffic {
    /// The steps after which a queue has a slot for a called party, or `nil` for a suspended queue.
    typealias Delay = Int?

    private final class Source: Sendable {}

    private struct Party {
        let keys: [Int]
        let queue: Int?
        /// The time of its call.
        var called: Int?
        /// The time until which it may wait with a slot.
        var seatedUntil: Int?
        /// The time until which it holds its categories.
        var heldUntil: Int?
        /// The number of later parties that were served while it was the first of its queue.
        var overtaken = 0
    }

    var machine = CategoryMachine<Int, Int>()
    private let delays: [Delay]
    private let sources: [Source]
    private var parties: [Int: Party] = [:]
    private var random: SeededGenerator
    private var lines: [[Int]]
    private var next = 0
    private(set) var time = 0
    /// The largest number of parties that overtook a party outside suspended queues.
    private(set) var mostOvertaken = 0
    private(set) var mostSeated = 0
    private(set) var served = 0

    init(seed: UInt64, delays: [Delay]) {
        random = SeededGenerator(seed: seed)
        self.delays = delays
        sources = delays.map { _ in Source() }
        lines = delays.map { _ in [] }
    }

    func isWaiting(_ party: Int) -> Bool { parties[party].map { $0.heldUntil == nil } ?? false }

    func waiting(in queue: Int?, _ keys: [Int]) -> Int {
        parties.values.count { $0.queue == queue && $0.keys == keys && $0.heldUntil == nil }
    }

    /// Adds a party and returns its number.
    mutating func come(_ keys: [Int], in queue: Int?) -> Int {
        next += 1
        parties[next] = Party(keys: keys, queue: queue)
        let demands = keys.map { CategoryMachine<Int, Int>.Demand($0, limit: 1) }
        if let queue {
            lines[queue].append(next)
            machine.enqueue(next, for: demands, in: ObjectIdentifier(sources[queue]))
        } else if machine.ask(next, for: demands) {
            hold(next)
        }
        noteCalls()
        return next
    }

    /// Each party keeps its categories for `shortest` to `longest` milliseconds.
    var shortest = 1
    var longest = 6

    mutating func tick() {
        time += 1
        for number in parties.keys.sorted() {
            guard let party = parties[number] else { continue }
            if let end = party.heldUntil, end <= time {
                parties[number] = nil
                hold(machine.leave(number))
            } else if let end = party.seatedUntil, end <= time, party.heldUntil == nil {
                parties[number]?.seatedUntil = nil
                let (isHeld, others) = machine.demote(number)
                if isHeld { hold(number) }
                hold(others)
            } else if let called = party.called, let queue = party.queue, let delay = delays[queue],
                called + Int.random(in: 0...delay, using: &random) <= time
            {
                comeWithSlot(number, party, queue)
            }
            noteCalls()
        }
        mostSeated = max(mostSeated, parties.values.count { $0.seatedUntil != nil })
    }

    private mutating func comeWithSlot(_ number: Int, _ party: Party, _ queue: Int) {
        parties[number]?.called = nil
        let demands = party.keys.map { CategoryMachine<Int, Int>.Demand($0, limit: 1) }
        if machine.ask(number, for: demands, in: ObjectIdentifier(sources[queue])) { return hold(number) }
        guard let time = machine.slotWaitLimit(of: number) else { return }
        parties[number]?.seatedUntil = self.time + Int(time / .milliseconds(1))
        hold(machine.promote(number))
    }

    private mutating func hold(_ numbers: [Int]) { for number in numbers { hold(number) } }

    private mutating func hold(_ number: Int) {
        guard let party = parties[number], party.heldUntil == nil else { return }
        served += 1
        parties[number]?.heldUntil = time + Int.random(in: shortest...max(longest, shortest), using: &random)
        parties[number]?.seatedUntil = nil
        if let queue = party.queue { lines[queue].removeAll { $0 == number } }
        for line in lines.indices where delays[line] != nil {
            guard let first = lines[line].first, first < number else { continue }
            guard parties[first]?.keys.contains(where: party.keys.contains) == true else { continue }
            parties[first]?.overtaken += 1
            mostOvertaken = max(mostOvertaken, parties[first]?.overtaken ?? 0)
        }
    }

    private mutating func noteCalls() {
        for number in machine.takeCalled() { parties[number]?.called = time }
    }
}

@Suite("Number of later operations that overtake a waiting operation", .timeLimit(.minutes(Rounds.minutes)))
struct CategoryWaitTests {
    private func seeds(_ check: (UInt64) -> String?) {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 40, soak: 2_000)) {
            guard let failure = check(seed) else { continue }
            Issue.record("seed \(seed): \(failure)")
            return
        }
    }

    @Test func `a constant stream of operations outside queues does not starve a queued operation`() {
        seeds { seed in
            var traffic = Traffic(seed: seed, delays: [5, nil])
            _ = traffic.come([0], in: nil)
            // The suspended party comes first and must not keep the call from the next one.
            _ = traffic.come([0], in: 1)
            let party = traffic.come([0], in: 0)
            for _ in 0..<2_000 where traffic.isWaiting(party) {
                while traffic.waiting(in: nil, [0]) < 3 { _ = traffic.come([0], in: nil) }
                traffic.tick()
            }
            if traffic.isWaiting(party) { return "waits forever" }
            return traffic.mostOvertaken <= 30 ? nil : "overtaken by \(traffic.mostOvertaken)"
        }
    }

    @Test func `an operation that needs two categories is not starved by operations that need one`() {
        seeds { seed in
            var traffic = Traffic(seed: seed, delays: [5, 0, 0])
            _ = (traffic.come([0], in: 1), traffic.come([1], in: 2))
            let party = traffic.come([0, 1], in: 0)
            for _ in 0..<2_000 where traffic.isWaiting(party) {
                for (queue, key) in [(1, 0), (2, 1)] {
                    while traffic.waiting(in: queue, [key]) < 3 { _ = traffic.come([key], in: queue) }
                }
                traffic.tick()
            }
            if traffic.isWaiting(party) { return "waits forever" }
            return traffic.mostOvertaken <= 40 ? nil : "overtaken by \(traffic.mostOvertaken)"
        }
    }

    @Test func `a long-held category does not slow down another category needed together with it`() {
        seeds { seed in
            var traffic = Traffic(seed: seed, delays: [1, 0])
            (traffic.shortest, traffic.longest) = (1_000_000, 1_000_000)
            _ = traffic.come([1], in: nil)
            (traffic.shortest, traffic.longest) = (1, 3)
            _ = traffic.come([0], in: 1)
            let party = traffic.come([0, 1], in: 0)
            var idle = 0
            for _ in 0..<2_000 {
                while traffic.waiting(in: 1, [0]) < 3 { _ = traffic.come([0], in: 1) }
                traffic.tick()
                if traffic.machine.holders(of: 0).isEmpty { idle += 1 }
            }
            if !traffic.isWaiting(party) { return "the operation did not get the category" }
            return idle < 600 ? nil : "the free category was unused for \(idle) ms of 2000"
        }
    }

    @Test func `if many queues need one category, few wait with a slot and all are served`() {
        var traffic = Traffic(seed: Rounds.firstSeed, delays: Array(repeating: 3, count: 300))
        for queue in 0..<300 { _ = traffic.come([0], in: queue) }
        for _ in 0..<6_000 where traffic.served < 300 { traffic.tick() }
        #expect(traffic.served == 300)
        #expect(traffic.mostSeated <= 20)
    }

    @Test func `in random traffic, no waiting operation is overtaken too often`() {
        seeds { seed in
            var random = SeededGenerator(seed: seed)
            var traffic = Traffic(seed: seed, delays: [0, 3, 6, nil])
            let kinds = (0..<8).map { _ in
                (
                    keys: Set((0..<2).map { _ in Int.random(in: 0..<3, using: &random) }).sorted(),
                    queue: random.chance(3, in: 4) ? Int.random(in: 0..<4, using: &random) : nil
                )
            }
            for _ in 0..<600 {
                for kind in kinds where random.chance(1, in: 2) && traffic.waiting(in: kind.queue, kind.keys) < 2 {
                    _ = traffic.come(kind.keys, in: kind.queue)
                }
                traffic.tick()
            }
            return traffic.mostOvertaken <= 60 ? nil : "overtaken by \(traffic.mostOvertaken)"
        }
    }
}
