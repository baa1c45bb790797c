// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A generic subclass of the older form, with Foundation's session and task.
///
/// Its completion handler ends the operation.
private class OldFashioned<TaskResult, ResultType: Sendable>: NetworkOperation<TaskResult, ResultType>,
    @unchecked Sendable
{
    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        with(request) { $0.setValue("yes", forHTTPHeaderField: "X-Prepared") }
    }

    override func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask {
        session.dataTask(with: request) { [self] data, response, error in
            if let error { return finish(withError: NetworkError(error)) }
            guard let result = data as? TaskResult, let response = response as? HTTPURLResponse else { return cancel() }
            do {
                finish(withResult: try evaluate(result: result, response: response))
            } catch {
                finish(withError: NetworkError(error, phase: .evaluating))
            }
        }
    }
}

/// The same class in the current form.
private class NewFashioned<TaskResult, ResultType: Sendable>: NetworkOperation<TaskResult, ResultType>,
    @unchecked Sendable
{
    let wasAsked = Locked(0)

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        with(request) { $0.setValue("yes", forHTTPHeaderField: "X-Prepared") }
    }

    override func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        wasAsked.withLock { $0 += 1 }
        return session.makeTask(with: request)
    }
}

private func signed(
    _ bench: OperationBench, _ token: @escaping @Sendable () async throws -> String
) -> Hooked {
    bench.watched(Hooked(bench, method: "GET") { try $0.with("Authorization", "Bearer \(try await token())") })
}

private final class OldUpload: NetworkUploadOperation<String>, @unchecked Sendable {
    override func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask? {
        session.dataTask(with: request) { [self] data, response, error in
            if let error { return finish(withError: NetworkError(error)) }
            guard let data, let response = response as? HTTPURLResponse else { return }
            finish(with: Result { try evaluate(result: data, response: response) }.mapError { NetworkError($0) })
        }
    }
}

/// Overrides the older form, and leaves most of its requests to the superclass.
private final class SometimesOlder: NetworkDataOperation<String>, @unchecked Sendable {
    override func createTask(with request: URLRequest, using session: URLSession) throws -> URLSessionTask? {
        guard request.url?.path == "/older" else { return try super.createTask(with: request, using: session) }
        return session.dataTask(with: request) { [self] _, _, error in
            if let error { return finish(withError: NetworkError(error)) }
            finish(withResult: "older")
        }
    }

    override func evaluate(result: Data, response: HTTPURLResponse) -> String { "newer" }
}

/// Fails to create the task in its first attempts.
private final class OlderThatThrows: NetworkDataOperation<Int>, @unchecked Sendable {
    let asked = Locked(0)

    override func createTask(with request: URLRequest, using session: URLSession) throws -> URLSessionTask? {
        let number = asked.next()
        if number < 3 { throw URLError(.networkConnectionLost) }
        return session.dataTask(with: request) { [self] _, _, error in
            if let error { return finish(withError: NetworkError(error)) }
            finish(withResult: number)
        }
    }
}

/// Records the requests that the older form gets, and creates no task.
private final class OlderThatLooks: NetworkUploadOperation<String>, @unchecked Sendable {
    let change: (@Sendable (NetworkRequest) throws -> NetworkRequest)?
    let asked = Locked<[URLRequest]>([])

    init(
        _ url: URL, _ session: any NetworkSession, _ body: RequestBody,
        _ change: (@Sendable (NetworkRequest) throws -> NetworkRequest)?
    ) {
        self.change = change
        super.init(url: url, body: body, urlSession: session)
    }

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        with(request) { request in
            request.setValue("yes", forHTTPHeaderField: "X-Prepared")
            request.cachePolicy = .reloadIgnoringLocalCacheData
            request.timeoutInterval = 20
        }
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest { try change?(request) ?? request }

    override func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask? {
        asked.withLock { $0.append(request) }
        return nil
    }
}

/// Counts the bytes of a body without keeping them.
private final class ByteCounter: ResponseCollector<Int>, @unchecked Sendable {
    private var count = 0

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) { count += bytes.count }
    override func finish() -> Int { count }
}

private final class Counting: NetworkOperation<Int, String>, @unchecked Sendable {
    override func makeCollector(for head: ResponseHead) -> ResponseCollector<Int> { ByteCounter() }
}

