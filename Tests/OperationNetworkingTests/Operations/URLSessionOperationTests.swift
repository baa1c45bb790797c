// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests operations with a `URLSession`.
///
/// The server does nothing here that Foundation cannot handle.
@Suite("Network operations with a URLSession", .timeLimit(.minutes(3)))
struct URLSessionOperationTests {
    private let session = URLSession(configuration: .ephemeral)

    private func text(_ url: URL) -> NetworkDataOperation<String> {
        NetworkDataOperation<String>(url: url, urlSession: session)
    }

    @Test func `an operation loads data, and its response stays readable`() async throws {
        let bench = try OperationBench { _ in .text("Hello").with("X-One", "1") }
        let operation = bench.watched(text(bench.server.url("/")))
        #expect(try await operation.run() == "Hello")
        #expect(operation.response?.value(forHTTPHeaderField: "X-One") == "1")
        #expect(operation.metrics?.bodyBytesReceived == 5)
    }

    @Test func `redirects are followed with the same rules as in every other session`() async throws {
        let bench = try OperationBench()
        let other = try LoopbackServer()
        bench.server.route("GET", "/") { _ in .redirect(to: "/next") }
        bench.server.route("GET", "/next") { _ in .redirect(to: other.url("/far").absoluteString) }
        other.route("GET", "/far") { .text($0["Authorization"] ?? "no secret") }
        var request = URLRequest(url: bench.server.url("/"))
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let operation = NetworkDataOperation<String>(request: request, urlSession: session)
        #expect(try await operation.run() == "no secret")
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer secret", "Bearer secret"])
    }

    @Test func `the headers of the session's configuration are added to requests`() async throws {
        let bench = try OperationBench { .text($0["X-Client"] ?? "none") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-Client": "ours"]
        let operation = NetworkDataOperation(
            url: bench.server.url("/"), urlSession: URLSession(configuration: configuration)
        ) { data, _ in String(decoding: data, as: UTF8.self) }
        #expect(try await operation.run() == "ours")
    }

    @Test func `a challenge without credentials fails with its status instead of waiting forever`() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/") { _ in
            .text("why", status: 401).with("WWW-Authenticate", "Basic realm=\"a\"")
        }
        let error = await failure(of: text(bench.server.url("/")))
        #expect(error?.code == .unacceptableStatus && error?.status == 401)
        #expect(error?.bodyPrefix == Data("why".utf8))
    }

    @Test func `a body from memory, from a file or from a stream is sent completely`() async throws {
        let bench = try OperationBench()
        bench.server.route("POST", "/") { .text("\($0.bodyCount) \($0["Content-Length"] ?? "chunks")") }
        let bytes = Data(count: 300_000)
        let file = try TemporaryFile(bytes)
        let bodies: [RequestBody] = [
            .data(bytes), .file(try FileRegion(file.url)), .stream(InputStream(data: bytes)),
        ]
        for body in bodies {
            let operation = NetworkUploadOperation(url: bench.server.url("/"), body: body, urlSession: session) {
                data, _ in String(decoding: data, as: UTF8.self)
            }
            #expect(try await operation.run() == "300000 300000")
        }
    }

    #if canImport(FoundationNetworking)
        @Test func `a POST without a body is sent once, although another request left a connection open`() async throws
        {
            let bench = try OperationBench { _ in .text("Hello") }
            bench.server.route("POST", "/act") { _ in .hangUp }
            _ = try await text(bench.server.url("/")).run()
            let record = try await session.run(bench.server.url("/act"), "POST")
            #expect(record.code == .connectionLost && record.error?.isUnsent == false)
            #expect(bench.server.requests.map(\.path) == ["/", "/act"])
        }
    #endif

    @Test func `an operation that is suspended and resumed receives every byte once`() async throws {
        let bench = try OperationBench { _ in .repeating(TestPattern.block, count: 1 << 20) }
        let operation = NetworkDataOperation(url: bench.server.url("/"), urlSession: session) { data, _ in
            data.withUnsafeBytes { TestPattern.matches($0, from: 0) } ? data.count : 0
        }
        await bench.server.isReached(by: operation)
        for _ in 0..<5 {
            operation.suspend()
            operation.resume()
        }
        #expect(try await operation.value == 1 << 20)
        #expect(bench.server.counts.heads == 1)
    }

    @Test func `canceled in flight, an operation ends immediately and leaves nothing`() async throws {
        let bench = try OperationBench { _ in .silence }
        do {
            let operation = bench.watched(text(bench.server.url("/")))
            await bench.server.isReached(by: operation)
            operation.cancel()
            #expect(operation.isFinished)
            await bench.server.counts { $0.openConnections == 0 }
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `closing the tasks of a session fails its operations`() async throws {
        let bench = try OperationBench { _ in .silence }
        let operation = text(bench.server.url("/"))
        await bench.server.isReached(by: operation)
        session.closeNetworkTasks()
        do {
            let value = try await operation.value
            Issue.record("The operation returned \(value) instead of failing.")
        } catch {
            guard case .failed(let error) = error else { throw error }
            #expect(error.code == .sessionClosed)
        }
    }

    @Test func `a subclass that overrides the older createTask gets the same session`() async throws {
        final class Old: NetworkOperation<Data, Bool>, @unchecked Sendable {
            private let expected: URLSession

            init(_ url: URL, _ session: URLSession) {
                expected = session
                super.init(url: url, urlSession: session)
            }

            override func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask? {
                session.dataTask(with: request) { [self] _, _, error in
                    if let error { return finish(withError: NetworkError(error)) }
                    finish(withResult: session === expected)
                }
            }
        }
        let bench = try OperationBench { _ in .text("Hello") }
        #expect(try await Old(bench.server.url("/"), session).run())
    }
}
