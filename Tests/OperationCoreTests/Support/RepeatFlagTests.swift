// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Threads that change a value and synchronize a copy of it, one step at a time.
private struct Model: Hashable {
    /// The step that a thread performs next.
    enum Place: Hashable {
        case idle
        /// The thread has the flag and is about to begin its first round.
        case starting
        /// The thread is about to read the value.
        case reading
        /// The thread has read this value and is about to write the copy.
        case writing(Int)
        /// The thread has written the copy and is about to end its round or check again.
        case looking(Int)
    }

    /// How the copy is synchronized.
    enum Way { case repeatFlag, latest, skipping }

    let way: Way
    var flag = RepeatFlag()
    var value = 0
    var copy = 0
    var places: [Place]
    var changes: [Int]
    /// Whether two threads wrote at the same time.
    var hasOverlap = false

    init(_ way: Way, threads: Int, changes: Int) {
        self.way = way
        places = Array(repeating: .idle, count: threads)
        self.changes = Array(repeating: changes, count: threads)
    }

    func canStep(_ thread: Int) -> Bool { places[thread] != .idle || changes[thread] > 0 }

    mutating func step(_ thread: Int) {
        switch places[thread] {
        case .idle: change(by: thread)
        case .starting:
            flag.startRound()
            places[thread] = .reading
        case .reading: places[thread] = .writing(value)
        case .writing(let seen):
            copy = seen
            places[thread] = .looking(seen)
        case .looking(let seen): look(by: thread, seen)
        }
        let writers = places.count { if case .writing = $0 { true } else { false } }
        if writers > 1 { hasOverlap = true }
    }

    private mutating func change(by thread: Int) {
        changes[thread] -= 1
        // For `latest`, the value returns to its previous state, so that an older value looks current.
        value = way == .latest ? 1 - value : value + 1
        switch way {
        case .latest: places[thread] = .reading
        case .repeatFlag: if flag.request() { places[thread] = .starting }
        case .skipping:
            // The mistake that the flag prevents: the thread relies on the thread that is already working.
            if !flag.isRunning {
                _ = flag.request()
                places[thread] = .reading
            }
        }
    }

    private mutating func look(by thread: Int, _ seen: Int) {
        switch way {
        case .latest: places[thread] = seen == value ? .idle : .reading
        case .repeatFlag: places[thread] = flag.finishRound() ? .reading : .idle
        case .skipping:
            flag.stop()
            places[thread] = .idle
        }
    }

    /// The error in the final state, or `nil` if there is none.
    var flaw: String? {
        if copy != value { return "The copy is \(copy), and the value is \(value)." }
        if flag.isRunning { return "The flag says that a thread is still working." }
        return nil
    }
}

@Suite("One thread notifies, then looks again", .timeLimit(.minutes(Rounds.minutes)))
struct RepeatFlagTests {
    /// Explores every order of the steps.
    ///
    /// Returns the number of states, the flaws in the final states, and whether two threads wrote at the same time.
    private func exhaust(_ first: Model) -> (states: Int, flaws: Set<String>, hasOverlap: Bool) {
        var known: Set = [first]
        var rest = [first]
        var flaws: Set<String> = []
        var hasOverlap = false
        while let model = rest.popLast() {
            if model.hasOverlap { hasOverlap = true }
            let threads = model.places.indices.filter { model.canStep($0) }
            if threads.isEmpty, let flaw = model.flaw { flaws.insert(flaw) }
            for thread in threads {
                var next = model
                next.step(thread)
                if known.insert(next).inserted { rest.append(next) }
            }
        }
        return (known.count, flaws, hasOverlap)
    }

    @Test func `a round covers requests made before it begins, but not later requests`() {
        var flag = RepeatFlag()
        var answers = [flag.request(), flag.request()]
        flag.startRound()
        answers += [flag.finishRound(), flag.request()]
        #expect(answers == [true, false, false, true])
        flag.startRound()
        answers = [flag.request(), flag.finishRound(), flag.finishRound()]
        #expect(answers == [false, true, false])
        #expect(!flag.isRunning)
    }

    @Test func `in every order of three threads, one thread works at a time and sees the last change`() {
        let (states, flaws, hasOverlap) = exhaust(Model(.repeatFlag, threads: 3, changes: 3))
        #expect(states > 100 && flaws.isEmpty && !hasOverlap, "\(states) \(flaws)")
    }

    @Test func `in every order of three threads, the last applied value is the current one`() {
        let (states, flaws, _) = exhaust(Model(.latest, threads: 3, changes: 2))
        #expect(states > 100 && flaws.isEmpty, "\(states) \(flaws)")
    }

