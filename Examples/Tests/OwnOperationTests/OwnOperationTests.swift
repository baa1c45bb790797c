// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests operation classes as users write them, in a package that sees only the public API.
@Suite(.timeLimit(.minutes(2)))
struct OwnOperationTests {
    private let server: LoopbackServer
    private let queue = QueueManager("own", width: 2)

    init() throws {
        server = try LoopbackServer()
        server.route("GET", "/form") { .text("\($0["X-Form"] ?? "none") \($0["X-Task"] ?? "none")\n") }
        server.route("GET", "/missing") { _ in .status(404) }
        server.route("GET", "/silent") { _ in .silence }
    }

    private func outcome<Result, Value: Sendable>(
        of operation: NetworkOperation<Result, Value>
    ) async throws -> OperationOutcome<Value, NetworkError> {
        try queue.add(operation)
        return await operation.finalOutcome
    }

    @Test func `the older form works with data`() async throws {
        let operation = OlderDataOperation(url: server.url("/form"), urlSession: .shared) { data, response in
            "\(response.statusCode) \(String(decoding: data, as: UTF8.self))"
        }
        #expect(try await outcome(of: operation).result == "200 older none\n")
        #expect(server.requests.count == 1)
    }

    @Test func `the older form works with a file and a given URLSession`() async throws {
        let session = URLSession(configuration: .ephemeral)
        let operation = OlderDownloadOperation(url: server.url("/form"), urlSession: session) { file, _ in
            try String(contentsOf: file, encoding: .utf8)
        }
        #expect(try await outcome(of: operation).result == "older none\n")
        session.finishTasksAndInvalidate()
    }

    @Test func `the older form reports errors of the evaluator and of the transfer`() async throws {
        struct Refused: Error {}
        let refused = OlderDataOperation<Int>(url: server.url("/missing"), urlSession: .shared) { _, response in
            guard response.statusCode == 200 else { throw Refused() }
            return 1
        }
        let error = try await outcome(of: refused).error
        #expect(error?.cause is Refused)
        #expect(error?.phase == .evaluating)
        let nobody = OlderDataOperation<Int>(url: server.url("/form"), urlSession: .shared) { _, _ in 1 }
        await server.stopped()
        #expect(try await outcome(of: nobody).error != nil)
    }

    @Test func `the older form can be canceled while it waits for the response`() async throws {
        let operation = OlderDataOperation<Int>(url: server.url("/silent"), urlSession: .shared) { data, _ in
            data.count
        }
        try queue.add(operation)
        _ = await server.heads(atLeast: 1)
        operation.cancel()
        #expect(await operation.finalOutcome.cancellationCause == .requested)
        // The task was canceled as well, so the connection closes.
        _ = await server.counts { $0.openConnections == 0 }
    }

    @Test func `the newer form works with data and files`() async throws {
        let data = NewerOperation<Data, String>(url: server.url("/form"), urlSession: .shared) { data, _ in
            String(decoding: data, as: UTF8.self)
        }
        #expect(try await outcome(of: data).result == "newer own\n")
        let file = NewerOperation<URL, String>(url: server.url("/form")) { file, _ in
            try String(contentsOf: file, encoding: .utf8)
        }
        #expect(try await outcome(of: file).result == "newer own\n")
        #expect(try await outcome(of: NewerOperation<Data, Int>(url: server.url("/missing"))).error?.status == 404)
    }

    @Test func `the newer form can be canceled while it waits for the response`() async throws {
        let operation = NewerOperation<Data, Int>(url: server.url("/silent")) { data, _ in data.count }
        try queue.add(operation)
        _ = await server.heads(atLeast: 1)
        operation.cancel()
        #expect(await operation.finalOutcome.cancellationCause == .requested)
        _ = await server.counts { $0.openConnections == 0 }
    }

    @Test func `a task result may be neither data nor a file`() async throws {
        let operation = LineOperation(url: server.url("/form")) { lines, _ in "\(lines) line" }
        #expect(try await outcome(of: operation).result == "1 line")
    }
}
