// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// Retains the receivers of its tasks forever, which a session may do.
private final class HoardingSession: NetworkSession {
    private final class Task: WrappingTask {
        let task: any NetworkTask
        let receiver: any NetworkReceiver

        init(_ task: any NetworkTask, _ receiver: any NetworkReceiver) { (self.task, self.receiver) = (task, receiver) }
    }

    private let session: any NetworkSession
    let hoard = EventRecorder<any NetworkTask>()
    /// Called once, after a task was created.
    let whenMade = Locked<(@Sendable () -> Void)?>(nil)

    init(over session: any NetworkSession) { self.session = session }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let task = Task(session.makeTask(with: request, receiver: receiver), receiver)
        hoard.record(task)
        whenMade.withLock { exchange(&$0, with: nil) }?()
        return task
    }
}

/// Does nothing.
///
/// A closure that calls this function captures the object.
private func hold(_ object: AnyObject) {}

@Suite("Lifetime of attempts", .timeLimit(.minutes(3)))
struct AttemptLifeTests {
    private func count(_ census: LiveObjects) async throws -> Int {
        try await TestThread.run { census.countAtRest(limit: .seconds(10)) }
    }

    @Test(arguments: [200, 404, 0])
    func `a released download leaves no attempts in memory, however it ended`(status: Int) async throws {
        let bench = try OperationBench { _ in status == 0 ? .silence : .text("Hello", status: status) }
        let census = LiveObjects()
        func download(isObserved: Bool) async {
            let operation = bench.watched(
                NetworkDownloadOperation(url: bench.server.url("/"), urlSession: bench.session) { file, _ in
                    try Data(contentsOf: file).count
                })
            census.track(operation.networkAttempts)
            if isObserved { operation.addNetworkObserver(EventLog()) }
            operation.start()
            if status == 0 {
                _ = await bench.server.heads(atLeast: 1)
                operation.cancel()
            }
            _ = await operation.finalOutcome
            await operation.ended()
        }
        await download(isObserved: false)
        await download(isObserved: true)
        #expect(try await count(census) == 0)
        try await bench.checkNothingIsLeft()
    }

