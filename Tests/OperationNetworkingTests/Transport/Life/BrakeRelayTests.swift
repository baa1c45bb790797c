// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// A task whose first `hold()` stands at a gate before it does anything.
private final class SlowTask: NetworkTask {
    let isHeld = Locked(false)
    let proceedings = Tally()
    let begins = Gate()
    let mayGoOn = Gate()
    private let isFirst = Locked(true)

    func hold() {
        if isFirst.withLock({ exchange(&$0, with: false) }) {
            begins.open()
            mayGoOn.wait()
        }
        isHeld.withLock { $0 = true }
    }

    func proceed() {
        proceedings.add()
        isHeld.withLock { $0 = false }
    }
    func resume() {}
    func suspend() {}
    func cancel() {}
}

@Suite(.timeLimit(.minutes(1)))
struct BrakeRelayTests {
    @Test func `who passes on what another thread is about to do does it before it returns`() async throws {
        let task = SlowTask()
        let relay = BrakeRelay(task)
        let order = BrakeOrder(number: 2, isSuspended: false, isHeld: true)
        relay.pass(BrakeOrder(number: 1, isSuspended: false, isHeld: false))
        async let other: Void = TestThread.run { relay.pass(order) }
        try await task.begins.passage(within: .seconds(30))
        let isHeld = try await TestThread.run {
            relay.pass(order)
            return task.isHeld.withLock { $0 }
        }
        #expect(isHeld)
        task.mayGoOn.open()
        try await other
    }

    @Test func `only a task that was held is told to proceed, which could come behind the hold of another thread`()
        async throws
    {
        let task = SlowTask()
        task.mayGoOn.open()
        let relay = BrakeRelay(task)
        try await TestThread.run {
            for (number, isSuspended) in [(1, false), (2, true), (3, false)] {
                relay.pass(BrakeOrder(number: number, isSuspended: isSuspended, isHeld: false))
            }
            #expect(task.proceedings.count == 0)
            relay.pass(BrakeOrder(number: 4, isSuspended: false, isHeld: true))
            relay.pass(BrakeOrder(number: 5, isSuspended: false, isHeld: false))
            relay.pass(BrakeOrder(number: 6, isSuspended: true, isHeld: false))
        }
        #expect(task.proceedings.count == 1 && !task.isHeld.withLock { $0 })
    }

    @Test func `an older order that comes late leaves the newer one in force`() async throws {
        let task = SlowTask()
        task.mayGoOn.open()
        let relay = BrakeRelay(task)
        try await TestThread.run {
            relay.pass(BrakeOrder(number: 2, isSuspended: false, isHeld: true))
            relay.pass(BrakeOrder(number: 1, isSuspended: false, isHeld: false))
        }
        #expect(task.isHeld.withLock { $0 })
    }
}
