// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("NetworkDataOperation", .timeLimit(.minutes(3)))
struct NetworkDataOperationTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    struct Model: Codable, Sendable, Equatable { let name: String }

    @Test func `an operation with an evaluator closure returns a decoded model`() async throws {
        bench.server.route("GET", "/model") { _ in .json(#"{"name":"Anna"}"#) }
        let url = bench.server.url("/model")
        let operation = NetworkDataOperation(url: url, urlSession: .shared) { data, response in
            try JSONDecoder().decode(Model.self, from: data)
        }
        #expect(try await operation.run() == Model(name: "Anna"))
        let other = NetworkDataOperation(url: url) { data, _ in data.count }
        #expect(try await other.run() == 15)
    }

    @Test func `request, response, raw data, task and metrics stay readable on the operation`() async throws {
        let bench = try OperationBench { _ in .text("Hello").with("X-One", "1").adding("x-one", "2") }
        let operation = bench.text()
        #expect(operation.request == nil)
        #expect(operation.taskResult == nil)
        #expect(try await operation.run() == "Hello")
        #expect(operation.request?.url == bench.server.url("/"))
        #expect(operation.response?.statusCode == 200)
        #expect(operation.response?.value(forHTTPHeaderField: "x-one") == "1, 2")
        #expect(operation.responseHead?.headers.values("X-One") == ["1", "2"])
        #expect(operation.taskResult == Data("Hello".utf8))
        #expect(operation.networkTask != nil)
        #expect(operation.metrics?.bodyBytesReceived == 5)
        #expect(operation.attemptCount == 1)
    }

    @Test func `an operation runs in an OperationQueue, in a QueueManager and with startAndWait`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        let inFoundation = bench.text()
        OperationQueue().addOperation(inFoundation)
        #expect(try await inFoundation.value == "Hello")
        let manager = QueueManager("NetworkDataOperationTests")
        let inManager = bench.text()
        try manager.add(inManager)
        #expect(try await inManager.value == "Hello")
        #expect(try await TestThread.run { try bench.text().startAndWait() } == "Hello")
    }

    @Test func `an unacceptable status fails with the status, the start of the body and the API error`() async throws {
        struct Problem: Error, Codable, Equatable { let reason: String }
        let bench = try OperationBench { _ in .json(#"{"reason":"sold out"}"#, status: 409) }
        let operation = bench.text("/?token=secret")
        operation.responseRules.decodeError = ResponseRules.jsonError(Problem.self)
        operation.responseRules.errorBodyBytes = 100
        let error = await failure(of: operation)
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.status == 409)
        #expect(error?.phase == .evaluating)
        #expect(error?.bodyPrefix == Data(#"{"reason":"sold out"}"#.utf8))
        #expect((error?.apiError as? Problem) == Problem(reason: "sold out"))
        #expect(error?.request?.method == "GET")
        #expect(error?.isUnsent == false)
        #expect(error.map { "\($0)".contains("secret") } == false)

        let accepting = bench.text()
        accepting.responseRules.statuses = .success(or: 409)
        #expect(try await accepting.run().contains("sold out"))
    }

    @Test func `the body of an error response is kept up to its limit, and then cut off`() async throws {
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(
                .head(500, ["Content-Length": "1000000000000"]), .send(repeating: Array("abcd".utf8), count: nil))
        }
        let operation = bench.text()
        operation.responseRules.errorBodyBytes = 6
        let error = await failure(of: operation)
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.bodyPrefix == Data("abcdab".utf8))
    }

    @Test func `a body that exceeds the limit for memory fails, and the transfer ends`() async throws {
        let bench = try OperationBench { _ in .repeating(Array("abcd".utf8), count: 10 << 20) }
        let operation = bench.text()
        operation.responseRules.maximumBytesInMemory = 100_000
        #expect(await failure(of: operation)?.code == .bodyTooLarge)
        await bench.server.counts { $0.openConnections == 0 }
    }

    @Test func `a content type that the request does not accept is rejected`() async throws {
        let bench = try OperationBench { _ in .text("<html>") }
        var request = URLRequest(url: bench.server.url("/"))
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        let refused = NetworkDataOperation(request: request, urlSession: bench.session) { data, _ in data.count }
        #expect(await failure(of: refused)?.code == .unacceptableContentType)
        request.setValue("application/json, text/*", forHTTPHeaderField: "Accept")
        let accepted = NetworkDataOperation(request: request, urlSession: bench.session) { data, _ in data.count }
        #expect(try await accepted.run() == 6)
        let strict = bench.text()
        strict.responseRules.contentTypes = .json
        #expect(await failure(of: strict)?.code == .unacceptableContentType)
    }

    @Test func `a validation rule sees the body, and its error is the cause of the failure`() async throws {
        struct TooShort: Error {}
        let bench = try OperationBench { _ in .text("Hi") }
        let operation = bench.text().validate { data, _ in if data.count < 3 { throw TooShort() } }
        let error = await failure(of: operation)
        #expect(error?.code == .responseRefused)
        #expect(error?.cause is TooShort)
        #expect(error?.status == 200)
    }

    @Test func `a decoding error names the key, and other errors of the evaluator are preserved`() async throws {
        struct Mine: Error {}
        let bench = try OperationBench { _ in .json(#"[{"name":"Anna"},{"name":7}]"#) }
        let decoding = NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
            try JSONDecoder().decode([Model].self, from: data)
        }
        let error = await failure(of: decoding)
        #expect(error?.code == .undecodableResult)
        #expect(error?.message.contains("name") == true)
        #expect(error?.cause is DecodingError)
        let throwing = NetworkDataOperation<Int>(url: bench.server.url("/"), urlSession: bench.session) { _, _ in
            throw Mine()
        }
        let other = await failure(of: throwing)
        #expect(other?.code == .evaluationFailed)
        #expect(other?.cause is Mine)
        let own = NetworkDataOperation<Int>(url: bench.server.url("/"), urlSession: bench.session) { _, _ in
            throw NetworkError(code: .init("mine"), phase: .evaluating, message: "No.")
        }
        #expect(await failure(of: own)?.code == .init("mine"))
    }

    @Test func `a response without a body returns emptyResult, or else is evaluated`() async throws {
        let bench = try OperationBench { _ in .status(204) }
        let operation = bench.text()
        operation.emptyResult = { "nothing" }
        #expect(try await operation.run() == "nothing")
        #expect(try await bench.text().run() == "")
    }

    @Test func `an invalid request fails before anything is sent`() async throws {
        let request = with(URLRequest(url: bench.server.url("/"))) { $0.httpMethod = "GE T" }
        let operation = NetworkDataOperation(request: request, urlSession: bench.session) { data, _ in data }
        let error = await failure(of: operation)
        #expect(error?.code == .invalidMethod)
        #expect(error?.isUnsent == true)
        #expect(bench.server.counts.heads == 0)
    }

    @Test func `an error of the session becomes the error of the operation, with the request`() async throws {
        let bench = try OperationBench { _ in .reset }
        let error = await failure(of: bench.text())
        #expect(error?.code == .connectionLost)
        #expect(error?.request?.url == bench.server.url("/").absoluteString)
    }

    @Test func `an error can be mapped to a custom type`() async throws {
        enum Mine: Error, Equatable { case gone }
        let bench = try OperationBench { _ in .status(410) }
        let operation = bench.text().mapError { _ in Mine.gone }
        await #expect(throws: OperationFailure<Mine>.failed(.gone)) { try await operation.run() }
    }

    @Test func `handlers, the delegate and onCompletion get the same result on the callback queue`() async throws {
        bench.server.route("GET", "/yes") { _ in .text("Hello") }
        bench.server.route("GET", "/no") { _ in .status(404) }
        for (target, lines) in [
            ("/yes", ["success", "delegate received 5", "delegate success 200", "completed nil 200"]),
            (
                "/no",
                ["failure unacceptableStatus", "delegate unacceptableStatus 404", "completed unacceptableStatus 404"]
            ),
        ] {
            let operation = bench.text(target)
            let log = HandlerLog()
            log.watch(operation)
            operation.onCompletion { operation, error in
                dispatchPrecondition(condition: .onQueue(bench.callbacks))
                let code = error.map { "\($0.code)" } ?? "nil"
                log.lines.record("completed \(code) \(operation.response?.statusCode ?? 0)")
            }
            operation.start()
            #expect(Set(await log.lines.events(atLeast: lines.count)) == Set(lines))
        }
    }

    @Test func `the data and the error can be read without the type of the operation`() async throws {
        bench.server.route("GET", "/good") { _ in .text("Hello") }
        bench.server.route("GET", "/refused") { _ in .text("not found", status: 404) }
        func operation(_ target: String) -> any AnyNetworkOperation {
            bench.watched(
                NetworkDataOperation<Int>(url: bench.server.url(target), urlSession: bench.session) { data, _ in
                    try JSONDecoder().decode(Int.self, from: data)
                })
        }
        for (target, data, code) in [
            ("/good", Data("Hello".utf8), NetworkError.Code.undecodableResult), ("/refused", nil, .unacceptableStatus),
        ] {
            let operation = operation(target)
            #expect(operation.receivedData == nil && operation.networkError == nil)
            await operation.startAndEnd()
            #expect(operation.receivedData == data)
            #expect(operation.networkError?.code == code)
        }
        let good: any AnyNetworkOperation = bench.text("/good")
        await good.startAndEnd()
        #expect(good.receivedData == Data("Hello".utf8) && good.networkError == nil)
        let canceled: any AnyNetworkOperation = bench.text("/good")
        canceled.cancel()
        #expect(canceled.networkError == nil && canceled.receivedData == nil)
    }

    @Test
    func `onFailure gets the operation and its error on the callback queue, and only after a failure`() async throws {
        bench.server.route("GET", "/yes") { _ in .text("Hello") }
        bench.server.route("GET", "/no") { _ in .text("no", status: 404) }
        let lines = EventRecorder<String>()
        let operations = ["/yes", "/no", "/canceled"].map { target in
            bench.text(target).onFailure { operation, error in
                dispatchPrecondition(condition: .onQueue(bench.callbacks))
                lines.record("\(target) \(error.code) \(operation.response?.statusCode ?? 0)")
            }
        }
        operations[2].cancel()
        for operation in operations { await operation.startAndEnd() }
        await bench.settled()
        #expect(lines.events == ["/no unacceptableStatus 404"])
    }

    @Test(.timeLimit(.minutes(Rounds.minutes)))
    func `thousands of parallel operations finish and leave nothing`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        do {
            let manager = QueueManager("many")
            let operations = (0..<Rounds.count(ci: 2_000, soak: 10_000)).map { _ in bench.text() }
            for operation in operations { try manager.add(operation) }
            for operation in operations { #expect(try await operation.value == "Hello") }
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `a body that cannot be decoded is in the error, and stays readable`() async throws {
        let bench = try OperationBench { _ in .json(#"{"name":"Blue"}"#) }
        let operation = bench.watched(
            NetworkDataOperation<[Int]>(url: bench.server.url("/"), urlSession: bench.session) { data, _ in
                try JSONDecoder().decode([Int].self, from: data)
            })
        operation.responseRules.errorBodyBytes = 7
        let error = await failure(of: operation)
        #expect(error?.code == .undecodableResult)
        #expect(error?.bodyPrefix == Data(#"{"name""#.utf8))
        #expect(operation.taskResult == Data(#"{"name":"Blue"}"#.utf8))
    }

    @Test func `an API error is decoded even if its body exceeds the kept bytes`() async throws {
        struct Problem: Error, Decodable { let reason: String }
        let long = String(repeating: "x", count: 100_000)
        bench.server.route("GET", "/") { _ in .json(#"{"reason":"\#(long)"}"#, status: 422) }
        let operation = bench.text()
        operation.responseRules.decodeError = ResponseRules.jsonError(Problem.self)
        let error = await failure(of: operation)
        #expect((error?.apiError as? Problem)?.reason == long)
        #expect(error?.bodyPrefix?.count == 16 << 10)
    }
}
