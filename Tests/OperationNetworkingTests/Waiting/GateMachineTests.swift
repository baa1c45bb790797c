// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the order, the pace and the limits of operations that wait at a gate, such as the gate of the network.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GateMachineTests {
    private let pace = PostponementPace.perSecond(10, settling: .seconds(1))

    private func second(_ number: Double) -> OperationInstant {
        OperationInstant(offset: .nanoseconds(Int64((number * 1e9).rounded())))
    }

    private func machine(_ capacity: Int = .max) -> GateMachine<Int> {
        GateMachine(pace: pace, capacity: capacity, now: second(0))
    }

    @Test func `operations are released in order and at the pace, after the network has settled`() {
        var machine = machine()
        for number in 1...3 { _ = machine.enter(number, atMost: nil, now: second(0), chance: 0) }
        #expect(machine.nextDue == nil)
        machine.open(now: second(10), chance: 0.5)
        #expect(machine.nextDue == second(11.5))
        #expect(machine.actions(now: second(11), chance: 0) == [])
        #expect(machine.actions(now: second(11.5), chance: 0.5) == [.release(1)])
        #expect(machine.nextDue == second(11.6))
        #expect(machine.actions(now: second(11.6), chance: 0) == [.release(2)])
        #expect(machine.nextDue == second(11.65))
        // This timer is late. The next operation is not released immediately because of that.
        #expect(machine.actions(now: second(20), chance: 0.5) == [.release(3)])
        #expect(machine.nextDue == nil && machine.count == 0)
    }

    @Test func `a network that is lost again while it settles releases no operation`() {
        var machine = machine()
        _ = machine.enter(1, atMost: nil, now: second(0), chance: 0)
        for number in 0..<1_000 {
            let now = Double(number)
            machine.open(now: second(now), chance: 0)
            #expect(machine.actions(now: second(now + 0.9), chance: 0) == [])
            machine.close(now: second(now + 0.9))
            #expect(machine.nextDue == nil)
        }
        machine.open(now: second(2_000), chance: 0)
        // A repeated report has no effect.
        machine.open(now: second(2_000.5), chance: 0)
        #expect(machine.actions(now: second(2_001), chance: 0) == [.release(1)])
    }

    @Test func `an operation that waited too long is given up, but not while the network is there`() {
        var machine = machine()
        _ = machine.enter(1, atMost: .seconds(5), now: second(0), chance: 0)
        _ = machine.enter(2, atMost: .seconds(3), now: second(0), chance: 0)
        _ = machine.enter(3, atMost: nil, now: second(0), chance: 0)
        #expect(machine.nextDue == second(3))
        #expect(machine.actions(now: second(3), chance: 0) == [.giveUp(2)])
        machine.open(now: second(4.5), chance: 0)
        #expect(machine.actions(now: second(5.4), chance: 0) == [])
        #expect(machine.actions(now: second(5.5), chance: 0) == [.release(1)])
        machine.close(now: second(5.5))
        #expect(machine.nextDue == nil && machine.count == 1)
        _ = machine.enter(4, atMost: .seconds(1), now: second(5.5))
        #expect(machine.takeAll() == [3, 4])
        _ = machine.enter(5, now: second(5.5))
        #expect(machine.nextDue == nil)
    }

    @Test func `the time with a network does not count toward the limit`() {
        var machine = machine()
        _ = machine.enter(1, atMost: .seconds(300), now: second(0), chance: 0)
        machine.open(now: second(10), chance: 0)
        _ = machine.enter(2, atMost: .seconds(100), now: second(50), chance: 0)
        // The network comes and goes while many operations wait for their turn.
        machine.close(now: second(400))
        #expect(machine.timeClosed(at: second(399)) == second(10), "a time before the change")
        #expect(machine.timeClosed(at: second(401)) == second(11))
        #expect(machine.actions(now: second(401), chance: 0) == [])
        #expect(machine.nextDue == second(500))
        #expect(machine.actions(now: second(500), chance: 0) == [.giveUp(2)])
        machine.open(now: second(510), chance: 0)
        machine.close(now: second(1_000))
        #expect(machine.nextDue == second(1_180))
        #expect(machine.actions(now: second(1_179.9), chance: 0) == [])
        #expect(machine.actions(now: second(1_180), chance: 0) == [.giveUp(1)])
    }

    @Test func `a gate that is closed until a time opens on time, and a later time replaces this one`() {
        var machine = GateMachine<Int>(pace: PostponementPace(2, every: .seconds(1)), now: second(0))
        machine.close(until: second(10), now: second(0))
        for number in 1...5 { _ = machine.enter(number, now: second(1)) }
        #expect(machine.nextDue == second(10) && machine.actions(now: second(9.9), chance: 0) == [])
        #expect(machine.actions(now: second(10), chance: 0) == [.release(1), .release(2)])
        machine.close(until: second(20), now: second(10.5))
        _ = machine.enter(6, now: second(10.5))
        #expect(machine.nextDue == second(20) && machine.actions(now: second(11), chance: 0) == [])
        #expect(machine.actions(now: second(20), chance: 0) == [.release(3), .release(4)])
        #expect(machine.actions(now: second(21), chance: 0) == [.release(5), .release(6)])
    }

    @Test(arguments: [-5, .nan, 1e300, -.infinity] as [Double])
    func `an invalid value of chance is limited to the valid range`(chance: Double) {
        var machine = machine()
        for number in 1...2 { _ = machine.enter(number, atMost: nil, now: second(0), chance: chance) }
        machine.open(now: second(0), chance: chance)
        #expect(machine.actions(now: second(0.9), chance: chance) == [])
        #expect(machine.actions(now: second(2), chance: chance) == [.release(1)])
        #expect(machine.actions(now: second(2.01), chance: chance) == [])
        #expect(machine.actions(now: second(2.2), chance: chance) == [.release(2)])
    }

    @Test func `an operation that leaves is removed together with its timer`() {
        var machine = machine(2)
        #expect(machine.enter(1, atMost: .seconds(9), now: second(0), chance: 0) == 1)
        #expect(machine.enter(2, atMost: .seconds(1), now: second(0), chance: 0) == 2)
        #expect(machine.enter(3, atMost: nil, now: second(0), chance: 0) == nil, "full")
        #expect(machine.leave(2) != nil)
        #expect(machine.leave(2) == nil)
        #expect(machine.nextDue == second(9))
        #expect(machine.enter(4, atMost: nil, now: second(0), chance: 0) == 3)
        #expect(machine.leave(1) != nil)
        #expect(machine.leave(3) != nil)
        #expect(machine.nextDue == nil && machine.count == 0)
        machine.open(now: second(1), chance: 0)
        #expect(machine.nextDue == nil)
        // An operation that enters after the network returned waits for the same settling time.
        #expect(machine.enter(5, atMost: nil, now: second(2), chance: 0) == 4)
        #expect(machine.nextDue == second(3))
    }

    @Test(arguments: [(20.0, 1), (99, 1), (1_000, 10), (1e9, 10_000), (0, 1), (-1, 1), (.nan, 1)])
    func `a fast pace releases several operations per timer`(perSecond: Double, batch: Int) {
        let pace = PostponementPace.perSecond(perSecond, settling: .milliseconds(500))
        var machine = GateMachine<Int>(pace: pace, isClosed: false, now: second(0))
        for number in 1...20_000 { _ = machine.enter(number, atMost: nil, now: second(0), chance: 0) }
        #expect(machine.actions(now: second(10), chance: 0.5).count == batch)
    }

    @Test func `in any order of events, operations end once, in order, at the pace and in time`() {
        for seed in 0..<UInt64(Rounds.count(ci: 1_000, soak: 100_000)) {
            var generator = SeededGenerator(seed: Rounds.firstSeed &+ seed)
            var run = WaitingRun(pace: pace, capacity: Int.random(in: 1...8, using: &generator))
            for _ in 0..<80 { run.step(&generator) }
            run.finish()
            #expect(run.problems == [], "seed \(seed)")
        }
    }
}

