// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

/// Who is told of the network, what, and in which order.
@Suite(.timeLimit(.minutes(1)))
struct ConnectivityBoardTests {
    private let monitor = ManualConnectivity(.unknown)

    @Test func `what is known comes first, and then each change`() {
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

    @Test func `a token that is let go of ends it, and a token keeps the monitor`() {
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

    @Test func `one that changes it while it is told is told of that afterwards, and not within`() {
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

    @Test func `one that cancels itself is told no more`() {
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

    @Test func `the sequence begins with the present state, and a slow reader gets the last`() async {
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

    @Test func `Race: whoever writes at the same time, the last call is about what is on the board`() async throws {
        let states: [Connectivity] = [.satisfied, .unsatisfied, .unknown]
        for _ in 0..<Rounds.count(ci: 200, soak: 20_000) {
            let monitor = ManualConnectivity(.unknown)
            let told = EventRecorder<Connectivity>()
            let inside = EventRecorder<Int>()
            let observation = monitor.observe { connectivity in
                inside.record(1)
                told.record(connectivity)
                #expect(inside.count == told.count, "two calls at once")
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

    @Test func `it says in a line what is known`() {
        var connectivity = Connectivity(
            .satisfied, interfaces: [.wifi, .tunnel], isExpensive: true, isConstrained: true)
        #expect(connectivity.description == "satisfied, via wifi, tunnel, expensive, constrained")
        connectivity = .unsatisfied
        connectivity.isCaptive = true
        #expect(connectivity.description == "unsatisfied, sign-in required")
    }
}