    @Test func `the model detects the lost update that the flag prevents`() {
        let (_, flaws, _) = exhaust(Model(.skipping, threads: 2, changes: 1))
        #expect(flaws == ["The copy is 1, and the value is 2."])
    }

    @Test func `a flag accepts requests, finishes rounds and stops in each state`() {
        var flag = RepeatFlag()
        let first = [flag.request(), flag.request(), flag.request(), flag.finishRound(), flag.finishRound()]
        #expect(first == [true, false, false, true, false] && !flag.isRunning)
        let second = [flag.request(), flag.isRunning, flag.stop(), flag.isRunning]
        #expect(second == [true, true, false, false])
        let third = [flag.request(), flag.request(), flag.stop(), flag.isRunning, flag.finishRound()]
        #expect(third == [true, false, true, false, false])
    }

    /// Models calls that other threads interrupt: their steps are nested in the work.
    @Test func `requests made during the work are processed without recursion`() throws {
        let rounds = Rounds.count(ci: 5_000, soak: 100_000)
        try Explorer.explore(rounds: rounds, from: Rounds.firstSeed) { explorer in
            let flag = Locked(RepeatFlag())
            var (value, copy, depth, deepest) = (0, 0, 0, 0)
            var budget = 40
            var random = explorer.random
            func notify() {
                flag.runRounds(of: \.self) {
                    depth += 1
                    deepest = max(deepest, depth)
                    let seen = value
                    while budget > 0, random.chance(1, in: 2) {
                        budget -= 1
                        value += 1
                        notify()
                    }
                    copy = seen
                    depth -= 1
                }
            }
            for name in ["one", "two", "three"] {
                let steps = {
                    value += 1
                    notify()
                }
                explorer.add(name, steps, steps)
            }
            explorer.run { copy == value }
            try explorer.expect(copy == value && deepest == 1, "The copy is \(copy) of \(value), depth \(deepest).")
        }
        if Rounds.isSoak { print("soak: repeat flag: \(rounds) schedules") }
    }

    /// Runs the steps of the model in random orders, with too many threads to explore every order.
    @Test func `five threads lose no change in random orders of their steps`() throws {
        let rounds = Rounds.count(ci: 2_000, soak: 100_000)
        for way in [Model.Way.repeatFlag, .latest] {
            try Explorer.explore(rounds: rounds, from: Rounds.firstSeed) { explorer in
                var model = Model(way, threads: 5, changes: 4)
                for thread in 0..<5 {
                    explorer.add("thread \(thread)") { _ in
                        guard model.canStep(thread) else { return false }
                        model.step(thread)
                        return true
                    }
                }
                explorer.run()
                try explorer.expect(model.flaw == nil, model.flaw ?? "")
                try explorer.expect(way == .latest || !model.hasOverlap, "Two threads worked at the same time.")
            }
        }
        if Rounds.isSoak { print("soak: repeat flag model: 2 × \(rounds) schedules of 5 threads") }
    }

    @Test func `threads that change and notify at the same time lose no change`() async throws {
        let rounds = Rounds.count(ci: 2_000, soak: 100_000)
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 3)
            for _ in 0..<rounds {
                let value = Locked(0), copy = Locked(0), other = Locked(0)
                let workers = Locked(0), flag = Locked(RepeatFlag())
                team.run(
                    (0..<3).map { _ in
                        {
                            value.withLock { $0 += 1 }
                            flag.runRounds(of: \.self) {
                                workers.withLock { $0 += 1 }
                                let seen = value.withLock { $0 }
                                copy.withLock { $0 = seen }
                            }
                            applyLatest({ value.withLock { $0 } }, { seen in other.withLock { $0 = seen } })
                        }
                    })
                let all = (copy.withLock { $0 }, other.withLock { $0 })
                if all != (3, 3) || workers.withLock({ $0 }) > 3 { failures += 1 }
            }
        }
    }
}

@Suite("The delivery queue")
struct DeliveryQueueTests {
    @Test func `elements are delivered in order by one thread`() {
        var queue = DeliveryQueue<Int>()
        #expect(queue.append(1) && !queue.append(2) && !queue.begin() && queue.isDelivering)
        #expect(queue.next() == 1 && !queue.append(3))
        #expect(queue.next() == 2 && queue.next() == 3 && queue.next() == nil)
        #expect(!queue.isDelivering && queue.begin() && queue.next() == nil)
    }

    @Test func `removed elements are not delivered, and the same thread continues to deliver`() {
        var queue = DeliveryQueue<Int>()
        #expect(queue.append(1) && !queue.append(2))
        #expect(queue.removeAll().count == 2)
        #expect(!queue.append(3) && queue.next() == 3 && queue.next() == nil)
    }
}
