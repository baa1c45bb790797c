// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Services that respond with status 200 and reject the credential in the body, as GraphQL does.
@Suite("Credentials that are rejected in the body", .timeLimit(.minutes(1)))
struct RejectedBodyTests {
    private static let rejection = #"{"errors": [{"code": "UNAUTHENTICATED"}]}"#

    /// Returns a bench whose server rejects an invalid credential in the body, for GET and POST.
    private let bench: TokenBench

    init() throws {
        bench = try TokenBench()
        for method in ["GET", "POST"] {
            bench.server.route(method, "/") { [good = bench.good] request in
                request["Authorization"] == "Bearer " + good.value ? .text("Hello") : .text(Self.rejection)
            }
        }
    }

    /// An operation whose evaluator reads the body.
    private func operation(
        _ bench: TokenBench, _ authenticator: Authenticator<String>?, method: String = "GET",
        body: RequestBody = .none
    ) -> NetworkUploadOperation<String> {
        let operation = NetworkUploadOperation(
            url: bench.server.url("/"), method: method, body: body, urlSession: bench.bench.session
        ) { data, _ in try Self.read(data) }
        operation.clock = bench.clock
        if let authenticator { operation.authenticate(by: authenticator) }
        return bench.bench.watched(operation)
    }

    private static func read(_ data: Data) throws -> String {
        let text = String(decoding: data, as: UTF8.self)
        if text.contains("UNAUTHENTICATED") { throw NetworkError(.credentialRejected) }
        return text
    }

    @Test("A response with status 200 whose body rejects the credential is followed by one refresh and one replay")
    func evaluator() async throws {
        do {
            let operation = operation(bench, bench.authenticator())
            #expect(try await operation.run() == "Hello")
            #expect(operation.attemptCount == 2 && bench.asked.events == ["old"])
            #expect(operation.failedAttempts.map(\.code) == [.credentialRejected])
        }
        #expect(bench.server.requests.map { $0["Authorization"] } == ["Bearer old", "Bearer new"])
        try await bench.bench.checkNothingIsLeft()
    }

    @Test func `a POST whose body rejects the credential is sent again, with its body`() async throws {
        let operation = operation(bench, bench.authenticator(), method: "POST", body: .data(Data("query".utf8)))
        #expect(try await operation.run() == "Hello")
        #expect(bench.server.requests.map(\.text) == ["query", "query"])
    }

    @Test
    func `twenty parallel requests cause one refresh, and later requests wait for the new credential`() async throws {
        let refreshes = Gate()
        let authenticator = bench.authenticator(refresh: refreshes.opening("new"))
        var rejected = 0
        do {
            let operations = (0..<20).map { _ in operation(bench, authenticator) }
            for operation in operations.prefix(5) { operation.start() }
            await until { authenticator.postponedCount == 5 }
            for operation in operations.dropFirst(5) { operation.start() }
            await until { authenticator.postponedCount == 20 }
            // An operation whose request is not sent before the first response waits without sending it.
            rejected = bench.server.counts.heads
            refreshes.open()
            for operation in operations {
                await operation.ended()
                #expect(operation.outcome == .success("Hello"))
            }
        }
        #expect(bench.asked.events == ["old"] && (1...5).contains(rejected))
        #expect(bench.server.counts.heads == rejected + 20)
        try await bench.bench.checkNothingIsLeft()
    }

    @Test("If the body rejects the new credential as well, the operation fails with the error that was thrown")
    func rejectedAgain() async throws {
        let error = await failure(of: operation(bench, bench.authenticator(refresh: { "wrong" })))
        #expect(error?.code == .credentialRejected && error?.message == NetworkError(.credentialRejected).message)
        #expect(error?.status == 200 && error?.bodyPrefix == Data(Self.rejection.utf8))
        #expect(error?.attempts.count == 2)
        #expect(bench.asked.events == ["old"] && bench.server.counts.heads == 2)
    }

    @Test func `throwing the rejection of another request is an ordinary failure`() async throws {
        let other = await failure(of: operation(bench, bench.authenticator(refresh: { "wrong" })))
        let rejected = try #require(other?.code == .credentialRejected ? other : nil)
        let (asked, sent) = (bench.asked.count, bench.server.counts.heads)
        bench.server.route("GET", "/other") { _ in .text("Hello") }
        let operation = NetworkDataOperation<String>(
            url: bench.server.url("/other"), urlSession: bench.bench.session
        ) { _ in throw rejected }
        operation.authenticate(by: bench.authenticator())
        #expect(await failure(of: bench.bench.watched(operation))?.code == .credentialRejected)
        #expect(bench.asked.count == asked && bench.server.counts.heads == sent + 1)
    }

