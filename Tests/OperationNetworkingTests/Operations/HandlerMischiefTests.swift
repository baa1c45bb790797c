// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Misbehaving handlers of network operations", .timeLimit(.minutes(3)))
struct HandlerMischiefTests {
    @Test func `a handler that blocks delays its own queue, but no other operation`() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/*") { .text($0.path) }
        let (entered, passes) = (Gate(), Gate())
        let (slow, quick) = (bench.text("/slow"), bench.text("/quick"))
        slow.downloadProgressHandler = { _ in
            entered.open()
            passes.wait()
        }
        quick.callbackQueue = DispatchQueue(label: "quick")
        let told = Gate()
        quick.successHandler = { _ in told.open() }
        slow.start()
        await entered.passage()
        #expect(try await quick.run() == "/quick")
        await told.passage()
        // The outcome does not wait for a handler, either.
        #expect(try await slow.value == "/slow")
        passes.open()
        await slow.ended()
        await bench.settled()
    }

    @Test func `a handler may cancel its own operation, and start and enqueue others`() async throws {
        let bench = try OperationBench()
        let gate = Gate()
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("01234"), .stall(until: gate))
        }
        bench.server.route("GET", "/next") { _ in .text("next") }
        let (queue, begun) = (QueueManager("handlers", width: 1), EventRecorder<NetworkDataOperation<String>>())
        let operation = bench.text()
        operation.downloadProgressHandler = { [weak operation] _ in operation?.cancel() }
        operation.cancellationHandler = { _ in
            let (started, queued) = (bench.text("/next"), bench.text("/next"))
            started.start()
            try? queue.add(queued)
            begun.record(started)
            begun.record(queued)
        }
        operation.start()
        for next in await begun.events(atLeast: 2) { #expect(try await next.value == "next") }
        #expect(operation.isCancelled)
        gate.open()
    }

    @Test func `after two refused connections, an operation succeeds in its third attempt`() async throws {
        let session = StubSession()
        let count = Locked(0)
        session.route("GET", "/") { _ in
            let number = count.next()
            return number <= 2 ? .failure(.cannotConnect) : .text("Hello")
        }
        let url = try #require(URL(string: "http://stub.example/"))
        let operation = NetworkDataOperation<String>(url: url, urlSession: session)
        var retry = Retry.standard
        (retry.backoff, retry.budget) = (.constant(.zero), nil)
        operation.retry = retry
        #expect(try await operation.run() == "Hello")
        #expect(operation.attemptCount == 3)
    }
}
