// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Suspension and progress of network operations", .timeLimit(.minutes(3)))
struct OperationControlTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    @Test func `suspended within a body, an operation resumes where it stopped, with each byte once`() async throws {
        let gate = Gate()
        bench.server.route("GET", "/") { _ in .pattern(4_000_000, stallingAfter: 1_000_000, until: gate) }
        let operation = bench.watched(
            NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in data })
        let first = Gate()
        operation.downloadProgressHandler = { if $0.completedBytes >= 900_000 { first.open() } }
        operation.start()
        await first.passage()
        #expect(operation.suspend())
        #expect(operation.state == .suspended)
        gate.open()
        #expect(operation.resume())
        let data = try await operation.value
        #expect(data.count == 4_000_000)
        #expect(data.withUnsafeBytes { TestPattern.matches($0, from: 0) })
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `suspended just before its task starts, an operation sends nothing until it is resumed`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        bench.server.route("GET", "/other") { _ in .text("other") }
        let suspended = Locked<NetworkDataOperation<String>?>(nil)
        let moment = LateSession.Moment(
            before: { _ = suspended.withLock { $0 }?.suspend() },
            after: { for _ in 0..<3 { bench.session.waitForAnswer(from: bench.server.url("/other")) } })
        let session = LateSession(over: bench.session, takesOrders: true, moment)
        let operation = NetworkDataOperation<String>(url: bench.server.url("/"), urlSession: session)
        suspended.withLock { $0 = operation }
        try await TestThread.run { operation.start() }
        #expect(operation.state == .suspended)
        #expect(bench.server.requests.map(\.path) == ["/other", "/other", "/other"])
        #expect(operation.resume())
        #expect(try await operation.value == "Hello")
        suspended.withLock { $0 = nil }
    }

    @Test func `suspended during its preparation, an operation sends nothing until it is resumed`() async throws {
        final class Suspending: NetworkDataOperation<Int>, @unchecked Sendable {
            let prepared = Gate()

            override func prepareRequest(_ request: URLRequest) -> URLRequest {
                suspend()
                return request
            }

            override func adapt(_ request: NetworkRequest) async -> NetworkRequest {
                prepared.open()
                return request
            }
        }
        let bench = try OperationBench { _ in .text("Hello") }
        let operation = Suspending(url: bench.server.url("/"), urlSession: bench.session) { data, _ in data.count }
        operation.start()
        #expect(operation.state == .suspended)
        #expect(operation.networkTask == nil)
        #expect(bench.server.counts.heads == 0)
        operation.start()
        #expect(try await operation.value == 5)
    }

    @Test func `suspended during its evaluation, an operation has no outcome until it is resumed`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let (began, goOn, did) = (Gate(), Gate(), Gate())
        let operation = NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
            began.open()
            goOn.wait()
            return data.count
        }
        operation.addNetworkObserver(Watcher { if $0.kind == .attemptEnded { did.open() } })
        operation.start()
        await began.passage()
        #expect(operation.suspend())
        goOn.open()
        await did.passage()
        #expect(operation.outcome == nil)
        #expect(operation.resume())
        #expect(try await operation.value == 5)
    }

    @Test func `suspended between two attempts, an operation begins the next one when it is resumed`() async throws {
        let bench = try OperationBench { $0.number == 0 ? .status(503) : .text("Hello") }
        let clock = ManualClock()
        let operation = bench.text()
        operation.clock = clock
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2, pause: .seconds(10)) }
        let decided = Gate()
        operation.addNetworkObserver(Watcher { if $0.kind == .attemptEnded { decided.open() } })
        operation.start()
        await decided.passage()
        #expect(operation.suspend())
        try await TestThread.run { while operation.networkAttempts.isWaitingForTime == false { sched_yield() } }
        clock.advance(by: .seconds(20))
        #expect(bench.server.counts.heads == 1)
        #expect(operation.resume())
        #expect(try await operation.value == "Hello")
    }

    @Test func `a suspended operation can be canceled`() async throws {
        let bench = try OperationBench { _ in .silence }
        do {
            let operation = bench.text()
            await bench.server.isReached(by: operation)
            operation.suspend()
            operation.cancel()
            #expect(operation.isFinished)
        }
        await bench.server.counts { $0.openConnections == 0 }
        try await bench.checkNothingIsLeft()
    }

    @Test func `suspended and resumed at random, an operation receives each byte once`() async throws {
        let bench = try OperationBench { LoopbackResource(.pattern(count: 8 << 20)).answer(to: $0) }
        for seed in 0..<UInt64(Rounds.count(ci: 5, soak: 100)) {
            let operation = NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                data
            }
            operation.start()
            try await TestThread.run {
                var generator = SeededGenerator(seed: Rounds.firstSeed + seed)
                for _ in 0..<100 {
                    operation.suspend()
                    for _ in 0..<Int.random(in: 0..<20, using: &generator) { sched_yield() }
                    operation.resume()
                    for _ in 0..<Int.random(in: 0..<20, using: &generator) { sched_yield() }
                }
            }
            let data = try await operation.value
            #expect(data.count == 8 << 20 && data.withUnsafeBytes { TestPattern.matches($0, from: 0) }, "seed \(seed)")
        }
    }

    @Test
    func `progress grows to the total, is reported on the callback queue, and precedes the success`() async throws {
        bench.server.route("POST", "/") { _ in .repeating([1], count: 5 << 20) }
        let told = EventRecorder<(String, TransferProgress)>()
        let operation = bench.upload(body: .data(Data(repeating: 1, count: 3 << 20)))
        operation.uploadProgressHandler = {
            dispatchPrecondition(condition: .onQueue(bench.callbacks))
            told.record(("up", $0))
        }
        operation.downloadProgressHandler = { told.record(("down", $0)) }
        let end = Gate()
        operation.successHandler = { _ in
            told.record(("end", TransferProgress(completedBytes: 0, totalBytes: nil)))
            end.open()
        }
        let progress = operation.progress
        _ = try await operation.run()
        await end.passage()
        await bench.settled()
        let events = told.events
        #expect(events.last?.0 == "end")
        for (name, size) in [("up", Int64(3 << 20)), ("down", Int64(5 << 20))] {
            let counts = events.filter { $0.0 == name }.map(\.1.completedBytes)
            #expect(counts == counts.sorted())
            #expect((1...210).contains(counts.count))
            #expect(events.last { $0.0 == name }?.1 == TransferProgress(completedBytes: size, totalBytes: size))
        }
        #expect(progress.totalUnitCount == 3 << 20 + 1)
        #expect(progress.completedUnitCount == 3 << 20 + 1)
        #expect(progress.fractionCompleted == 1)
    }

    @Test func `Foundation's Progress never decreases, and finishes when the response is complete`() async throws {
        let answers: [LoopbackAnswer] = [
            .repeating([1], count: 4 << 20), .status(204), .chunks(["a", "b"]), .text(""),
        ]
        let bodies: [RequestBody] = [
            .none, .data(Data(count: 2 << 20)),
            .stream(canBeSentAgain: true) { PieceProducer(Array(repeating: 1, count: 200), size: 100) },
        ]
        bench.server.route("/*") { answers[Int($0.path.dropFirst()) ?? 0] }
        for answer in answers.indices {
            for body in bodies {
                let operation = bench.upload("/\(answer)", method: body.isNone ? "GET" : "POST", body: body)
                let progress = operation.progress
                let seen = EventRecorder<(fraction: Double, isComplete: Bool)>()
                operation.progressPacing = ProgressPacing(smallestStep: 1, interval: .zero)
                let look: @Sendable (TransferProgress) -> Void = { [weak operation] _ in
                    seen.record((progress.fractionCompleted, operation?.taskResult != nil))
                }
                operation.uploadProgressHandler = look
                operation.downloadProgressHandler = look
                _ = try await operation.run()
                await bench.settled()
                let fractions = seen.events.map(\.fraction)
                #expect(fractions == fractions.sorted(), "\(answer)")
                if !body.isNone { #expect(!seen.events.contains { $0.fraction >= 1 && !$0.isComplete }, "\(answer)") }
                #expect(progress.isFinished && progress.fractionCompleted == 1, "\(answer)")
            }
        }
    }

    @Test func `the response is available with its headers, and stays if the body breaks off`() async throws {
        let bench = try OperationBench { _ in .repeating([1], count: 1_000_000).cut(at: 500_000, by: .reset) }
        let operation = bench.text()
        let seen = EventRecorder<Int?>()
        operation.downloadProgressHandler = { [weak operation] _ in seen.record(operation?.response?.statusCode) }
        #expect(await failure(of: operation)?.code == .connectionLost)
        await bench.settled()
        #expect(!seen.events.isEmpty && seen.events.allSatisfy { $0 == 200 })
        #expect(operation.response?.statusCode == 200)
        #expect(operation.taskResult == nil)
    }

    @Test func `a body of unknown length is reported without a total until its end`() async throws {
        let bench = try OperationBench { _ in .chunks(["Hello ", "World"]) }
        let told = EventRecorder<TransferProgress>()
        let operation = bench.text()
        operation.progressPacing = ProgressPacing(smallestStep: 1)
        operation.downloadProgressHandler = { told.record($0) }
        let parent = Progress(totalUnitCount: 10)
        parent.addChild(operation.progress, withPendingUnitCount: 10)
        _ = try await operation.run()
        await bench.settled()
        #expect(told.events.last == TransferProgress(completedBytes: 11, totalBytes: 11))
        #expect(told.events.dropLast().allSatisfy { $0.totalBytes == nil && $0.fraction == nil })
        #expect(parent.fractionCompleted == 1)
    }

    @Test func `canceling the progress cancels the operation`() async throws {
        let bench = try OperationBench { _ in .silence }
        let operation = bench.text()
        let progress = operation.progress
        await bench.server.isReached(by: operation)
        progress.cancel()
        #expect(await operation.finalOutcome.cancellationCause == .requested)
    }

    @Test func `pausing the progress suspends the operation, and resuming the progress resumes it`() async throws {
        let gate = Gate()
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "5"]), .stall(until: gate), .send("Hello"))
        }
        let operation = bench.text()
        let progress = operation.progress
        await bench.server.isReached(by: operation)
        let states = operation.states
        progress.pause()
        for await state in states where state == .suspended { break }
        gate.open()
        progress.resume()
        #expect(try await operation.value == "Hello")
    }

    @Test
    func `if no time passes, a minimum interval allows only the first and the last progress report`() async throws {
        let (gate, first) = (Gate(), Gate())
        bench.server.route("GET", "/") { _ in .pattern(600_000, stallingAfter: 100_000, until: gate) }
        let operation = bench.text()
        operation.clock = ManualClock()
        operation.progressPacing = ProgressPacing(smallestStep: 1, interval: .seconds(1))
        let told = EventRecorder<TransferProgress>()
        operation.downloadProgressHandler = {
            told.record($0)
            first.open()
        }
        operation.start()
        await first.passage()
        gate.open()
        _ = try await operation.value
        await bench.settled()
        #expect(told.events.count == 2)
        #expect(told.events.last == TransferProgress(completedBytes: 600_000, totalBytes: 600_000))
    }

    @Test
    func `between two progress reports, the callback queue runs other work, even with a slow handler`() async throws {
        let (more, rest) = (Gate(), Gate())
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "700000"]), .send(TestPattern.bytes(count: 100_000)),
                .stall(until: more), .send(TestPattern.bytes(from: 100_000, count: 500_000)),
                .stall(until: rest), .send(TestPattern.bytes(from: 600_000, count: 100_000)))
        }
        let operation = bench.text()
        let lines = EventRecorder<String>()
        operation.progressPacing = ProgressPacing(smallestStep: 100_000)
        operation.downloadProgressHandler = { [weak operation] _ in
            lines.record("report")
            guard !more.isOpen else { return }
            more.open()
            // The next report is due long before this call returns.
            while let operation, operation.downloadProgress.completedBytes < 600_000 { sched_yield() }
            bench.callbacks.async {
                lines.record("other")
                rest.open()
            }
        }
        operation.successHandler = { _ in lines.record("success") }
        _ = try await operation.run()
        await operation.ended()
        await bench.settled()
        #expect(lines.events.prefix(3) == ["report", "other", "report"], "\(lines.events)")
        #expect(lines.events.last == "success")
    }

    @Test
    func `the delegate and closures get the operation with its progress, success and cancellation`() async throws {
        final class Sent: NetworkOperationDelegate {
            let told = EventRecorder<(ObjectIdentifier, TransferProgress)>()

            func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress) {
                told.record((ObjectIdentifier(operation), progress))
            }
        }
        bench.server.route("POST", "/") { _ in .text("Hello") }
        bench.server.route("GET", "/") { _ in .silence }
        let delegate = Sent()
        let lines = EventRecorder<String>()
        do {
            let operation = bench.upload(body: .data(Data(count: 1 << 20)))
            let id = ObjectIdentifier(operation)
            operation.delegate = delegate
            operation.onUploadProgress { operation, progress in
                if progress.fraction == 1 { lines.record("up \(ObjectIdentifier(operation) == id)") }
            }
            operation.onDownloadProgress { operation, progress in
                lines.record("down \(operation.response?.statusCode ?? 0) \(progress.completedBytes)")
            }
            operation.onSuccess { operation, text in lines.record("success \(operation.attemptCount) \(text)") }
            operation.onCancellation { _, _ in lines.record("wrong") }
            #expect(try await operation.run() == "Hello")
            await operation.ended()
            await bench.settled()
            #expect(delegate.told.events.last?.0 == id)
            #expect(delegate.told.events.last?.1 == TransferProgress(completedBytes: 1 << 20, totalBytes: 1 << 20))
            let silent = bench.text()
            silent.onSuccess { _, _ in lines.record("wrong") }
            silent.onCancellation { operation, cause in lines.record("\(cause.code) \(operation.isCancelled)") }
            silent.start()
            silent.cancel()
            await silent.ended()
            await bench.settled()
            withExtendedLifetime(silent) {}
        }
        #expect(lines.events == ["up true", "down 200 5", "success 1 Hello", "requested true"])
        try await bench.checkNothingIsLeft()
    }

    @Test func `a closure for a cancellation keeps the operation until its callback queue calls it`() async throws {
        let bench = try OperationBench { _ in .silence }
        let (clock, causes) = (ManualClock(), EventRecorder<CancellationCause.Code>())
        bench.callbacks.suspend()
        do {
            let operation = bench.text()
            operation.clock = clock
            operation.timeout = .seconds(5)
            operation.onCancellation { operation, cause in if operation.isFinished { causes.record(cause.code) } }
            operation.startAndKeepAlive()
            _ = await bench.server.heads(atLeast: 1)
        }
        clock.advance(by: .seconds(5))
        bench.callbacks.resume()
        await bench.settled()
        #expect(causes.events == [.timedOut])
        try await bench.checkNothingIsLeft()
    }

    @Test func `a closure for a cancellation is not called if the operation cancels itself when it is freed`() async {
        final class Cancelling: NetworkDataOperation<Data>, @unchecked Sendable {
            deinit { cancel() }
        }
        let calls = EventRecorder<CancellationCause.Code>()
        do {
            let operation = bench.watched(Cancelling(url: bench.server.url("/"), urlSession: bench.session))
            operation.onCancellation { _, cause in calls.record(cause.code) }
        }
        await bench.settled()
        #expect(calls.events == [])
    }

    @Test func `a delegate is notified of a result that was set before the start when the handlers are called`() async {
        for isDelegateLate in [false, true] {
            let (log, login, operation) = (HandlerLog(), ClosureOperation { 1 }, bench.text())
            log.watch(operation, asDelegate: !isDelegateLate)
            operation.addDependency(login)
            operation.finish(withResult: "kept")
            operation.delegate = log
            operation.start()
            await bench.settled()
            #expect(log.lines.events == [])
            login.start()
            await operation.ended()
            await bench.settled()
            #expect(log.lines.events == ["success", "delegate success 0"])
        }
        let (log, silent) = (HandlerLog(), bench.text())
        log.watch(silent)
        silent.finish(withResult: "kept")
        silent.cancel()
        silent.start()
        await bench.settled()
        #expect(log.lines.events == [])
    }

    @Test func `progress does not decrease when an attempt is repeated`() async throws {
        bench.server.route("GET", "/") { request in
            request.number == 0
                ? .repeating([1], count: 1_000_000).cut(at: 700_000, by: .reset) : .repeating([1], count: 800_000)
        }
        let told = EventRecorder<Int64>()
        let operation = bench.text()
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
        operation.downloadProgressHandler = { told.record($0.completedBytes) }
        #expect(try await operation.run().count == 800_000)
        await bench.settled()
        #expect(told.events == told.events.sorted())
        #expect(told.events.last == 800_000)
    }
}

/// Calls a closure for each event.
struct Watcher: NetworkObserver {
    let see: @Sendable (NetworkEvent) -> Void

    init(_ see: @escaping @Sendable (NetworkEvent) -> Void) { self.see = see }

    func observe(_ event: NetworkEvent) { see(event) }
}