    @Test
    func `a 401 and a rejection in the body count together, and the second one ends the operation`() async throws {
        bench.server.route("GET", "/") { $0["Authorization"] == "Bearer old" ? .status(401) : .text(Self.rejection) }
        #expect(
            await failure(of: operation(bench, bench.authenticator(refresh: { "wrong" })))?.code == .credentialRejected)
        #expect(bench.asked.events == ["old"] && bench.server.counts.heads == 2)
    }

    @Test func `too many refreshes after rejections in the body fail as after a 401`() async throws {
        bench.good.value = "none"
        let authenticator = bench.authenticator(
            change: { $0.maximumRefreshes = 2 }, refresh: { "\(bench.asked.count)" })
        var codes: [NetworkError.Code?] = []
        for _ in 0..<3 { codes.append(await failure(of: operation(bench, authenticator))?.code) }
        #expect(codes == [.credentialRejected, .credentialRejected, .tooManyRefreshes])
    }

    @Test
    func `without a realm that covers the address, a rejection in the body is an ordinary failure`() async throws {
        let elsewhere = try #require(URL(string: "https://example.com"))
        for authenticator in [nil, bench.authenticator(change: { $0.origins = [elsewhere] })] {
            let operation = operation(bench, authenticator)
            operation.retry = Retry(budget: nil)
            #expect(await failure(of: operation)?.code == .credentialRejected)
            #expect(operation.attemptCount == 1)
        }
        #expect(bench.asked.count == 0)
    }

    @Test func `a validate rule can reject the credential`() async throws {
        let operation = bench.operation(bench.authenticator())
        operation.validate { data, _ in _ = try Self.read(data) }
        #expect(try await operation.run() == "Hello")
        #expect(bench.asked.events == ["old"])
    }

    @Test func `decodeError can reject the credential, even with status 400`() async throws {
        let bench = try TokenBench()
        bench.serve { _ in .text(Self.rejection, status: 400) }
        func operation(_ refresh: @escaping @Sendable () async throws -> String) -> NetworkDataOperation<String> {
            let operation = bench.operation(bench.authenticator(refresh: refresh))
            operation.responseRules.decodeError = { data, _ in
                _ = try Self.read(data)
                return nil
            }
            return operation
        }
        #expect(try await operation { "new" }.run() == "Hello")
        let error = await failure(of: operation { "wrong" })
        #expect(error?.code == .credentialRejected && error?.status == 400)
        #expect(error?.bodyPrefix == Data(Self.rejection.utf8))
    }

    @Test func `an endpoint or a subclass of EndpointOperation can reject the credential`() async throws {
        class Checked<ResultType: Sendable>: EndpointOperation<ResultType>, @unchecked Sendable {
            override func evaluate(result: Data, response: HTTPURLResponse) throws -> ResultType {
                _ = try RejectedBodyTests.read(result)
                return try super.evaluate(result: result, response: response)
            }
        }
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.bench.session
        base.authenticate(by: bench.authenticator())
        let endpoint = Endpoint("GET", "") { data, _, _ in try Self.read(data) }
        #expect(try await base.operation(for: endpoint).run() == "Hello")
        base.realms = []
        base.authenticate(by: bench.authenticator())
        #expect(try await Checked<String>(.get(""), at: base).run() == "Hello")
        #expect(bench.asked.events == ["old", "old"])
    }

    @Test func `a temporary download that is rejected starts again at its first byte`() async throws {
        let download = NetworkDownloadOperation<String>(
            url: bench.server.url("/"), urlSession: bench.bench.session
        ) { file, _ in try Self.read(Data(contentsOf: file)) }
        download.clock = bench.clock
        download.authenticate(by: bench.authenticator())
        #expect(try await download.run() == "Hello")
        #expect(bench.server.requests.map { $0["Range"] } == [nil, nil])
    }

    @Test func `a download replaces its own rejected file, but no file of another operation`() async throws {
        let folder = try TemporaryFolder()
        let place = folder.url.appendingPathComponent("file")
        func download(_ refresh: @escaping @Sendable () async throws -> String) -> NetworkDownloadOperation<String> {
            let operation = NetworkDownloadOperation<String>(
                url: bench.server.url("/"), urlSession: bench.bench.session
            ) { file, _ in try Self.read(Data(contentsOf: file)) }
            operation.clock = bench.clock
            operation.destination = .file(place)
            operation.authenticate(by: bench.authenticator(refresh: refresh))
            return operation
        }
        let first = download { "new" }
        #expect(try await first.run() == "Hello")
        #expect(try String(contentsOf: place, encoding: .utf8) == "Hello" && first.downloadedFile?.length == 5)
        // The file of the first operation stays.
        #expect(await failure(of: download { "new" })?.code == .destinationExists)
        #expect(try String(contentsOf: place, encoding: .utf8) == "Hello")
    }

    @Test("A rule that pauses operations sees a rejection in the body, and the operation succeeds when it runs again")
    func byHand() async throws {
        let unsigned = PostponedOperations("until you sign in") { $0.error.code == .credentialRejected }
        let operations = (0..<3).map { _ in operation(bench, nil) }
        for operation in operations {
            operation.postponed = unsigned
            operation.start()
        }
        await until { unsigned.count == 3 }
        unsigned.runAll { try $0.with("Authorization", "Bearer new") }
        for operation in operations { #expect(try await operation.value == "Hello") }
    }
}
