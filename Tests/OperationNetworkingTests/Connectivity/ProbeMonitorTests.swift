// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

/// Tests probes of a server that show whether the network is there.
@Suite(.timeLimit(.minutes(1)))
struct ProbeMonitorTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer()
    }

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

    /// Waits until the monitor reports such a state.
    private func wait(
        _ monitor: any ConnectivityMonitor, for isRight: @escaping (Connectivity) -> Bool
    ) async -> Connectivity? {
        await monitor.updates.first(where: isRight)
    }

    @Test func `the expected response means that there is a network, and the probe is repeated later`() async throws {
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

    @Test func `68: a sign-in page instead of the expected response means offline and captive`() async throws {
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

    @Test func `a missing or late response means that there is no network, and the pauses grow`() async throws {
        server.route("HEAD", "/probe") { $0.number == 0 ? .silence : .reset }
        let monitor = monitor(probe(server))
        _ = await server.heads(atLeast: 1)
        clock.advance(by: .seconds(10))
        // Three quarters of 1, 2 and 4 seconds.
        for (number, pause) in [750, 1_500, 3_000].enumerated() {
            while timeLeft != .milliseconds(pause) { await Task.yield() }
            #expect(monitor.connectivity == (number == 0 ? .unknown : .unsatisfied), "one probe may have been lost")
            clock.advance(by: .milliseconds(pause))
            _ = await server.heads(atLeast: number + 2)
        }
    }

    /// The time until the next timer.
    private var timeLeft: Duration? { clock.nextDue.map { clock.now.duration(to: $0) } }

    @Test func `asking during a probe cancels the old one, and the new one has its own time limit`() async throws {
        server.route("HEAD", "/probe") { _ in .silence }
        let monitor = monitor(probe(server))
        _ = await server.heads(atLeast: 1)
        monitor.askNow()
        #expect(timeLeft == .seconds(10), "the first probe was just sent, and keeps its limit")
        clock.advance(by: .seconds(5))
        monitor.askNow()
        _ = await server.heads(atLeast: 2)
        #expect(timeLeft == .seconds(10) && clock.pendingCount == 1)
        clock.advance(by: .seconds(10))
        #expect(timeLeft == .milliseconds(750))
        clock.advance(by: .milliseconds(750))
        _ = await server.heads(atLeast: 3)
        clock.advance(by: .seconds(10))
        #expect(monitor.connectivity == .unsatisfied)
    }

    @Test(
        arguments: [
            .resourcesExhausted, .sessionClosed, .untrustedCertificate, .secureConnectionFailed, .proxyFailed,
            .transferFailed, .cancelled, .invalidResponse,
        ] as [NetworkError.Code])
    func `failures with other causes say nothing about the network`(code: NetworkError.Code) async throws {
        let session = StubSession()
        session.route(nil, "/*") { _ in .failure(code) }
        let probe = with(NetworkProbe(try #require(URL(string: "http://example.com/probe")))) { $0.chance = { 0.5 } }
        let monitor = ProbeMonitor(probe, session: session, clock: clock)
        for _ in 0..<3 {
            while timeLeft != .seconds(63) { await Task.yield() }
            #expect(monitor.connectivity == .unknown)
            clock.advance(by: .seconds(63))
        }
    }

    @Test func `an error of the server says nothing about the network`() async throws {
        server.route("HEAD", "/probe") { _ in .status(500) }
        let told = EventRecorder<Connectivity>()
        let monitor = monitor(probe(server))
        let observation = monitor.observe { told.record($0) }
        _ = await server.heads(atLeast: 1)
        while timeLeft != .seconds(63) { await Task.yield() }
        #expect(told.events == [.unknown])
        observation.cancel()
    }

    @Test func `a released monitor sends no more probes`() async throws {
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

    @Test func `a probe is sent as soon as there is a path, and not before`() async throws {
        server.route("HEAD", "/probe") { _ in .status(204) }
        let path = ManualConnectivity(.unsatisfied)
        let both = CombinedConnectivity(path: path, probe: monitor(probe(server)))
        #expect(both.connectivity == .unsatisfied)
        path.write(Connectivity(.satisfied, interfaces: [.wifi]))
        // The first probe was sent when the monitor was created, one and a half seconds before.
        clock.advance(by: .milliseconds(1_500))
        #expect(await wait(both) { $0.status == .satisfied } == Connectivity(.satisfied, interfaces: [.wifi]))
        let asked = server.counts.heads
        // The timer is set after all observers were called.
        while clock.pendingCount == 0 { await Task.yield() }
        path.write(.unsatisfied)
        #expect(both.connectivity == .unsatisfied)
        while clock.pendingCount > 0 { await Task.yield() }
        clock.advance(by: .seconds(3_600))
        #expect(server.counts.heads == asked)
        path.write(Connectivity(.satisfied, interfaces: [.cellular]))
        _ = await server.heads(atLeast: asked + 1)
        #expect(await wait(both) { $0.status == .satisfied } == Connectivity(.satisfied, interfaces: [.cellular]))
    }

    @Test func `the result for one interface does not apply to the next interface`() async throws {
        server.route("HEAD", "/probe") { $0.number == 0 ? .status(511) : .status(204) }
        let path = ManualConnectivity(Connectivity(.satisfied, interfaces: [.wifi]))
        let probe = monitor(probe(server))
        let both = CombinedConnectivity(path: path, probe: probe)
        #expect(await wait(both) { $0.status != .unknown }?.isCaptive == true)
        while clock.pendingCount == 0 { await Task.yield() }
        path.write(Connectivity(.satisfied, interfaces: [.cellular]))
        #expect(both.connectivity == Connectivity(.unknown, interfaces: [.cellular]))
        clock.advance(by: .milliseconds(1_500))
        #expect(await wait(both) { $0.status != .unknown } == Connectivity(.satisfied, interfaces: [.cellular]))
    }

    @Test func `a path whose cost changes all the time is still found to be dead`() async throws {
        let session = StubSession()
        session.route(nil, "/*") { _ in .status(204).after(Gate()) }
        let probe = with(NetworkProbe(try #require(URL(string: "http://example.com/probe")))) { $0.chance = { 0.5 } }
        let path = ManualConnectivity(Connectivity(.satisfied, interfaces: [.wifi], isExpensive: false))
        let both = CombinedConnectivity(path: path, probe: ProbeMonitor(probe, session: session, clock: clock))
        for round in 0..<10 {
            path.write(Connectivity(.satisfied, interfaces: [.wifi], isExpensive: round % 2 == 0))
            clock.advance(by: .seconds(5))
        }
        #expect(both.connectivity.status == .unsatisfied)
        #expect(both.connectivity.isExpensive == false)
        // A different interface resets the state.
        path.write(Connectivity(.satisfied, interfaces: [.cellular]))
        #expect(both.connectivity == Connectivity(.unknown, interfaces: [.cellular]))
    }

    @Test func `a path that comes and goes causes a probe once in a while, and not each time`() async throws {
        server.route("HEAD", "/probe") { _ in .status(204) }
        let path = ManualConnectivity(.satisfied)
        let both = CombinedConnectivity(path: path, probe: monitor(probe(server)))
        #expect(await wait(both) { $0.status != .unknown } == .satisfied)
        while clock.pendingCount == 0 { await Task.yield() }
        for _ in 0..<1_000 {
            path.write(.unsatisfied)
            path.write(.satisfied)
        }
        #expect(timeLeft == .milliseconds(1_500))
        clock.advance(by: .milliseconds(1_500))
        #expect(await wait(both) { $0.status != .unknown } == .satisfied)
        #expect(server.counts.heads == 2)
    }
}
