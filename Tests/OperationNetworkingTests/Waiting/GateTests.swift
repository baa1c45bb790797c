// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the timer and the calls of a gate, and waits that end before they have begun.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GateTests {
    private typealias Gate = GateShell<GateMachine<@Sendable () -> Void>>

    private let clock = ManualClock()
    private let actions = EventRecorder<@Sendable () -> Void>()
    private let log = EventRecorder<String>()

    /// Creates a gate whose timers are recorded, and whose first timer may fire before it is stored.
    private func gate(isHasty: Bool = false) -> Gate {
        let (clock, actions) = (clock, actions)
        let recording = ClosureClock(
            over: clock,
            schedule: { due, action in
                let timer = clock.schedule(at: due, action)
                actions.record(action)
                if isHasty, actions.count == 1 { clock.advance(to: due) }
                return timer
            })
        let machine = GateMachine<Gate.Call>(pace: PostponementPace(1, every: .seconds(1)), now: clock.now)
        return GateShell(machine, clock: recording, nextDue: \.nextDue) { gate, now, _ in
            gate.timePassed(now: now).map(\.waiter)
        }
    }

    @Test func `a timer that fires before it is stored is not stored in place of the next timer`() {
        let gate = gate(isHasty: true)
        _ = gate.enter { [log] in log.record("released") }
        let second = gate.enter {}
        gate.apply { gate, now, _ in (gate.open(now: now), []) }
        #expect(log.events == ["released"] && clock.pendingCount == 1)
        gate.leave(second)
        #expect(clock.pendingCount == 0)
    }

    @Test func `a timer that fires although it was replaced does not replace the current timer`() {
        let gate = gate()
        let tickets = [10, 5, 20].map { limit in gate.enter(atMost: .seconds(limit)) {} }
        #expect(actions.count == 2 && clock.pendingCount == 1, "a timer moves only to an earlier time")
        // This timer was canceled while it was about to fire.
        actions.events.first?()
        #expect(clock.pendingCount == 1)
        for ticket in tickets { gate.leave(ticket) }
        #expect(clock.pendingCount == 0)
    }

    @Test func `Race: events on several threads lead to calls in the order of the events`() async throws {
        for round in 0..<Rounds.count(ci: 20, soak: 2_000) {
            let calls = EventRecorder<Int>()
            let shell = GateShell(0, clock: clock, nextDue: { _ in nil }, timePassed: { _, _, _ in [] })
            let work: @Sendable () -> Void = {
                for _ in 0..<100 {
                    shell.apply { number, _, _ in
                        number += 1
                        return ((), [{ [number] in calls.record(number) }])
                    }
                }
            }
            try await TestThread.run { ThreadTeam(count: 3).run([work, work, work]) }
            #expect(calls.events == Array(1...300), "round \(round)")
        }
    }

    @Test func `an operation that ends before its ticket is stored leaves the gate when the ticket is known`() {
        for endsEarly in [true, false] {
            let gate = gate(), wait = GateWait(), ticket = gate.enter {}
            if endsEarly { wait.end() }
            wait.begin(NotificationOrder(), leave: { gate.leave(ticket) }, held: {})
            #expect(gate.withLock { $0.count } == (endsEarly ? 0 : 1))
            wait.end()
            #expect(gate.withLock { $0.count } == 0)
        }
    }

    @Test func `an operation that is released before it is held is first held and then released`() {
        let wait = GateWait(), order = NotificationOrder()
        order.second { [log] in log.record("released") }
        #expect(log.events == [])
        wait.begin(order, leave: {}) { log.record("held") }
        #expect(log.events == ["held", "released"])
    }
}

extension GateShell<GateMachine<@Sendable () -> Void>> {
    fileprivate func enter(atMost limit: Duration? = nil, _ end: @escaping @Sendable () -> Void) -> UInt64? {
        apply { gate, now, _ in (gate.enter(end, atMost: limit, now: now), []) }
    }

    fileprivate func leave(_ ticket: UInt64?) {
        _ = apply { gate, _, _ in (ticket.flatMap { gate.leave($0) }, []) }
    }
}
