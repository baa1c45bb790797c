// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the timer and the calls of a gate, and waits that end before they have begun.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct GateTests {
    private typealias Body = @Sendable (GateEnd) -> Void

    private let clock = ManualClock()

    private func gate(
        on clock: any OperationClock, _ pace: PostponementPace = PostponementPace(1, every: .seconds(1))
    ) -> GateShell<GateMachine<Body>> {
        GateShell(GateMachine(pace: pace, now: clock.now), clock: clock, nextDue: \.nextDue) { gate, now, _ in
            gate.timePassed(now: now).map { wait in { wait.waiter(wait.end) } }
        }
    }

    // The timer.

    @Test func `a timer that fires before it is stored is not stored in place of the next timer`() {
        let clock = clock, isFirst = Locked(true)
        let hasty = ClosureClock(
            over: clock,
            schedule: { due, action in
                let timer = clock.schedule(at: due, action)
                if isFirst.withLock({ exchange(&$0, with: false) }) { clock.advance(to: due) }
                return timer
            })
        let gate = gate(on: hasty), ends = EventRecorder<GateEnd>()
        _ = gate.enter { ends.record($0) }
        let second = gate.enter { ends.record($0) }
        gate.apply { gate, now, _ in (gate.open(now: now), []) }
        #expect(ends.events == [.released] && clock.pendingCount == 1)
        gate.leave(second)
        #expect(clock.pendingCount == 0)
    }

    @Test func `a timer that fires although it was replaced does not replace the current timer`() {
        let (clock, actions) = (clock, EventRecorder<@Sendable () -> Void>())
        let recording = ClosureClock(
            over: clock,
            schedule: { due, action in
                actions.record(action)
                return clock.schedule(at: due, action)
            })
        let gate = gate(on: recording)
        let tickets = [10, 5].map { limit in gate.enter(atMost: .seconds(limit)) { _ in } }
        #expect(actions.count == 2 && clock.pendingCount == 1)
        // This timer was canceled while it was about to fire.
        actions.events.first?()
        #expect(clock.pendingCount == 1)
        for ticket in tickets { gate.leave(ticket) }
        #expect(clock.pendingCount == 0)
    }

    @Test func `a gate has one timer, which moves only to an earlier time and is canceled with the last wait`() {
        let (clock, dues) = (clock, EventRecorder<OperationInstant>())
        let recording = ClosureClock(
            over: clock,
            schedule: { due, action in
                dues.record(due)
                return clock.schedule(at: due, action)
            })
        let gate = gate(on: recording), ends = EventRecorder<GateEnd>()
        let tickets = [10, 5, 20].map { limit in gate.enter(atMost: .seconds(limit)) { ends.record($0) } }
        #expect(dues.events.map(\.offset) == [.seconds(10), .seconds(5)] && clock.pendingCount == 1)
        gate.leave(tickets[1])
        #expect(dues.count == 2)
        clock.advance(by: .seconds(9))
        #expect(dues.count == 3 && ends.events == [])
        clock.advance(by: .seconds(1))
        #expect(ends.events == [.limitReached] && clock.pendingCount == 1)
        gate.leave(tickets[2])
        #expect(clock.pendingCount == 0)
    }

    // The calls.

    @Test func `calls of an event within a call follow this call`() {
        let gate = gate(on: clock), log = EventRecorder<String>()
        gate.apply { _, _, _ in
            let call: @Sendable () -> Void = {
                log.record("first begins")
                gate.apply { _, _, _ in ((), [{ log.record("second") }]) }
                log.record("first ends")
            }
            return ((), [call])
        }
        #expect(log.events == ["first begins", "first ends", "second"])
    }

    @Test func `Race: events on several threads lead to calls in the order of the events`() async throws {
        for round in 0..<Rounds.count(ci: 20, soak: 2_000) {
            let log = EventRecorder<Int>()
            let shell = GateShell(0, clock: clock, nextDue: { _ in nil }, timePassed: { _, _, _ in [] })
            try await TestThread.run {
                let work: @Sendable () -> Void = {
                    for _ in 0..<100 {
                        shell.apply { number, _, _ in
                            number += 1
                            return ((), [{ [number] in log.record(number) }])
                        }
                    }
                }
                ThreadTeam(count: 3).run([work, work, work])
            }
            #expect(log.events == Array(1...300), "round \(round)")
        }
    }

    // The wait of one operation.

    private final class Waiting: Sendable {
        let wait = GateWait()
        let log = EventRecorder<String>()

        func begin(_ order: NotificationOrder = NotificationOrder(), leave: @escaping @Sendable () -> Void = {}) {
            wait.begin(order, leave: leave) { log.record("held") }
        }
    }

    @Test func `an operation that ends before its ticket is stored leaves the gate when the ticket is known`() {
        let waiting = Waiting(), gate = gate(on: clock)
        let ticket = gate.enter { _ in }
        waiting.wait.end()
        waiting.begin { gate.leave(ticket) }
        #expect(gate.withLock { $0.count } == 0)
        let later = Waiting(), other = gate.enter { _ in }
        later.begin { gate.leave(other) }
        #expect(gate.withLock { $0.count } == 1)
        later.wait.end()
        #expect(gate.withLock { $0.count } == 0)
    }

    @Test func `an operation that is released before it is held is first held and then released`() {
        let waiting = Waiting(), order = NotificationOrder()
        order.second { waiting.log.record("released") }
        #expect(waiting.log.events == [])
        waiting.begin(order)
        #expect(waiting.log.events == ["held", "released"])
    }

    @Test func `Race: an operation that enters while it ends and the gate opens does not stay at the gate`() async throws {
        for round in 0..<Rounds.count(ci: 300, soak: 30_000) {
            let waiting = Waiting(), (clock, gate) = (clock, gate(on: clock))
            try await TestThread.run {
                ThreadTeam(count: 3).run([
                    {
                        let order = NotificationOrder()
                        let ticket = gate.enter { _ in order.second { waiting.log.record("released") } }
                        waiting.begin(order) { gate.leave(ticket) }
                    },
                    { waiting.wait.end() },
                    { if round % 2 == 0 { gate.apply { gate, now, _ in (gate.open(now: now), []) } } },
                ])
            }
            clock.advance(by: .seconds(round % 4 == 0 ? 1 : 0))
            #expect(gate.withLock { $0.count } == 0 && clock.pendingCount == 0, "round \(round)")
            #expect([["held"], ["held", "released"]].contains(waiting.log.events), "round \(round)")
        }
    }
}

extension GateShell<GateMachine<@Sendable (GateEnd) -> Void>> {
    fileprivate func enter(atMost limit: Duration? = nil, _ end: @escaping @Sendable (GateEnd) -> Void) -> UInt64? {
        apply { gate, now, _ in (gate.enter(end, atMost: limit, now: now), []) }
    }

    fileprivate func leave(_ ticket: UInt64?) {
        _ = apply { gate, _, _ in (ticket.flatMap { gate.leave($0) }, []) }
    }
}
