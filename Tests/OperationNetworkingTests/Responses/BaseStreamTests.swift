// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Streams and events of a base", .timeLimit(.minutes(3)))
struct BaseStreamTests {
    private struct Problem: Error, Decodable { let reason: String }

    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    private var base: NetworkBase {
        var base = NetworkBase(bench.server.url("/api?key=1"))
        base.session = bench.session
        base.headers["X-Client"] = "test"
        return base
    }

    @Test func `a stream uses the URL, the headers and the session of its base`() async throws {
        bench.server.route("/api/log") { request in
            .chunks(["\(request.method) \(request.target)\n", "\(request["X-Client"] ?? "") \(request.text)"])
        }
        var lines: [String] = []
        for try await line in try await base.stream("log", ["since": 7]).lines { lines.append(line) }
        for try await line in try await base.stream(Endpoint<Data>.post("log", json: [1])).lines { lines.append(line) }
        #expect(lines == ["GET /api/log?key=1&since=7", "test ", "POST /api/log?key=1", "test [1]"])
    }

    @Test func `the rules of the base define accepted statuses, content types and API errors`() async throws {
        bench.server.route("GET", "/api/full") { _ in .json(#"{"reason":"full"}"#, status: 507) }
        bench.server.route("GET", "/api/page") { _ in .text("<html>captive portal</html>") }
        var base = base
        base.rules.decodeError = ResponseRules.jsonError(Problem.self)
        let full = await #expect(throws: NetworkError.self) { try await base.stream("full") }
        #expect(full?.code == .unacceptableStatus && full?.status == 507)
        #expect((full?.apiError as? Problem)?.reason == "full")
        #expect(full?.bodyPrefix == Data(#"{"reason":"full"}"#.utf8))
        base.rules.statuses = .success(or: 507)
        #expect(try await base.stream("full").head.status == 507)
        let page = await #expect(throws: NetworkError.self) {
            try await base.stream("page", headers: ["Accept": "application/x-ndjson"])
        }
        #expect(page?.code == .unacceptableContentType && page?.request?.method == "GET")
        await bench.server.counts { $0.openConnections <= 1 }
    }

    @Test func `server-sent events use the headers of the base, with any method`() async throws {
        bench.server.route("/api/chat") { request in
            guard request.number % 2 == 0 else { return .status(204) }
            let said = "\(request.method) \(request.target) \(request["X-Client"] ?? "") \(request.text)"
            return LoopbackAnswer(
                .head(200, ["Content-Type": "text/event-stream"]), .send("retry: 1\ndata: \(said)\n\n"), .close)
        }
        var said: [String] = []
        for try await event in try base.events("chat", ["a": 1]) { said.append(event.data) }
        let asked = Endpoint<Data>.post("chat", json: ["ask"])
        for try await event in try base.events(asked, silence: .seconds(30)) { said.append(event.data) }
        #expect(said == ["GET /api/chat?key=1&a=1 test ", "POST /api/chat?key=1 test [\"ask\"]"])
        #expect(bench.server.requests.allSatisfy { $0["Accept"] == "text/event-stream" })
        #expect(throws: NetworkError.self) { try base.events("../x") }
    }
}
