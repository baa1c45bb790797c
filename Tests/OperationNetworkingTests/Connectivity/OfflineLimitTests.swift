// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests how long and how often operations wait for the network, and how the wait ends early.
@Suite(.timeLimit(.minutes(1)))
struct OfflineLimitTests {
    private let bench: OfflineBench

    init() throws {
        bench = try OfflineBench()
    }

    @Test func `an operation waits no longer than longestWait in total`() async throws {
        bench.losesNetwork()
        let operation = bench.operation { $0.longestWait = .seconds(60) }
        operation.start()
        bench.clock.advance(by: .seconds(40))
        bench.comeBack()
        // The request was sent, and its connection was reset again.
        await bench.waits(operation)
        bench.clock.advance(by: .milliseconds(19_900))
        #expect(operation.outcome == nil)
        bench.clock.advance(by: .milliseconds(100))
        let error = await failure(of: operation)
        #expect(error?.code == .offlineTooLong)
        #expect((error?.cause as? NetworkError)?.code == .connectionLost)
        #expect(error?.attempts.count == 1)
        #expect(bench.clock.pendingCount == 0)
    }

    @Test func `if the limit is reached before the request was sent, the error says so`() async throws {
        let operation = bench.operation { $0.longestWait = .seconds(60) }
        operation.retry = Retry(budget: RetryBudget(clock: bench.clock))
        operation.start()
        bench.clock.advance(by: .seconds(60))
        let error = await failure(of: operation)
        #expect(error?.code == .offlineTooLong && error?.isUnsent == true && error?.cause == nil)
        #expect(error?.message.contains("longestWait") == true)
        #expect(bench.bench.server.counts.heads == 0)
    }

    @Test func `an operation waits no more often than mostWaits`() async throws {
        bench.losesNetwork()
        let operation = bench.operation { $0.mostWaits = 3 }
        operation.start()
        for _ in 0..<3 {
            await bench.waits(operation)
            bench.comeBack()
        }
        let error = await failure(of: operation)
        #expect(error?.code == .offlineTooOften)
        #expect((error?.cause as? NetworkError)?.code == .connectionLost)
        #expect(bench.bench.server.counts.heads == 3)
    }

    @Test func `a download that makes progress between outages may wait again`() async throws {
        let bench = try OfflineBench(), folder = try TemporaryFolder(), network = bench.network
        let resource = LoopbackResource(.pattern(count: 900_000), etag: "\"one\"")
        bench.bench.server.route("GET", "/file") { request in
            if request.number < 6 { network.write(.unsatisfied) }
            return request.number < 6
                ? resource.answer(to: request).cut(at: 100_000) : resource.answer(to: request)
        }
        network.write(.satisfied)
        let operation = bench.bench.watched(
            NetworkDownloadOperation<Int>(
                url: bench.bench.server.url("/file"), urlSession: bench.bench.session
            ) { file, _ in try Data(contentsOf: file).count })
        operation.destination = .file(folder.url.appendingPathComponent("file"))
        operation.clock = bench.clock
        operation.offline = bench.policy {
            $0.mostWaits = 2
            $0.longestWait = .seconds(60)
        }
        operation.start()
        for _ in 0..<6 {
            await bench.waits(operation)
            bench.clock.advance(by: .seconds(40))
            bench.comeBack()
        }
        #expect(try await operation.value == 900_000)
    }

    @Test func `no more operations wait than the capacity allows`() async throws {
        let bench = try OfflineBench(capacity: 2)
        let operations = (0..<3).map { _ in bench.operation() }
        for operation in operations { operation.start() }
        #expect(await failure(of: operations[2])?.code == .tooManyOffline)
        for operation in operations { operation.cancel() }
        #expect(bench.offlineWaiting.waitingCount == 0)
    }

    @Test func `with failFast, an operation fails immediately, and nothing is sent or repeated`() async throws {
        let operation = bench.operation { policy in
            policy = OfflinePolicy.failFast
            policy.waiting = bench.offlineWaiting
            policy.concerns = { _ in true }
        }
        operation.retry = .standard
        let error = await failure(of: operation)
        #expect(error?.code == .offline && error?.isUnsent == true)
        #expect(bench.bench.server.counts.heads == 0 && bench.clock.pendingCount == 0)
        #expect(error.map { ($0 as NSError).code } ?? 0 > 0)
    }

    // Cancellation, suspension and timeouts.

    @Test(arguments: [false, true])
    func `47: canceled while it waits for the network, an operation ends immediately`(afterFailure: Bool) async throws {
        let log = HandlerLog()
        do {
            let operation = bench.operation { if afterFailure { $0.beforeSending = .send } }
            log.watch(operation)
            operation.delegate = log
            if afterFailure { await bench.bench.server.stopped() }
            await bench.startsToWait(operation)
            operation.cancel()
            #expect(operation.outcome?.cancellationCause == .requested)
            #expect(bench.offlineWaiting.waitingCount == 0 && bench.clock.pendingCount == 0)
        }
        await log.ended.passage()
        await bench.bench.settled()
        #expect(log.lines.events == ["cancelled requested", "delegate cancelled"])
        bench.comeBack()
        try await bench.checkNothingIsLeft()
        #expect(bench.bench.server.counts.heads == 0)
    }

    @Test func `an operation that is suspended while it waits is not sent before it is resumed`() async throws {
        let operation = bench.operation()
        operation.start()
        #expect(operation.suspend())
        bench.comeBack()
        #expect(bench.offlineWaiting.waitingCount == 0 && bench.bench.server.counts.heads == 0)
        #expect(operation.resume())
        #expect(try await operation.value == "Hello 0")
    }

    @Test(arguments: [(false, .wait), (true, .wait), (true, .fail)] as [(Bool, OfflinePolicy.BeforeSending)])
    func `the time for which an operation is suspended does not count as waiting`(
        afterFailure: Bool, beforeSending: OfflinePolicy.BeforeSending
    ) async throws {
        if afterFailure {
            bench.network.write(.satisfied)
            bench.losesNetwork(then: "again")
        }
        let operation = bench.operation {
            $0.beforeSending = beforeSending
            $0.longestWait = .seconds(60)
            $0.mostWaits = 2
        }
        await bench.startsToWait(operation)
        #expect(operation.suspend())
        bench.clock.advance(by: .seconds(3_600))
        #expect(bench.offlineWaiting.waitingCount == 0 && operation.outcome == nil)
        #expect(operation.resume())
        await bench.waits(operation)
        bench.clock.advance(by: .seconds(59))
        bench.comeBack()
        #expect(try await operation.value == (afterFailure ? "again" : "Hello 0"))
    }

    @Test func `a policy that is set after the start has no effect`() async throws {
        let operation = bench.operation()
        await bench.startsToWait(operation)
        operation.offline = nil
        #expect(operation.offline != nil)
        operation.cancel()
        #expect(bench.offlineWaiting.waitingCount == 0)
    }

    @Test func `a timeout ends the wait for the network`() async throws {
        let operation = bench.operation()
        operation.timeout = .seconds(5)
        operation.start()
        bench.clock.advance(by: .seconds(5))
        #expect(operation.outcome?.cancellationCause?.code == .timedOut)
        #expect(bench.offlineWaiting.waitingCount == 0 && bench.clock.pendingCount == 0)
    }
}
