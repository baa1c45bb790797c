// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the handlers for operations that wait because the network is gone.
@Suite("Handlers for a lost network", .timeLimit(.minutes(1)))
struct OfflineHandlerTests {
    private func listening(
        _ bench: OfflineBench, _ lines: EventRecorder<String>, _ change: (inout OfflinePolicy) -> Void = { _ in }
    ) -> NetworkUploadOperation<String> {
        let operation = bench.operation("GET", change)
        operation.offlineHandler = { [weak operation] in
            lines.record("waits: \(operation?.waitReason?.description ?? "no")")
        }
        operation.successHandler = { lines.record($0) }
        return operation
    }

    @Test
    func `the handler is called once per outage, before the result, and not while there is a network`() async throws {
        let bench = try OfflineBench(), lines = EventRecorder<String>()
        bench.losesNetwork(then: "here again")
        let operation = listening(bench, lines)
        operation.start()
        for round in 0..<2 {
            await bench.waits(operation)
            await until { lines.count == round + 1 }
            bench.comeBack()
            await until { bench.offlineWaiting.waitingCount == 1 || operation.outcome != nil }
        }
        #expect(try await operation.value == "here again")
        await operation.ended()
        await bench.bench.settled()
        #expect(
            lines.events == ["waits: waiting for the network", "waits: waiting for the network", "here again"])
        let other = listening(bench, lines)
        #expect(try await other.run() == "here again")
        await other.ended()
        await bench.bench.settled()
        #expect(lines.events.suffix(1) == ["here again"] && lines.count == 4)
    }

    @Test func `the handler is not called again if the operation is suspended during the wait`() async throws {
        let bench = try OfflineBench(), lines = EventRecorder<String>()
        let operation = listening(bench, lines) { $0.longestWait = .seconds(60) }
        await bench.startsToWait(operation)
        await until { lines.count == 1 }
        #expect(operation.suspend())
        bench.clock.advance(by: .seconds(3_600))
        #expect(operation.resume())
        await bench.waits(operation)
        bench.comeBack()
        #expect(try await operation.value == "Hello 0")
        await operation.ended()
        await bench.bench.settled()
        #expect(lines.events == ["waits: waiting for the network", "Hello 0"])
    }

    @Test func `the handler is not called after the end, and the delegate is notified as well`() async throws {
        let bench = try OfflineBench(), lines = EventRecorder<String>(), delegate = WaitLog()
        do {
            let operation = listening(bench, lines), other = bench.operation()
            other.delegate = delegate
            bench.bench.callbacks.suspend()
            await bench.startsToWait(operation)
            operation.cancel()
            await bench.startsToWait(other)
            bench.bench.callbacks.resume()
            await until { delegate.count.value == 1 }
            await bench.bench.settled()
            #expect(lines.events == [])
            #expect(delegate.count.value == 1)
            #expect(operation.offlineHandler == nil)
            other.cancel()
            await other.ended()
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `all operations of a base get its offline policy and handler`() async throws {
        let bench = try OfflineBench(), lines = EventRecorder<String>()
        var base = NetworkBase(bench.bench.server.url("/"))
        base.session = bench.bench.session
        base.callbackQueue = bench.bench.callbacks
        base.offline = bench.policy { $0.mostWaits = 7 }
        base.offlineHandler = { lines.record("waits") }
        let operation: EndpointOperation<NoContent> = base.get("")
        #expect(operation.offline?.mostWaits == 7)
        await bench.startsToWait(operation)
        await until { lines.count == 1 }
        #expect(lines.events == ["waits"])
        operation.cancel()
        await operation.ended()
    }

    @Test func `a queue reports each start and end of an outage once, until the hold is canceled`() async throws {
        let network = ManualConnectivity(.satisfied), clock = ManualClock(), lines = EventRecorder<Bool>()
        let callbacks = DispatchQueue(label: "OfflineHandlerTests")
        let queue = QueueManager("uploads", width: 2)
        let hold = queue.hold(
            whileOffline: network, settling: .seconds(1), clock: clock, callbackQueue: callbacks,
            offlineHandler: { lines.record($0) }, chance: { 0.5 })
        func settled() async { await withCheckedContinuation { done in callbacks.async { done.resume() } } }
        await settled()
        #expect(lines.events == [])
        network.write(.unsatisfied)
        network.write(Connectivity(.unsatisfied, interfaces: [.wired]))
        network.write(.satisfied)
        clock.advance(by: .milliseconds(500))
        network.write(.unsatisfied)
        await settled()
        #expect(lines.events == [true], "the network had not settled")
        network.write(.satisfied)
        clock.advance(by: .milliseconds(1_500))
        await settled()
        #expect(lines.events == [true, false] && !queue.isSuspended)
        network.write(.unsatisfied)
        await settled()
        hold.cancel()
        network.write(.satisfied)
        clock.advance(by: .seconds(10))
        await settled()
        #expect(lines.events == [true, false, true])
    }
}

private final class WaitLog: NetworkOperationDelegate {
    let count = Shared(0)

    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation) { count.value += 1 }
}
