// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

/// A task whose first `hold()` waits at a gate before it has an effect.
private final class SlowTask: IdleTask {
    let isHeld = Locked(false)
    let proceedings = Tally()
    let begins = Gate()
    let mayContinue = Gate()
    private let isFirst = Locked(true)

    func hold() {
        if isFirst.withLock({ exchange(&$0, with: false) }) {
            begins.open()
            mayContinue.wait()
        }
        isHeld.withLock { $0 = true }
    }

    func proceed() {
        proceedings.add()
        isHeld.withLock { $0 = false }
    }
}

/// A task that runs a closure before each call has an effect, to simulate other threads.
private final class LateTask: IdleTask {
    let pausedDirections = Locked((isHeld: false, isSuspended: true))
    let meanwhile = Locked<@Sendable () -> Void>({})

    private func call(_ effect: (inout (isHeld: Bool, isSuspended: Bool)) -> Void) {
        meanwhile.withLock { $0 }()
        pausedDirections.withLock { effect(&$0) }
    }

    func hold() { call { $0.isHeld = true } }
    func proceed() { call { $0.isHeld = false } }
    func resume() { call { $0.isSuspended = false } }
    func suspend() { call { $0.isSuspended = true } }
}

@Suite(.timeLimit(.minutes(1)))
struct BrakeRelayTests {
    @Test
    func `passing an order takes effect before it returns, even if another thread passes the same order`()
        async throws
    {
        let task = SlowTask()
        let relay = PauseOrderRelay(task)
        let order = PauseOrder(number: 2, isSuspended: false, isHeld: true)
        relay.pass(PauseOrder(number: 1, isSuspended: false, isHeld: false))
        async let other: Void = TestThread.run { relay.pass(order) }
        try await task.begins.passage(within: .seconds(30))
        let isHeld = try await TestThread.run {
            relay.pass(order)
            return task.isHeld.withLock { $0 }
        }
        #expect(isHeld)
        task.mayContinue.open()
        try await other
    }

    @Test func `only a held task receives a proceed call`()
        async throws
    {
        let task = SlowTask()
        task.mayContinue.open()
        let relay = PauseOrderRelay(task)
        try await TestThread.run {
            for (number, isSuspended) in [(1, false), (2, true), (3, false)] {
                relay.pass(PauseOrder(number: number, isSuspended: isSuspended, isHeld: false))
            }
            #expect(task.proceedings.count == 0)
            relay.pass(PauseOrder(number: 4, isSuspended: false, isHeld: true))
            relay.pass(PauseOrder(number: 5, isSuspended: false, isHeld: false))
            relay.pass(PauseOrder(number: 6, isSuspended: true, isHeld: false))
        }
        #expect(task.proceedings.count == 1 && !task.isHeld.withLock { $0 })
    }

    @Test func `a late hold is released if another thread has already passed the release`() async throws {
        let task = SlowTask()
        let relay = PauseOrderRelay(task)
        async let late: Void = TestThread.run { relay.pass(PauseOrder(number: 1, isSuspended: false, isHeld: true)) }
        try await task.begins.passage(within: .seconds(30))
        try await TestThread.run { relay.pass(PauseOrder(number: 2, isSuspended: false, isHeld: false)) }
        task.mayContinue.open()
        try await late
        #expect(!task.isHeld.withLock { $0 })
    }

    @Test func `an older order that arrives late does not replace a newer one`() async throws {
        let task = SlowTask()
        task.mayContinue.open()
        let relay = PauseOrderRelay(task)
        try await TestThread.run {
            relay.pass(PauseOrder(number: 2, isSuspended: false, isHeld: true))
            relay.pass(PauseOrder(number: 1, isSuspended: false, isHeld: false))
        }
        #expect(task.isHeld.withLock { $0 })
    }

    @Test func `the last order is in effect, in whatever sequence threads pass their orders`() throws {
        try Explorer.explore(rounds: 3_000) { explorer in
            let task = LateTask()
            let relay = PauseOrderRelay(task)
            let orders = (1...8).map { number in
                PauseOrder(
                    number: number, isSuspended: explorer.random.chance(1, in: 2),
                    isHeld: explorer.random.chance(1, in: 2))
            }
            let next = Locked(0), random = Locked(explorer.random)
            let pass: @Sendable () -> Bool = {
                guard
                    let order = next.withLock({ next -> PauseOrder? in
                        guard orders.indices.contains(next) else { return nil }
                        defer { next += 1 }
                        return orders[next]
                    })
                else { return false }
                relay.pass(order)
                return true
            }
            task.meanwhile.withLock { meanwhile in
                meanwhile = { while random.withLock({ $0.chance(1, in: 2) }), pass() {} }
            }
            explorer.add("orders") { _ in pass() }
            explorer.run()
            let pausedDirections = task.pausedDirections.withLock { $0 }
            try explorer.expect(
                pausedDirections.isHeld == orders[7].isHeld && pausedDirections.isSuspended == orders[7].isSuspended,
                "\(pausedDirections) after \(orders)")
        }
    }
}