@Suite("Hooks of network operations", .timeLimit(.minutes(3)))
struct OperationHookTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    @Test func `a generic subclass that overrides the older createTask works, and calls its evaluator`() async throws {
        let bench = try OperationBench { .text("prepared: \($0["X-Prepared"] ?? "no")") }
        do {
            let operation = OldFashioned<Data, String>(url: bench.server.url("/"), urlSession: .shared) { data, _ in
                String(decoding: data, as: UTF8.self)
            }
            bench.census.track(operation)
            #expect(try await operation.run() == "prepared: yes")
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `the older createTask sends a file, and rejects a stream instead of sending nothing`() async throws {
        bench.server.route("POST", "/") { .text($0.text) }
        func upload(_ body: RequestBody) -> OldUpload {
            OldUpload(url: bench.server.url("/"), body: body, urlSession: .shared) { data, _ in
                String(decoding: data, as: UTF8.self)
            }
        }
        let file = try TemporaryFile(Data("from a file".utf8))
        #expect(try await upload(.data(Data("in memory".utf8))).run() == "in memory")
        #expect(try await upload(.file(FileRegion(file.url))).run() == "from a file")
        let stream = RequestBody.stream(canBeSentAgain: true) { PieceProducer([1], size: 1) }
        // The task is canceled, and its completion handler may run before the reason is reported.
        for _ in 0..<20 {
            let error = await failure(of: upload(stream))
            #expect(error?.code == .unsupportedBody, "\(String(describing: error))")
        }
        #expect(bench.server.counts.heads == 2)
    }

    @Test("The older createTask rejects a session that it would bypass, and sends nothing", arguments: [false, true])
    func oldFormWithStub(isWrapped: Bool) async throws {
        bench.server.route("GET", "/older") { _ in .text("Hello") }
        let stub = StubSession()
        let session: any NetworkSession = isWrapped ? ExchangeSession(over: stub) : stub
        // The task is canceled, and its completion handler may run before the reason is reported.
        for _ in 0..<20 {
            let operation = SometimesOlder(url: bench.server.url("/older"), urlSession: session)
            let error = await failure(of: operation)
            #expect(error?.code == .preparationFailed, "\(String(describing: error))")
            #expect(error?.message.contains(isWrapped ? "ExchangeSession" : "StubSession") == true)
        }
        #expect(bench.server.counts.heads == 0)
    }

    @Test func `a subclass may leave some of its requests to the superclass, even the first ones`() async throws {
        for path in ["/newer", "/older"] { bench.server.route("GET", path) { _ in .text("Hello") } }
        for path in ["newer", "older", "newer", "older"] {
            let operation = SometimesOlder(url: bench.server.url("/" + path), urlSession: bench.session)
            #expect(try await operation.run() == path)
        }
    }

    @Test func `a URLError that the older createTask throws is retried as far as the retry rule allows`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let retried = OlderThatThrows(url: bench.server.url("/"), urlSession: .shared)
        retried.retry = Retry(backoff: .constant(.zero), budget: nil)
        #expect(try await retried.run() == 3)
        #expect(retried.attemptCount == 3)
        let single = OlderThatThrows(url: bench.server.url("/"), urlSession: .shared)
        #expect(await failure(of: single)?.code == .connectionLost)
        #expect(single.asked.withLock { $0 } == 1)
    }

    @Test func `the older createTask gets the prepared request with all later changes`() async throws {
        bench.server.route("POST", "/") { .text($0.text) }
        let changes: [(@Sendable (NetworkRequest) throws -> NetworkRequest)?] = [
            nil, { try $0.with("X-Token", "abc").with("X-Prepared", nil) },
            { try $0.with(body: .data(Data("new".utf8))) },
        ]
        for (index, change) in changes.enumerated() {
            let operation = OlderThatLooks(
                bench.server.url("/"), bench.session, .data(Data("old".utf8)), change)
            _ = try await operation.run()
            let requests = operation.asked.withLock { $0 }
            #expect(requests.count == 1)
            let request = try #require(requests.first)
            #expect(request.url == bench.server.url("/") && request.httpMethod == "POST")
            #expect(request.cachePolicy == .reloadIgnoringLocalCacheData && request.timeoutInterval == 20)
            #expect(request.value(forHTTPHeaderField: "X-Prepared") == (index == 1 ? nil : "yes"))
            #expect(request.value(forHTTPHeaderField: "X-Token") == (index == 1 ? "abc" : nil))
            #expect(request.httpBody == Data((index == 2 ? "new" : "old").utf8))
        }
    }