    @Test func `a session that retains its tasks does not keep the attempts alive`() async throws {
        let bench = try OperationBench { $0.number < 2 ? .status(503) : .text("Hello") }, census = LiveObjects()
        let session = HoardingSession(over: bench.session)
        func run() async throws {
            let operation = bench.watched(
                NetworkDataOperation(url: bench.server.url("/"), urlSession: session) { data, _ in data.count })
            census.track(operation.networkAttempts)
            operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 3) }
            #expect(try await operation.run() == 5)
            await operation.ended()
            // The task of the last attempt is still available.
            #expect(operation.networkTask != nil)
        }
        try await run()
        #expect(try await count(census) == 0)
        #expect(session.hoard.count >= 2)
    }

    @Test
    func `a session may retain the task of an operation that was canceled while the task was created`() async throws {
        let bench = try OperationBench(), census = LiveObjects()
        let session = HoardingSession(over: bench.session)
        func run() async {
            let operation = bench.watched(
                NetworkDataOperation(url: bench.server.url("/"), urlSession: session) { data, _ in data.count })
            census.track(operation.networkAttempts)
            session.whenMade.withLock { $0 = { [weak operation] in operation?.cancel() } }
            await operation.startAndEnd()
            #expect(operation.isCancelled)
        }
        await run()
        #expect(try await count(census) == 0)
        #expect(session.hoard.count == 1 && bench.server.requests.isEmpty)
    }

    @Test func `an object that an error retains may cancel the operation when it is released`() async throws {
        let bench = try OperationBench(), clock = ManualClock(), ended = Gate(), isFreed = Gate()
        bench.server.route("/") { _ in .silence }
        let itself = Shared<Hooked?>(nil)
        do {
            let flaw = Shared<LastWord?>(
                LastWord {
                    itself.value?.cancel()
                    isFreed.open()
                })
            let operation = Hooked(bench, method: "GET") { request in
                if let first = flaw.take() { throw first }
                return request
            }
            itself.value = operation
            operation.callbackQueue = bench.callbacks
            operation.clock = clock
            operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2, pause: .seconds(1)) }
            operation.observe { _ in ended.open() }
            operation.start()
        }
        await clock.pending(atLeast: 1)
        // Meanwhile, the thread of the failure releases the error, so that usually the next attempt is its last owner.
        for _ in 0..<1_000 { await Task.yield() }
        _ = try await TestThread.run { clock.advanceToNext() }
        try await isFreed.passage(within: .seconds(60))
        try await ended.passage(within: .seconds(60))
        #expect(itself.value?.isCancelled == true && itself.value?.attemptCount == 2)
        itself.value = nil
    }

    @Test func `an error of a retried attempt may hold the operation and read its retry`() async throws {
        let bench = try OperationBench { .text("Hello", status: $0.number < 2 ? 503 : 200) }
        let freed = EventRecorder<Int>()
        do {
            let operation = bench.text()
            operation.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
            operation.responseRules.decodeError = { _, _ in LastWord { freed.record(operation.retry == nil ? 0 : 1) } }
            #expect(try await operation.run() == "Hello")
            await operation.ended()
        }
        #expect(await freed.events(atLeast: 2) == [1, 1])
        try await bench.checkNothingIsLeft()
    }

    @Test func `a change that holds an operation that has ended is released`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        do {
            let operation = bench.text()
            await operation.startAndEnd()
            // A list does this if another thread cancels the operation while the list runs it again.
            operation.networkAttempts.change { request in
                hold(operation)
                return request
            }
        }
        try await bench.checkNothingIsLeft()
    }

    /// Closures of an operation, each of which holds the operation.
    enum Kept: CaseIterable {
        case downloadProgress, uploadProgress, onDownloadProgress, onUploadProgress, validate, validateResponse
        case emptyResult, decodeError, success, failure, cancellation, retry, offline

        func set(on operation: NetworkDataOperation<String>) {
            switch self {
            case .downloadProgress: operation.downloadProgressHandler = { _ in hold(operation) }
            case .uploadProgress: operation.uploadProgressHandler = { _ in hold(operation) }
            case .onDownloadProgress: operation.onDownloadProgress { _, _ in hold(operation) }
            case .onUploadProgress: operation.onUploadProgress { _, _ in hold(operation) }
            case .validate: operation.validate { _, _ in hold(operation) }
            case .validateResponse: operation.validate { _ in hold(operation) }
            case .emptyResult: operation.emptyResult = { operation.stateDescription }
            case .decodeError:
                operation.responseRules.decodeError = { _, _ in
                    hold(operation)
                    return nil
                }
            case .success: operation.successHandler = { _ in hold(operation) }
            case .failure: operation.failureHandler = { _ in hold(operation) }
            case .cancellation: operation.cancellationHandler = { _ in hold(operation) }
            case .retry: operation.retryHandler = { _ in hold(operation) }
            case .offline: operation.offlineHandler = { hold(operation) }
            }
        }
    }

    enum End: CaseIterable { case success, failure, cancellation, setLate }

    @Test(arguments: Kept.allCases, End.allCases)
    func `a closure that holds its operation is released when the operation ends`(kept: Kept, end: End) async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        bench.server.route("GET", "/missing") { _ in .status(404) }
        bench.server.route("GET", "/stall") { _ in LoopbackAnswer(.stallForever) }
        do {
            let target =
                switch end {
                case .success, .setLate: "/"
                case .failure: "/missing"
                case .cancellation: "/stall"
                }
            let operation = bench.text(target)
            if end != .setLate { kept.set(on: operation) }
            operation.start()
            if end == .cancellation { operation.cancel() }
            await operation.ended()
            await bench.settled()
            if end == .setLate { kept.set(on: operation) }
            await bench.settled()
        }
        try await bench.checkNothingIsLeft()
    }
}
