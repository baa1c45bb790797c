// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Observed operations that are canceled or suspended", .timeLimit(.minutes(5)))
struct ObservedCancellationTests {
    private static let kinds: [NetworkEvent.Kind] = [
        .operationBegan, .attemptBegan, .held, .wentOn, .sending, .hopBegan, .bodySent, .leftBehind, .responded,
        .hopEnded, .attemptEnded, .decided, .operationEnded,
    ]

    /// A request that waits for a credential, is redirected, fails once, and then succeeds.
    private func operation(_ tokens: TokenBench, _ log: EventLog) -> NetworkUploadOperation<String> {
        tokens.server.route("PUT", "/") { _ in .redirect(to: "/there", status: 307) }
        tokens.server.route("PUT", "/there") { $0.number < 2 ? .status(503) : .text("Hello") }
        let operation = tokens.bench.upload(method: "PUT", body: .data(Data("body".utf8)))
        operation.authenticate(by: tokens.authenticator(nil))
        operation.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero))
        operation.addNetworkObserver(log)
        return operation
    }

    @Test func `an observer may cancel the operation at each step, and everything ends once`() async throws {
        for kind in Self.kinds {
            let tokens = try TokenBench()
            let log = EventLog { if $0.kind == kind { $0.operation?.cancel() } }
            do {
                let operation = operation(tokens, log)
                operation.start()
                await log.ended()
                #expect((operation.outcome?.cancellationCause != nil) == (kind != .operationEnded), "\(kind)")
            }
            log.check()
            try await tokens.bench.checkNothingIsLeft()
        }
    }

    @Test func `an observer may suspend and resume the operation at each step`() async throws {
        for kind in Self.kinds {
            let tokens = try TokenBench()
            let log = EventLog { event in
                guard event.kind == kind, let operation = event.operation as? NetworkUploadOperation<String> else {
                    return
                }
                operation.suspend()
                operation.resume()
            }
            do { #expect(try await operation(tokens, log).run() == "Hello", "\(kind)") }
            await log.checkEnd()
            #expect(log.kinds.count { $0 == .suspended } == log.kinds.count { $0 == .resumed })
            // At the end, nothing is left to suspend.
            #expect(log.kinds.contains(.suspended) == (kind != .operationEnded), "\(kind)")
            try await tokens.bench.checkNothingIsLeft()
        }
    }

    @Test func `canceled from another thread at random moments, everything that began ends once`() async throws {
        let seed = Rounds.firstSeed
        var generator = SeededGenerator(seed: seed)
        let bench = try OperationBench()
        // Some operations that no other thread cancels are always canceled in their first attempt.
        let log = EventLog { event in
            if event.kind == .sending, event.operationName == "doomed" { event.operation?.cancel() }
        }
        bench.server.route("GET", "/*") { request in
            switch request.number % 4 {
            case 0: .redirect(to: "/x")
            case 1: .status(503)
            default: .text("Hello")
            }
        }
        let count = Rounds.count(ci: 200, soak: 5_000)
        var (doomed, spared) = (0, 0)
        do {
            let operations = (0..<count).map { number in
                let operation = bench.text("/\(number)")
                operation.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
                operation.addNetworkObserver(log)
                return operation
            }
            let spins = operations.map { _ in Int.random(in: 0..<40, using: &generator) }
            for (number, spin) in spins.enumerated() where spin % 3 == 0 {
                if number % 4 == 0 { operations[number].name = "doomed" }
                if number % 4 == 0 { doomed += 1 } else { spared += 1 }
            }
            let queue = QueueManager("storm", width: 8)
            for operation in operations { try queue.add(operation) }
            try await TestThread.run {
                for (operation, spin) in zip(operations, spins) {
                    for _ in 0..<spin { sched_yield() }
                    if spin % 3 != 0 { operation.cancel() }
                }
            }
            await queue.drained()
        }
        await log.ended(count)
        log.check()
        let ends = log.events.events.filter { $0.kind == .operationEnded }
        #expect(ends.count == count, "seed \(seed)")
        #expect(doomed > 0 && spared > 0, "seed \(seed)")
        #expect(log.events.events.count { $0.kind == .attemptEnded && $0.ending == .cancelled } >= doomed)
        // An operation with three 503 responses in a row fails.
        #expect(ends.contains { $0.ending == .success } && ends.count { $0.ending != .cancelled } >= spared)
        try await bench.checkNothingIsLeft()
    }
}
