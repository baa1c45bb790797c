// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Cancellation of network operations", .timeLimit(.minutes(3)))
struct OperationCancellationTests {
    private let log = HandlerLog()

    /// Checks the conditions that hold after every cancellation.
    func check(
        _ bench: OperationBench, _ log: HandlerLog, requests: ClosedRange<Int>, _ comment: Comment
    ) async throws {
        await log.ended.passage()
        try await bench.checkNothingIsLeft()
        await bench.settled()
        let ends = log.lines.events.filter { !$0.hasPrefix("delegate received") }
        #expect(ends == ["cancelled requested", "delegate cancelled"], comment)
        #expect(Array(log.lines.events.suffix(2)) == ends, comment)
        #expect(requests.contains(bench.server.counts.heads), comment)
        await bench.server.counts { $0.openConnections == $0.idleConnections }
        #expect(bench.server.violations == [], comment)
    }

    @Test func `canceled in a queue before its start, an operation sends nothing`() async throws {
        let bench = try OperationBench()
        do {
            let queue = OperationQueue()
            queue.isSuspended = true
            let operation = bench.text()
            log.watch(operation)
            queue.addOperation(operation)
            operation.cancel()
            queue.isSuspended = false
            await operation.ended()
        }
        try await check(bench, log, requests: 0...0, "queued")
    }

    @Test func `canceled within a step, an operation has one outcome and leaves no file and no object`() async throws {
        for step in Stepper.Step.allCases where step != .begins {
            let bench = try OperationBench { _ in .repeating([1, 2, 3], count: 300_000) }
            let log = HandlerLog()
            let folder = try TemporaryFolder()
            do {
                let operation = Stepper(bench, in: folder.url) { if $0 == step { $1.cancel() } }
                log.watch(operation)
                await operation.startAndEnd()
                #expect(operation.outcome?.cancellationCause == .requested)
            }
            let isEarly = [.prepare, .adapt, .create, .created].contains(step)
            try await check(bench, log, requests: isEarly ? 0...0 : 1...1, "\(step)")
            // The running evaluation ends and removes its file.
            #expect(try await folder.contentAtRest() == [], "\(step)")
        }
    }

    @Test
    func `canceled while its asynchronous hook waits, an operation cancels the hook and sends nothing`() async throws {
        let bench = try OperationBench()
        let (isWaiting, wasCancelled) = (Gate(), Gate())
        do {
            let operation = bench.watched(
                Hooked(bench) { request in
                    await wasCancelled.openedByCancellation(afterOpening: isWaiting)
                    return request
                })
            log.watch(operation)
            operation.start()
            await isWaiting.passage()
            operation.cancel()
            await operation.ended()
        }
        try await check(bench, log, requests: 0...0, "adapting")
    }

    @Test func `canceled before the response or within the body, an operation closes its connection`() async throws {
        for target in ["/silence", "/half"] {
            let bench = try OperationBench()
            bench.server.route("GET", "/silence") { _ in .silence }
            bench.server.route("GET", "/half") { _ in .stalling(after: "01234") }
            let log = HandlerLog()
            let half = Gate()
            do {
                let operation = bench.text(target)
                log.watch(operation, asDelegate: false)
                operation.downloadProgressHandler = { if $0.completedBytes == 5 { half.open() } }
                await bench.server.isReached(by: operation)
                if target == "/half" { await half.passage() }
                operation.delegate = log
                operation.cancel()
                #expect(operation.isFinished)
            }
            try await check(bench, log, requests: 1...1, "\(target)")
            await bench.server.counts { $0.openConnections == 0 }
        }
    }