private enum Action: Equatable {
    case release(Int)
    case giveUp(Int)
}

extension GateMachine<Int> {
    fileprivate mutating func actions(now: OperationInstant, chance: Double) -> [Action] {
        timePassed(now: now, chance: chance).map { $0.end == .released ? .release($0.waiter) : .giveUp($0.waiter) }
    }
}

/// Runs a machine beside a slow and simple model of its behavior.
private struct WaitingRun {
    private struct Wait {
        let number: Int
        let ticket: UInt64
        /// The limit, on the clock that counts only the time without a network.
        let limit: Duration?
    }

    private let pace: PostponementPace
    private let capacity: Int
    private var machine: GateMachine<Int>
    private var lastNumber = 0
    private var waits: [Wait] = []
    private var now = OperationInstant(offset: .zero)
    private var isOffline = true
    /// The total time without a network.
    private var offline = Duration.zero
    private var opensAt: OperationInstant?
    private var returned: OperationInstant?
    private var lastRelease: OperationInstant?
    private(set) var problems: [String] = []

    init(pace: PostponementPace, capacity: Int) {
        (self.pace, self.capacity) = (pace, capacity)
        machine = GateMachine(pace: pace, capacity: capacity, now: now)
    }

    private mutating func check(_ isRight: Bool, _ text: @autoclosure () -> String) {
        if !isRight { problems.append("\(now): \(text())") }
    }

