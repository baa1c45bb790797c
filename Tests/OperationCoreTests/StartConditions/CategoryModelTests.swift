// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// A direct implementation of the rule that checks all waiters after each event.
private struct SlowModel {
    struct Request {
        let party: Int
        let keys: Set<Int>
        var isHeld = false
    }

    var requests: [Request] = []
    let limits: [Int]

    func holders(_ key: Int) -> [Int] { requests.filter { $0.isHeld && $0.keys.contains(key) }.map(\.party) }
    func waiting(_ key: Int) -> [Int] { requests.filter { !$0.isHeld && $0.keys.contains(key) }.map(\.party) }

    /// Serves all waiters that can be served, and returns them.
    mutating func serve() -> Set<Int> {
        var served: Set<Int> = []
        while let index = requests.indices.first(where: { mayHold($0) }) {
            requests[index].isHeld = true
            served.insert(requests[index].party)
        }
        return served
    }

    private func mayHold(_ index: Int) -> Bool {
        let request = requests[index]
        guard !request.isHeld else { return false }
        return request.keys.allSatisfy { holders($0).count < limits[$0] && waiting($0).first == request.party }
    }
}

@Suite("Categories against a slow model", .timeLimit(.minutes(Rounds.minutes)))
struct CategoryModelTests {
    @Test func `in random schedules, permits are conserved, limits hold and waiters are served in order`() {
        let schedules = Rounds.count(ci: 300, soak: 25_000)
        var steps = 0
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(schedules) {
            guard let failure = schedule(seed: seed) else {
                steps += 40
                continue
            }
            Issue.record("seed \(seed): \(failure)")
            return
        }
        if Rounds.isSoak { print("soak: categories against the model: \(steps) steps") }
    }

    private typealias Demand = CategoryMachine<String, Int>.Demand

    @Test func `repeated requests, a second leave and an empty request are handled`() {
        var machine = CategoryMachine<String, Int>()
        let first = [1, 1, 2, 2].map { machine.ask($0, for: [Demand("a", limit: 1)]) }
        #expect(first == [true, true, false, false])
        let left = [machine.leave(1), machine.leave(1)]
        #expect(left == [[2], []])
        let (isEmptyHeld, afterwards) = (machine.ask(9, for: []), machine.leave(9))
        #expect(isEmptyHeld && afterwards == [])
        let belowOne = [3, 4].map { machine.ask($0, for: [Demand("z", limit: -5)]) }
        #expect(belowOne == [true, false])
    }

    @Test func `100,000 waiters in one line are served in order`() {
        var machine = CategoryMachine<String, Int>()
        for party in 0...100_000 { _ = machine.ask(party, for: [Demand("a", limit: 1)]) }
        // Removes from the middle, in the worst order for an array.
        let removed = (50_001...100_000).flatMap { machine.leave($0) }
        let served = (0...50_000).flatMap { machine.leave($0) }
        #expect(removed == [] && served == Array(1...50_000) && machine.isEmpty)
    }

    private func schedule(seed: UInt64) -> String? {
        var random = SeededGenerator(seed: seed)
        let limits = (0..<5).map { _ in Int.random(in: 1...3, using: &random) }
        var machine = CategoryMachine<Int, Int>()
        var model = SlowModel(limits: limits)
        for step in 0..<40 {
            if model.requests.isEmpty || random.chance(3, in: 5) {
                let keys = Set(
                    (0..<Int.random(in: 1...3, using: &random)).map { _ in Int.random(in: 0..<5, using: &random) })
                let isHeld = machine.ask(step, for: keys.map { .init($0, limit: limits[$0]) })
                model.requests.append(.init(party: step, keys: keys))
                if model.serve() != (isHeld ? [step] : []) { return "step \(step): asked, held: \(isHeld)" }
            } else {
                // A holder ends or a waiter is canceled.
                let index = Int.random(in: 0..<model.requests.count, using: &random)
                let party = model.requests.remove(at: index).party
                let served = machine.leave(party)
                let expected = model.serve()
                if Set(served) != expected || served.count != expected.count {
                    return "step \(step): \(party) left, served \(served), expected \(expected)"
                }
            }
            for key in 0..<5 {
                let line = model.waiting(key)
                if machine.waiting(for: key) != line || machine.waitingCount(for: key) != line.count {
                    return "step \(step): line of \(key)"
                }
                if Set(machine.holders(of: key)) != Set(model.holders(key)) { return "step \(step): holders of \(key)" }
                if machine.holders(of: key).count > limits[key] { return "step \(step): limit of \(key)" }
            }
        }
        for request in model.requests { _ = machine.leave(request.party) }
        return machine.isEmpty ? nil : "something was left behind"
    }
}
