// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// The test's model of parties that request categories, some of them from a queue.
private struct Known {
    enum Standing { case waiting, called, held }

    struct Party {
        let number: Int
        let keys: [Int]
        let queue: Int?
        var standing = Standing.waiting
        /// Whether the party can begin as soon as it is served: outside queues, or with a slot.
        var isImmediate: Bool
    }

    var parties: [Party] = []
    let limits: [Int]

    func holders(of key: Int) -> Int { parties.count { $0.standing == .held && $0.keys.contains(key) } }

    /// Whether the party lacks only a slot to get its categories.
    func isDue(_ party: Party) -> Bool {
        party.standing != .held
            && party.keys.allSatisfy { key in
                guard holders(of: key) < limits[key] else { return false }
                let before = parties.prefix { $0.number != party.number }.filter {
                    $0.standing != .held && $0.keys.contains(key)
                }
                let immediate = parties.filter { $0.standing != .held && $0.isImmediate && $0.keys.contains(key) }
                return immediate.isEmpty && !before.contains { $0.queue == party.queue }
            }
    }
}

/// The origin of parties, of which only the identity matters.
private final class Source: Sendable {}

@Suite("Categories of several queues in seeded schedules", .timeLimit(.minutes(Rounds.minutes)))
struct CategoryQueueModelTests {
    @Test func `in random schedules, limits hold, every holder has a slot and no turn is lost`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 400, soak: 20_000)) {
            if let failure = schedule(seed: seed) {
                Issue.record("seed \(seed): \(failure)")
                return
            }
        }
    }

    private func schedule(seed: UInt64) -> String? {
        var random = SeededGenerator(seed: seed)
        let sources = (0..<3).map { _ in Source() }
        var known = Known(limits: (0..<3).map { _ in Int.random(in: 1...2, using: &random) })
        var machine = CategoryMachine<Int, Int>()
        func demands(_ keys: [Int]) -> [CategoryMachine<Int, Int>.Demand] {
            keys.map { .init($0, limit: known.limits[$0]) }
        }
        func note(_ served: [Int]) -> String? {
            for number in served {
                guard let index = known.parties.firstIndex(where: { $0.number == number }) else { return "unknown" }
                guard known.parties[index].isImmediate else { return "\(number) was served without a slot" }
                known.parties[index].standing = .held
            }
            for number in machine.takeCalled() {
                guard let index = known.parties.firstIndex(where: { $0.number == number }) else { return "unknown" }
                known.parties[index].standing = .called
            }
            for key in 0..<3 where known.holders(of: key) > known.limits[key] { return "limit of \(key)" }
            for party in known.parties where !party.isImmediate && known.isDue(party) && party.standing != .called {
                return "\(party.number) was not called"
            }
            return nil
        }
        for step in 0..<120 {
            let isDraining = step >= 60
            var failure: String?
            let index = known.parties.indices.randomElement(using: &random)
            switch Int.random(in: isDraining ? 3...8 : 0...8, using: &random) {
            case 0...2:
                let keys = Set((0..<2).map { _ in Int.random(in: 0..<3, using: &random) }).sorted()
                let queue = random.chance(3, in: 4) ? Int.random(in: 0..<3, using: &random) : nil
                var party = Known.Party(number: step, keys: keys, queue: queue, isImmediate: queue == nil)
                if let queue {
                    machine.enqueue(step, for: demands(keys), in: ObjectIdentifier(sources[queue]))
                } else if machine.ask(step, for: demands(keys)) {
                    party.standing = .held
                }
                known.parties.append(party)
                failure = note([])
            case 3...5:
                guard let index, let queue = known.parties[index].queue, known.parties[index].standing == .called
                else { continue }
                // The party has a slot.
                let party = known.parties[index]
                let isHeld = machine.ask(
                    party.number, for: demands(party.keys), in: ObjectIdentifier(sources[queue]))
                if isHeld != known.isDue(party) { return "step \(step): asked with a slot, held: \(isHeld)" }
                known.parties[index].standing = isHeld ? .held : .waiting
                failure = note([])
            case 6:
                guard let index, known.parties[index].queue != nil, known.parties[index].standing == .waiting
                else { continue }
                // The party starts to wait with a slot, or gives the slot up.
                if known.parties[index].isImmediate {
                    let (isHeld, served) = machine.demote(known.parties[index].number)
                    if isHeld { return "step \(step): held without a word" }
                    known.parties[index].isImmediate = false
                    failure = note(served)
                } else {
                    known.parties[index].isImmediate = true
                    failure = note(machine.promote(known.parties[index].number))
                }
            default:
                guard let index, known.parties[index].standing == .held || random.chance(1, in: 6) else { continue }
                let party = known.parties.remove(at: index)
                failure = note(machine.leave(party.number))
            }
            if let failure { return "step \(step): \(failure)" }
        }
        return end(&machine, &known, sources)
    }

    /// Lets all parties end, with enough slots in each queue.
    private func end(
        _ machine: inout CategoryMachine<Int, Int>, _ known: inout Known, _ sources: [Source]
    ) -> String? {
        var left = known.parties.count * known.parties.count + 10
        while !known.parties.isEmpty {
            left -= 1
            if left < 0 { return "these wait forever: \(known.parties)" }
            guard let index = known.parties.firstIndex(where: { $0.standing != .waiting }) else {
                return "no party has a turn: \(known.parties)"
            }
            let party = known.parties[index]
            var served: [Int] = []
            if party.standing == .called, let queue = party.queue {
                let demands = party.keys.map { CategoryMachine<Int, Int>.Demand($0, limit: known.limits[$0]) }
                let isHeld = machine.ask(party.number, for: demands, in: ObjectIdentifier(sources[queue]))
                known.parties[index].standing = isHeld ? .held : .waiting
            } else {
                known.parties.remove(at: index)
                served = machine.leave(party.number)
            }
            for number in served {
                guard let index = known.parties.firstIndex(where: { $0.number == number }) else { return "unknown" }
                known.parties[index].standing = .held
            }
            for number in machine.takeCalled() {
                guard let index = known.parties.firstIndex(where: { $0.number == number }) else { return "unknown" }
                known.parties[index].standing = .called
            }
        }
        return machine.isEmpty ? nil : "something was left behind"
    }
}