    mutating func step(_ generator: inout SeededGenerator) {
        let chance = Double.random(in: 0..<1, using: &generator)
        switch Int.random(in: 0..<10, using: &generator) {
        case 0...3:
            let wait = Duration.milliseconds(Int.random(in: 0...3_000, using: &generator))
            let limit = generator.chance(1, in: 3) ? nil : wait
            lastNumber += 1
            let ticket = machine.enter(lastNumber, atMost: limit, now: now, chance: chance)
            let count = waits.count
            check((ticket != nil) == (count < capacity), "place for \(count)")
            if let ticket { waits.append(Wait(number: lastNumber, ticket: ticket, limit: limit.map { offline + $0 })) }
        case 4:
            guard let wait = waits.randomElement(using: &generator) else { return }
            check(machine.leave(wait.ticket) == wait.number, "leaves")
            waits.removeAll { $0.ticket == wait.ticket }
        case 5:
            isOffline.toggle()
            let time = now.advanced(by: .milliseconds(Int.random(in: 1...5_000, using: &generator)))
            opensAt = isOffline && generator.chance(1, in: 3) ? time : nil
            if !isOffline { returned = now }
            if isOffline { machine.close(until: opensAt, now: now) } else { machine.open(now: now, chance: chance) }
        case 6: pass(.milliseconds(Int.random(in: 0...2_000, using: &generator)), chance)
        default: passToNext(chance)
        }
        check(machine.count == waits.count, "count")
    }

    private mutating func passToNext(_ chance: Double) {
        guard let due = machine.nextDue else { return }
        pass(max(now.duration(to: due), .zero), chance)
    }

    private mutating func pass(_ duration: Duration, _ chance: Double) {
        let before = now
        now = now.advanced(by: duration)
        if isOffline { offline += before.duration(to: opensAt.map { min($0, now) } ?? now) }
        if let time = opensAt, time <= now { (isOffline, returned, opensAt) = (false, now, nil) }
        for action in machine.actions(now: now, chance: chance) {
            switch action {
            case .release(let number):
                check(!isOffline && waits.first?.number == number, "released \(number)")
                check(returned.map { $0.duration(to: now) >= .seconds(1) } ?? false, "too soon after the return")
                check(lastRelease.map { $0.duration(to: now) >= .milliseconds(50) } ?? true, "too soon after the last")
                lastRelease = now
                waits.removeAll { $0.number == number }
            case .giveUp(let number):
                let wait = waits.first { $0.number == number }
                check(isOffline && wait?.limit.map { $0 <= offline } == true, "gave up \(number)")
                waits.removeAll { $0.number == number }
            }
        }
        if isOffline { check(waits.allSatisfy { $0.limit.map { $0 > offline } ?? true }, "one has waited too long") }
    }

    /// The network returns, and all operations resume.
    mutating func finish() {
        if isOffline {
            (isOffline, returned, opensAt) = (false, now, nil)
            machine.open(now: now, chance: 0.5)
        }
        for _ in 0..<10 { passToNext(0.5) }
        check(machine.count == 0 && machine.nextDue == nil, "somebody was forgotten")
    }
}
