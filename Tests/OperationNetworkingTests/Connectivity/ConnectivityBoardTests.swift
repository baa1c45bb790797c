// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

/// Tests which observers get which states, and in which order.
@Suite(.timeLimit(.minutes(1)))
struct ConnectivityBoardTests {
    private let monitor = ManualConnectivity(.unknown)

    @Test func `an observer gets the current state first, and then each change`() {
        let told = EventRecorder<Connectivity.Status>()
        let observation = monitor.observe { told.record($0.status) }
        monitor.write(.unsatisfied)
        monitor.write(.unsatisfied)
        monitor.write(.satisfied)
        #expect(told.events == [.unknown, .unsatisfied, .satisfied])
        observation.cancel()
        monitor.write(.unsatisfied)
        #expect(told.count == 3)
        #expect(monitor.observerCount == 0)
    }

    @Test func `releasing an observation ends it, and an observation keeps the monitor alive`() {
        let told = EventRecorder<Connectivity.Status>()
        let census = LiveObjects()
        var observation: ConnectivityObservation?
        do {
            let own = census.track(ManualConnectivity(.satisfied))
            observation = own.observe { told.record($0.status) }
        }
        #expect(census.count == 1)
        withExtendedLifetime(observation) {}
        observation = nil
        #expect(census.count == 0)
        do {
            let observation = monitor.observe { told.record($0.status) }
            withExtendedLifetime(observation) {}
        }
        monitor.write(.satisfied)
        #expect(told.events == [.satisfied, .unknown])
    }

    @Test func `a change made in the handler is reported after the current call, not within it`() {
        let told = EventRecorder<Connectivity.Status>()
        let monitor = monitor
        let depth = EventRecorder<Int>()
        let observation = monitor.observe { connectivity in
            depth.record(1)
            told.record(connectivity.status)
            if connectivity.status == .unknown { monitor.write(.unsatisfied) }
            #expect(told.count == depth.count)
        }
        #expect(told.events == [.unknown, .unsatisfied])
        withExtendedLifetime(observation) {}
    }

    @Test func `an observer that cancels itself gets no more calls`() {
        let told = EventRecorder<Connectivity.Status>()
        let observations = EventRecorder<ConnectivityObservation>()
        observations.record(
            monitor.observe { connectivity in
                told.record(connectivity.status)
                for observation in observations.events { observation.cancel() }
            })
        monitor.write(.satisfied)
        monitor.write(.unsatisfied)
        #expect(told.events == [.unknown, .satisfied])
    }

    @Test func `the sequence begins with the current state, and a slow reader gets the latest state`() async {
        var iterator = monitor.updates.makeAsyncIterator()
        #expect(await iterator.next() == .unknown)
        monitor.write(.unsatisfied)
        monitor.write(.satisfied)
        #expect(await iterator.next() == .satisfied)
        let monitor = monitor
        let reader = Task { for await _ in monitor.updates {} }
        while monitor.observerCount < 2 { await Task.yield() }
        reader.cancel()
        await reader.value
        #expect(monitor.observerCount == 1)
    }

    @Test func `Race: after concurrent writes, the last call reports the current state`() async throws {
        let states: [Connectivity] = [.satisfied, .unsatisfied, .unknown]
        for _ in 0..<Rounds.count(ci: 200, soak: 20_000) {
            let monitor = ManualConnectivity(.unknown)
            let told = EventRecorder<Connectivity>()
            let inside = EventRecorder<Int>()
            let observation = monitor.observe { connectivity in
                inside.record(1)
                told.record(connectivity)
                #expect(inside.count == told.count, "two calls at the same time")
            }
            try await TestThread.run {
                ThreadTeam(count: 3).run(
                    (0..<3).map { member in { for round in 0..<10 { monitor.write(states[(member + round) % 3]) } } })
            }
            #expect(told.events.last == monitor.connectivity)
            #expect(zip(told.events, told.events.dropFirst()).allSatisfy { $0 != $1 })
            observation.cancel()
        }
    }

    @Test func `the description states the status and the properties in one line`() {
        var connectivity = Connectivity(
            .satisfied, interfaces: [.wifi, .tunnel], isExpensive: true, isConstrained: true)
        #expect(connectivity.description == "satisfied, via wifi, tunnel, expensive, constrained")
        connectivity = .unsatisfied
        connectivity.isCaptive = true
        #expect(connectivity.description == "unsatisfied, sign-in required")
    }
}
