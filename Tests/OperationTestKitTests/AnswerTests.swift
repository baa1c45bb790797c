// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Short forms for responses and header fields of the stub session and the loopback server.
@Suite(.timeLimit(.minutes(2)))
struct AnswerTests {
    private func fetch(_ url: URL, _ session: any NetworkSession) -> NetworkDataOperation<String> {
        let operation = NetworkDataOperation(url: url, urlSession: session) { data, response in
            "\(response.value(forHTTPHeaderField: "Content-Type") ?? "none") \(String(decoding: data, as: UTF8.self))"
        }
        operation.start()
        return operation
    }

    @Test func `both servers send responses in turn and then repeat the last one`() async throws {
        let stub = StubSession(), server = try LoopbackServer()
        stub.route("GET", "/", inTurn: .status(503), .text("one"), .text("two"))
        server.route("GET", "/", inTurn: .status(503), .text("one"), .text("two"))
        let url = try #require(URL(string: "http://example.com/"))
        for (url, session) in [(url, stub as any NetworkSession), (server.url(), DefaultNetworkSession.standard)] {
            try await fetch(url, session).expectFailure(.unacceptableStatus, status: 503)
            for wanted in ["one", "two", "two"] {
                #expect(try await fetch(url, session).expectSuccess().hasSuffix(" \(wanted)"))
            }
        }
    }

    @Test func `with replaces headers of the same name, and adding keeps them`() async throws {
        let server = try LoopbackServer()
        server.route("GET", "/") { _ in
            .text("x").with("content-type", "text/csv").adding("X-One", "1").adding("X-One", "2")
        }
        let operation = fetch(server.url(), DefaultNetworkSession.standard)
        try await operation.expectSuccess("text/csv x")
        #expect(operation.responseHead?.headers.values("Content-Type") == ["text/csv"])
        #expect(operation.responseHead?.headers.values("x-one") == ["1", "2"])
        var fields = [LoopbackField("X-One", "1"), LoopbackField("x-one", "2"), LoopbackField("A", "b")]
        fields.set("X-One", "3")
        fields.set("X-Two", "4")
        #expect(fields.map(\.description) == ["X-One: 3", "A: b", "X-Two: 4"])
        let stub = StubSession()
        stub.route("GET", "/") { _ in .json(encoding: ["a": 1]).with("Content-Type", "text/csv").adding("X", "1") }
        let url = try #require(URL(string: "http://example.com/"))
        try await fetch(url, stub).expectSuccess(#"text/csv {"a":1}"#)
    }

    @Test func `a value that cannot be encoded produces a response that explains the failure`() async throws {
        let stub = StubSession(), server = try LoopbackServer()
        stub.route("GET", "/") { _ in .json(encoding: [Double.nan]) }
        server.route("GET", "/") { _ in .json(encoding: [Double.nan]) }
        let url = try #require(URL(string: "http://example.com/"))
        for (url, session) in [(url, stub as any NetworkSession), (server.url(), DefaultNetworkSession.standard)] {
            let error = try await fetch(url, session).expectFailure(.unacceptableStatus, status: 500)
            let text = error.bodyPrefix.map { String(decoding: $0, as: UTF8.self) }
            #expect(text?.hasPrefix("The response of the test cannot be encoded") == true)
        }
    }

    @Test func `a custom error of a test is delivered unchanged`() async throws {
        let stub = StubSession()
        let own = NetworkError(code: .timedOut, phase: .receiving, message: "Too slow for this test.")
        stub.route("GET", "/") { _ in StubAnswer(.head(200), .bytes("x"), .fail(own)) }
        let error = try await fetch(try #require(URL(string: "http://example.com/a?b=c")), stub)
            .expectFailure(.unacceptableStatus)
        #expect(error.status == 404)
        let url = try #require(URL(string: "http://example.com/?b=c"))
        let told = try await fetch(url, stub).expectFailure(.timedOut)
        #expect(told.message == "Too slow for this test." && told.request?.url == "http://example.com/?b=***")
    }
}
