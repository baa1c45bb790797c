// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the timers, the monitor and the capacity of `OfflineWaiting`.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct OfflineWaitingTests {
    private let clock = ManualClock()
    private let network = ManualConnectivity(.unsatisfied)

    private func offlineWaiting(_ capacity: Int = 1_000_000, perSecond: Double = 10) -> OfflineWaiting {
        OfflineWaiting(
            monitor: network, capacity: capacity, perSecond: perSecond, settling: .seconds(1),
            clock: clock, chance: { 0.5 })
    }

    @Test func `the handler gets the reason and the time for which the network was gone`() {
        let offlineWaiting = offlineWaiting(), told = EventRecorder<(GateEnd, Duration)>()
        _ = offlineWaiting.enter(atMost: .seconds(30)) { told.record(($0, $1)) }
        _ = offlineWaiting.enter(atMost: .seconds(90)) { told.record(($0, $1)) }
        // The network comes and goes, and the timer is set to the rest of the limit each time.
        for number in 1...58 {
            clock.advance(by: .seconds(1))
            network.write(number % 2 == 1 ? .satisfied : .unsatisfied)
        }
        clock.advance(by: .milliseconds(999))
        #expect(told.count == 0)
        clock.advance(by: .milliseconds(1))
        #expect(told.events.map(\.0) == [.limitReached])
        clock.advance(by: .seconds(10))
        network.write(.satisfied)
        clock.advance(by: .seconds(10))
        #expect(told.events.map(\.0) == [.limitReached, .released])
        #expect(told.events.map(\.1) == [.seconds(30), .seconds(40)] && clock.pendingCount == 0)
    }

    @Test func `an operation that leaves gets no call, and a later one is released after the settling time`() {
        let offlineWaiting = offlineWaiting(), told = EventRecorder<GateEnd>()
        let ticket = offlineWaiting.enter(atMost: .seconds(30)) { end, _ in told.record(end) }
        for hasLeft in [true, false] { #expect(ticket.map { offlineWaiting.leave($0) } == hasLeft) }
        network.write(.unknown)
        #expect(clock.pendingCount == 0)
        _ = offlineWaiting.enter(atMost: .zero) { end, _ in told.record(end) }
        for (milliseconds, events) in [(1_499, [GateEnd]()), (1, [.released])] {
            clock.advance(by: .milliseconds(milliseconds))
            #expect(told.events == events)
        }
    }

    @Test func `a handler may enter again, and may remove other operations`() {
        let offlineWaiting = offlineWaiting(), told = EventRecorder<String>()
        let tickets = EventRecorder<UInt64>(), network = network
        _ = offlineWaiting.enter(atMost: nil) { _, _ in
            told.record("first")
            network.write(.unsatisfied)
            for ticket in tickets.events { offlineWaiting.leave(ticket) }
            _ = offlineWaiting.enter(atMost: nil) { _, _ in told.record("first again") }
        }
        if let ticket = offlineWaiting.enter(atMost: nil, { _, _ in told.record("second") }) { tickets.record(ticket) }
        network.write(.satisfied)
        clock.advance(by: .seconds(60))
        #expect(told.events == ["first"])
        network.write(.satisfied)
        clock.advance(by: .seconds(60))
        #expect(told.events == ["first", "first again"])
    }

    @Test func `the network is observed from the first entry until the list is released`() {
        do {
            let offlineWaiting = offlineWaiting()
            #expect(network.observerCount == 0)
            let ticket = offlineWaiting.enter(atMost: .seconds(1)) { _, _ in }
            #expect(network.observerCount == 1 && ticket != nil)
        }
        #expect(network.observerCount == 0 && clock.pendingCount == 0)
    }

    @Test func `many operations resume at the configured pace, and use less than a kibibyte each`() {
        let count = Rounds.count(ci: 10_000, soak: 100_000)
        let offlineWaiting = offlineWaiting(perSecond: 1_000), told = EventRecorder<OperationInstant>()
        let before = ProcessFigures.residentBytes, clock = clock
        for _ in 0..<count { _ = offlineWaiting.enter(atMost: .seconds(3_600)) { _, _ in told.record(clock.now) } }
        let bytes = ProcessFigures.residentBytes - before
        #if !TSAN && !ASAN
            // A sanitizer uses additional memory for each byte.
            #expect(bytes <= count * 1_024)
        #else
            _ = bytes
        #endif
        #expect(clock.pendingCount == 1)
        network.write(.satisfied)
        clock.advance(by: .milliseconds(1_500) + .seconds(Double(count) / 1_000))
        #expect(told.count == count)
        // Ten operations resume every 10 milliseconds.
        #expect(told.events.enumerated().allSatisfy { $1.offset == .milliseconds(1_500 + $0 / 10 * 10) })
        #expect(clock.pendingCount == 0 && offlineWaiting.waitingCount == 0)
    }

    @Test func `Race: under concurrent entries, departures and network changes, each entry ends once`() async throws {
        for round in 0..<Rounds.count(ci: 60, soak: 5_000) {
            let offlineWaiting = offlineWaiting(perSecond: 1e6), (clock, network) = (clock, network)
            network.write(.unsatisfied)
            let ended = EventRecorder<Int>(), left = EventRecorder<Int>()
            try await TestThread.run {
                ThreadTeam(count: 3).run([
                    {
                        for number in 0..<50 {
                            let ticket = offlineWaiting.enter(atMost: .milliseconds(5)) { _, _ in ended.record(number) }
                            if number % 3 == 0, let ticket, offlineWaiting.leave(ticket) { left.record(number) }
                        }
                    },
                    { for number in 0..<50 { network.write(number % 2 == 0 ? .satisfied : .unsatisfied) } },
                    { for _ in 0..<50 { clock.advance(by: .milliseconds(1)) } },
                ])
            }
            network.write(.satisfied)
            clock.advance(by: .seconds(60))
            #expect(Set(ended.events + left.events).count == 50, "round \(round)")
            #expect(ended.count + left.count == 50, "round \(round)")
            #expect(clock.pendingCount == 0 && offlineWaiting.waitingCount == 0, "round \(round)")
        }
    }
}
