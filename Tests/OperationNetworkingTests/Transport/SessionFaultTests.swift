// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionFaultTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        /// Expects that the request fails, and that the session still works afterward.
        private func expectFailure(
            _ codes: Set<NetworkError.Code>, _ note: Comment, _ answer: @escaping @Sendable () -> LoopbackAnswer
        ) async throws {
            server.route("/fault") { _ in answer() }
            server.route("/next") { _ in .text("fine") }
            let record = try await session.run(server.url("/fault"))
            #expect(record.ends == 1 && record.isInOrder, note)
            let error = try #require(record.error, note)
            #expect(codes.contains(error.code), "\(note): \(error)")
            #expect(error.request?.method == "GET" && !error.isUnsent, note)
            let next = try await session.run(server.url("/next"))
            #expect(next.text == "fine" && next.error == nil, "\(note): \(String(describing: next.error))")
        }

        @Test(arguments: [
            "\0\0\0\0\0\0\0\0", "HTTP/1.1 200 OK\r\nContent-Length: 1 2\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        ])
        func `a response that is not valid HTTP fails with invalidResponse`(text: String) async throws {
            try await expectFailure([.invalidResponse], "\(text.debugDescription)") { .raw(text) }
        }

        @Test func `a body that ends before its length fails the request`() async throws {
            try await expectFailure([.truncatedBody], "length") {
                .raw("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nabc")
            }
            try await expectFailure([.truncatedBody], "chunks") {
                .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n")
            }
            try await expectFailure([.truncatedBody], "chunk") {
                .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHel")
            }
            try await expectFailure([.connectionLost], "reset") {
                LoopbackAnswer(.head(200, ["Content-Length": "9"]), .send("abc"), .pause(.milliseconds(50)), .reset)
            }
        }

        @Test
        func `refused connections, unknown hosts and failed TLS handshakes have separate error codes`() async throws {
            let port = server.port
            await server.stopped()
            let refused = try await session.run(#require(URL(string: "http://127.0.0.1:\(port)/")))
            #expect(refused.code == .cannotConnect && refused.error?.isUnsent == true)
            #expect(refused.error?.phase == .connecting)
            let unknown = try await session.run(#require(URL(string: "http://nothing.invalid/")))
            #expect(unknown.code == .cannotFindHost && unknown.error?.isUnsent == true)
            let other = try LoopbackServer()
            other.greet { _ in .raw("HTTP/1.1 400 Bad Request\r\n\r\n") }
            let plain = try await session.run(#require(URL(string: "https://127.0.0.1:\(other.port)/")))
            #expect(plain.code == .secureConnectionFailed && plain.error?.isUnsent == true)
        }

        @Test func `extra bytes after a body are not delivered as the next response`() async throws {
            server.route("/more") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "2"]), .send("okHTTP/1.1 500 No\r\n\r\n"))
            }
            server.route("/next") { _ in .text("fine") }
            #expect(try await session.run(server.url("/more")).text == "ok")
            #expect(try await session.run(server.url("/next")).text == "fine")
        }
    }
#endif