    @Test func `an operation ends with its cancellation even if its class asks for a later end`() async throws {
        final class Careful: NetworkDataOperation<Data>, @unchecked Sendable {
            override var windsDownAfterCancellation: Bool { true }
        }
        let bench = try OperationBench { _ in .silence }
        let queue = QueueManager("careful", width: 1)
        let operation = bench.watched(Careful(url: bench.server.url("/"), urlSession: bench.session))
        let next = ClosureOperation { 1 }
        try queue.add([operation, next])
        _ = await bench.server.heads(atLeast: 1)
        operation.cancel()
        await operation.ended()
        #expect(try await next.value == 1)
    }

    @Test func `canceling the task before it is resumed also ends the operation`() async throws {
        let bench = try OperationBench()
        let operation = Hooked(
            bench,
            make: { request, session in
                let task = session.makeTask(with: request)
                task.cancel()
                return task
            })
        operation.start()
        #expect(await operation.finalOutcome.cancellationCause?.code == .networkTaskCancelled)
        #expect(bench.server.counts.heads == 0)
    }

    @Test(arguments: [true, false])
    func `a task may report its whole result before createTask returns`(succeeds: Bool) async throws {
        let error = succeeds ? nil : NetworkError(code: .cancelled, phase: .waiting, message: "Early.")
        // A well-behaved session does not report anything before `makeTask` returns.
        let session = ClosureSession { request, receiver in
            let task = ClosureTask()
            if succeeds {
                receiver.task(task, didReceive: ResponseHead(url: request.url, status: 200))
                Data("early".utf8).withUnsafeBytes { receiver.task(task, didReceive: $0) }
            }
            receiver.task(task, didEndWith: error)
            return task
        }
        let operation = NetworkDataOperation(
            request: URLRequest(url: try #require(URL(string: "http://localhost/"))), urlSession: session
        ) { data, _ in String(decoding: data, as: UTF8.self) }
        operation.start()
        let outcome = await operation.finalOutcome
        #expect(outcome.result == (succeeds ? "early" : nil))
        #expect(outcome.cancellationCause?.code == (succeeds ? nil : .networkTaskCancelled))
    }

    @Test func `finishing an operation explicitly cancels its transfer and ignores later events`() async throws {
        let bench = try OperationBench { _ in .silence }
        do {
            let operation = bench.text()
            await bench.server.isReached(by: operation)
            operation.finish(withResult: "by hand")
            #expect(try await operation.value == "by hand")
        }
        await bench.server.counts { $0.openConnections == 0 }
        try await bench.checkNothingIsLeft()
    }

    @Test(.timeLimit(.minutes(Rounds.minutes)))
    func `canceled at random moments, each operation has one outcome`() async throws {
        let bench = try OperationBench { _ in .repeating([1, 2, 3], count: 100_000) }
        let rounds = Rounds.count(ci: 500, soak: 20_000)
        let (ended, told) = (EventRecorder<String>(), EventRecorder<String>())
        try await TestThread.run {
            var generator = SeededGenerator(seed: Rounds.firstSeed)
            for number in 0..<rounds {
                let operation = bench.text()
                operation.observe { ended.record("\(number) \($0.cancellationCause == nil ? "success" : "cancelled")") }
                operation.successHandler = { _ in told.record("\(number) success") }
                operation.failureHandler = { told.record("\(number) \($0)") }
                operation.cancellationHandler = { _ in told.record("\(number) cancelled") }
                operation.start()
                // On a busy machine, each yield may take as long as all other threads have work.
                let end = ContinuousClock.now + .milliseconds(20)
                for _ in 0..<Int.random(in: 0..<200, using: &generator) where ContinuousClock.now < end {
                    sched_yield()
                }
                operation.cancel()
            }
        }
        let ends = Set(await ended.events(atLeast: rounds))
        try await bench.checkNothingIsLeft()
        await bench.settled()
        #expect(ended.count == rounds && ends.count == rounds)
        // A cancellation suppresses the handler of a success that was not called yet, and no other handler.
        #expect(Set(told.events).count == told.count && ends.isSuperset(of: told.events))
        #expect(ends.subtracting(told.events).allSatisfy { $0.hasSuffix("success") })
    }
}