    @Test func `an error that a hook throws before sending is reported as a failed preparation`() async throws {
        let decoding = signed(bench) {
            _ = try JSONDecoder().decode(Int.self, from: Data("x".utf8)); return ""
        }
        let loading = signed(bench) { throw URLError(.timedOut) }
        for operation in [decoding, loading] {
            let error = await failure(of: operation)
            #expect(error?.code == .preparationFailed)
            #expect(error?.isUnsent == true)
            #expect(error?.cause != nil)
        }
        #expect(bench.server.counts.heads == 0)
    }

    @Test func `canceled in flight, an operation with the older createTask ends immediately`() async throws {
        let bench = try OperationBench { _ in .silence }
        do {
            let operation = OldFashioned<Data, Int>(url: bench.server.url("/")) { data, _ in data.count }
            bench.census.track(operation)
            await bench.server.isReached(by: operation)
            operation.cancel()
            #expect(operation.isFinished)
            await bench.server.counts { $0.openConnections == 0 }
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `a generic subclass that overrides the current createTask works with data and files`() async throws {
        let bench = try OperationBench { .text("prepared: \($0["X-Prepared"] ?? "no")") }
        let data = NewFashioned<Data, String>(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
            String(decoding: data, as: UTF8.self)
        }
        #expect(try await data.run() == "prepared: yes")
        #expect(data.wasAsked.withLock { $0 } == 1)
        let file = NewFashioned<URL, Int>(url: bench.server.url("/"), urlSession: bench.session) { file, _ in
            try Data(contentsOf: file).count
        }
        #expect(try await file.run() == 13)
    }

    @Test func `a subclass may collect the body with its own collector`() async throws {
        let bench = try OperationBench { _ in .repeating([1], count: 100_000) }
        let operation = Counting(url: bench.server.url("/"), urlSession: bench.session) { count, _ in "\(count)" }
        #expect(try await operation.run() == "100000")
    }

    @Test
    func `a task result without a collector fails with a message that names the method to override`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let operation = NetworkOperation<Int, Int>(url: bench.server.url("/"), urlSession: bench.session) { int, _ in
            int
        }
        #expect(await failure(of: operation)?.message.contains("makeCollector") == true)
    }

    @Test
    func `the asynchronous hook is awaited before anything is sent, and its error fails the operation`() async throws {
        struct NoToken: Error {}
        let bench = try OperationBench { .text($0["Authorization"] ?? "none") }
        let gate = Gate()
        let operation = signed(bench) {
            await gate.passage()
            return "abc"
        }
        operation.start()
        #expect(bench.server.counts.heads == 0)
        gate.open()
        #expect(try await operation.value == "Bearer abc")
        let error = await failure(of: signed(bench) { throw NoToken() })
        #expect(error?.code == .preparationFailed)
        #expect(error?.cause is NoToken)
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `a body is sent even if the hook does not see it, and the hook can set its length`() async throws {
        final class Upload: NetworkUploadOperation<String>, @unchecked Sendable {
            override func prepareRequest(_ request: URLRequest) -> URLRequest {
                with(request) {
                    $0.setValue("text/plain", forHTTPHeaderField: "Content-Type")
                    $0.setValue("2", forHTTPHeaderField: "Content-Length")
                }
            }
        }
        bench.server.route("POST", "/") {
            .text("\($0["Content-Type"] ?? "") \($0["Content-Length"] ?? "") \($0.text)")
        }
        let stream = RequestBody.stream(canBeSentAgain: true) { PieceProducer(Array("Hi".utf8), size: .max) }
        for body in [RequestBody.data(Data("Hi".utf8)), stream] {
            let operation = Upload(url: bench.server.url("/"), body: body, urlSession: bench.session) {
                data, _ in String(decoding: data, as: UTF8.self)
            }
            #expect(try await operation.run() == "text/plain 2 Hi")
        }
    }

    @Test(arguments: SelfAwaiting.Hook.allCases)
    func `a hook that waits for its own operation gets an error`(hook: SelfAwaiting.Hook) async throws {
        let bench = try OperationBench { _ in .text("Hi") }
        let operation = SelfAwaiting(hook, bench)
        #expect(try await operation.run() == "Hi")
        #expect(operation.errors.events.map { "\($0)".contains("waitsForItself") } == [true])
    }

    @Test(arguments: [1, 2])
    func `an evaluator that waits for another operation in its queue frees its slot`(width: Int) async throws {
        let bench = try OperationBench { _ in .text("Hi") }
        let queue = QueueManager("requests", width: width)
        let outer = (0..<6).map { _ in
            NetworkDataOperation<String>(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                let inner = bench.text("/")
                try queue.add(inner)
                return try inner.startAndWait() + String(decoding: data, as: UTF8.self)
            }
        }
        try queue.add(outer)
        for operation in outer { #expect(try await operation.value == "HiHi") }
        await queue.drained()
    }

    @Test func `a policy may repeat an attempt, which is prepared again completely`() async throws {
        let bench = try OperationBench { $0.number < 2 ? .status(503) : .text($0["Authorization"] ?? "none") }
        let tokens = Locked(0)
        let operation = signed(bench) {
            tokens.withLock { tokens in
                tokens += 1
                return "\(tokens)"
            }
        }
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 3) }
        #expect(try await operation.run() == "Bearer 3")
        #expect(operation.attemptCount == 3)
        let hopeless = bench.text("/nowhere")
        hopeless.networkAttempts.changePolicies { $0[.manual] = Again(most: 3) }
        #expect(await failure(of: hopeless)?.status == 404)
        #expect(hopeless.attemptCount == 3)
    }

    @Test func `the hooks of a repeated attempt do not run on the queue of the session`() async throws {
        final class Noted: NetworkDataOperation<String>, @unchecked Sendable {
            let isOnSession = EventRecorder<Bool>()

            override func makeRequest() throws -> NetworkRequest {
                isOnSession.record(DispatchQueue.getSpecific(key: FailingQueue.key) == true)
                return try super.makeRequest()
            }
        }
        let operation = Noted(url: bench.server.url("/"), urlSession: FailingQueue.makeSession()) { _, _ in "" }
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 3) }
        _ = await failure(of: operation)
        #expect(operation.isOnSession.events == [false, false, false])
    }

    @Test func `many attempts that fail in a hook need no deep stack`() async throws {
        /// Has an asynchronous hook that does not suspend its task, and no task.
        final class NoTask: NetworkDataOperation<String>, @unchecked Sendable {
            override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest { request }

            override func createTask(
                with request: NetworkRequest, using session: any NetworkSession
            ) throws -> any NetworkTask {
                throw NetworkError(code: .connectionLost, phase: .waiting, message: "There is no task.")
            }
        }
        let operation = NoTask(url: bench.server.url("/"), urlSession: bench.session) { _, _ in "" }
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 6_000) }
        #expect(await failure(of: operation)?.code == .connectionLost)
        #expect(operation.attemptCount == 6_000)
    }
}

