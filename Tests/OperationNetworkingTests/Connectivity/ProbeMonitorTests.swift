// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// A server that is asked whether it can be reached.
@Suite(.timeLimit(.minutes(1)))
struct ProbeMonitorTests {
    private let clock = ManualClock()

    private func probe(_ server: LoopbackServer, _ change: (inout NetworkProbe) -> Void = { _ in }) -> NetworkProbe {
        var probe = NetworkProbe(server.url("/probe"))
        probe.chance = { 0.5 }
        change(&probe)
        return probe
    }

    private func monitor(_ probe: NetworkProbe) -> ProbeMonitor {
        ProbeMonitor(probe, session: SessionKind.allCases[0].makeSession().0, clock: clock)
    }

    /// Waits until the monitor says so.
    private func wait(
        _ monitor: any ConnectivityMonitor, for isRight: @escaping (Connectivity) -> Bool
    ) async -> Connectivity? {
        await monitor.updates.first(where: isRight)
    }

    @Test func `the right answer is a network, and it is asked again after a while`() async throws {
        let server = try LoopbackServer()
        server.route("HEAD", "/probe") { _ in .status(204) }
        let monitor = monitor(probe(server))
        #expect(await wait(monitor) { $0.status != .unknown } == .satisfied)
        while clock.pendingCount == 0 { await Task.yield() }
        clock.advance(by: .milliseconds(62_999))
        #expect(server.counts.heads == 1)
        clock.advance(by: .milliseconds(1))
        _ = await server.heads(atLeast: 2)
        withExtendedLifetime(monitor) {}
    }

    @Test func `68: somebody else's page is none, and one has to sign in`() async throws {
        for answer in [LoopbackAnswer.text("Sign in"), .redirect(to: "http://127.0.0.1:1/login"), .status(511)] {
            let server = try LoopbackServer()
            let isSignedIn = Locked(false)
            server.route("/probe") { _ in isSignedIn.withLock { $0 } ? .status(204) : answer }
            let monitor = monitor(probe(server) { $0.method = "GET" })
            let found = await wait(monitor) { $0.status != .unknown }
            #expect(found?.isOffline == true && found?.isCaptive == true)
            isSignedIn.withLock { $0 = true }
            monitor.askNow()
            #expect(await wait(monitor) { !$0.isOffline } == .satisfied)
        }
    }

    @Test func `no answer, or none in time, is no network, and pauses grow`() async throws {
        let server = try LoopbackServer()
        server.route("HEAD", "/probe") { $0.number == 0 ? .silence : .reset }
        let monitor = monitor(probe(server))
        _ = await server.heads(atLeast: 1)
        while clock.pendingCount == 0 { await Task.yield() }
        clock.advance(by: .seconds(10))
        #expect(await wait(monitor) { $0.status != .unknown } == .unsatisfied)
        // Of 1, 2 and 4 seconds three quarters.
        for (number, pause) in [750, 1_500, 3_000].enumerated() {
            while clock.nextDue.map({ clock.now.duration(to: $0) }) != .milliseconds(pause) { await Task.yield() }
            clock.advance(by: .milliseconds(pause))
            _ = await server.heads(atLeast: number + 2)
        }
    }

    @Test func `an error of the server says nothing about the network`() async throws {
        let server = try LoopbackServer()
        server.route("HEAD", "/probe") { _ in .status(500) }
        let told = EventRecorder<Connectivity>()
        let monitor = monitor(probe(server))
        let observation = monitor.observe { told.record($0) }
        _ = await server.heads(atLeast: 1)
        while clock.nextDue.map({ clock.now.duration(to: $0) }) != .seconds(63) { await Task.yield() }
        #expect(told.events == [.unknown])
        observation.cancel()
    }

    @Test func `when it is let go of it asks no more`() async throws {
        let server = try LoopbackServer()
        server.route("HEAD", "/probe") { _ in .status(204) }
        do {
            let monitor = monitor(probe(server))
            #expect(await wait(monitor) { $0.status != .unknown } == .satisfied)
            while clock.pendingCount == 0 { await Task.yield() }
        }
        while clock.pendingCount > 0 { await Task.yield() }
        clock.advance(by: .seconds(3_600))
        #expect(server.counts.heads == 1)
    }

    @Test func `with a way out of this machine: without one nothing is asked, and then at once`() async throws {
        let server = try LoopbackServer()
        server.route("HEAD", "/probe") { _ in .status(204) }
        let path = ManualConnectivity(.unsatisfied)
        let both = CombinedConnectivity(path: path, probe: monitor(probe(server)))
        #expect(both.connectivity == .unsatisfied)
        path.write(Connectivity(.satisfied, interfaces: [.wifi]))
        #expect(await wait(both) { $0.status == .satisfied } == Connectivity(.satisfied, interfaces: [.wifi]))
        let asked = server.counts.heads
        path.write(.unsatisfied)
        #expect(both.connectivity == .unsatisfied)
        while clock.pendingCount > 0 { await Task.yield() }
        clock.advance(by: .seconds(3_600))
        #expect(server.counts.heads == asked)
        path.write(Connectivity(.satisfied, interfaces: [.cellular]))
        _ = await server.heads(atLeast: asked + 1)
        #expect(await wait(both) { $0.status == .satisfied } == Connectivity(.satisfied, interfaces: [.cellular]))
    }
}