/// Waits for its own end in one of its hooks.
final class SelfAwaiting: NetworkDataOperation<String>, @unchecked Sendable {
    enum Hook: CaseIterable { case makeRequest, prepareRequest, adapt, createTask, evaluate }

    let errors = EventRecorder<any Error>()
    private let awaiting: Hook

    init(_ awaiting: Hook, _ bench: OperationBench) {
        self.awaiting = awaiting
        super.init(url: bench.server.url("/"), urlSession: bench.session)
        callbackQueue = bench.callbacks
        bench.census.track(self)
    }

    private func wait(in hook: Hook) {
        guard hook == awaiting else { return }
        do { _ = try startAndWait() } catch { errors.record(error) }
    }

    override func makeRequest() throws -> NetworkRequest {
        wait(in: .makeRequest)
        return try super.makeRequest()
    }

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        wait(in: .prepareRequest)
        return request
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        guard awaiting == .adapt else { return request }
        do { _ = try await value } catch { errors.record(error) }
        return request
    }

    override func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        wait(in: .createTask)
        return session.makeTask(with: request)
    }

    override func evaluate(result: Data, head: ResponseHead) -> String {
        wait(in: .evaluate)
        return String(decoding: result, as: UTF8.self)
    }
}

/// Repeats the request without a pause by default, up to a number of attempts.
final class Again: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    let most: Int
    let pause: Duration

    init(most: Int, pause: Duration = .zero) { (self.most, self.pause) = (most, pause) }

    override func decide(_ report: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        answer(AttemptPolicyDecision(report.number < most ? .again(after: pause) : .fail))
    }
}

/// A queue on which all requests of a session fail.
private enum FailingQueue {
    static let key = DispatchSpecificKey<Bool>()

    static func makeSession() -> ClosureSession {
        let queue = DispatchQueue(label: "FailingQueue")
        queue.setSpecific(key: key, value: true)
        return ClosureSession { _, receiver in
            ClosureTask { task in
                let error = NetworkError(code: .connectionLost, phase: .receiving, message: "It is lost.")
                queue.async { receiver.task(task, didEndWith: error) }
            }
        }
    }
}
