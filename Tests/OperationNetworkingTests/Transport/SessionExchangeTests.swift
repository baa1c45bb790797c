// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionExchangeTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        private func expectWhole(_ record: TransferRecorder.Record, _ note: Comment? = nil) {
            #expect(record.disorder.isEmpty && record.ends.count == 1, note)
            #expect(record.error == nil, note)
            #expect(record.metrics.count == 1)
            #expect(server.violations.isEmpty, note)
        }

        @Test func `a body with Content-Length arrives completely`() async throws {
            server.route("GET", "/a") { _ in .text("Hello").with("X-One", "1").adding("x-one", " 2 ") }
            let record = try await session.run(server.url("/a?b=c"), headers: ["X-Empty": "", "X-Text": "ü"])
            expectWhole(record)
            #expect(record.status == 200 && record.text == "Hello")
            #expect(record.heads[0].headers.values("X-ONE") == ["1", "2"])
            #expect(record.heads[0].expectedLength == 5 && record.heads[0].reason == "OK")
            #expect(record.heads[0].version == .http1_1)
            let request = await server.requests(atLeast: 1)[0]
            #expect(request.target == "/a?b=c" && request["X-Empty"] == "" && request["X-Text"] == "ü")
        }

        @Test func `a chunked body arrives completely, with its trailers delivered separately`() async throws {
            server.route("/t") { _ in .chunks(["Hel", "lo"], trailers: ["X-Checksum": "abc", "X-Empty": ""]) }
            let record = try await session.run(server.url("/t"))
            expectWhole(record)
            #expect(record.text == "Hello" && record.heads[0].expectedLength == nil)
            #expect(record.trailers == [["X-Checksum": "abc", "X-Empty": ""]])
        }

        @Test func `a body that ends when the connection closes arrives completely`() async throws {
            server.route("/c") { _ in .raw("HTTP/1.0 200 OK\r\n\r\nHello") }
            let record = try await session.run(server.url("/c"))
            expectWhole(record)
            #expect(record.text == "Hello" && record.heads[0].version == .http1_0)
        }

        @Test(arguments: [204, 205, 304, 200, 404, 500, 599, 999])
        func `a response without a body succeeds`(status: Int) async throws {
            server.route("/s") { _ in .status(status) }
            let record = try await session.run(server.url("/s"))
            expectWhole(record)
            #expect(record.status == status && record.bodyCount == 0)
        }

        @Test func `a response to HEAD has an expected length and no body`() async throws {
            server.route("GET", "/h") { _ in .text("Hello") }
            let record = try await session.run(server.url("/h"), "HEAD")
            expectWhole(record)
            #expect(record.bodyCount == 0 && record.heads[0].expectedLength == 5)
            let next = try await session.run(server.url("/h"))
            expectWhole(next)
            #expect(next.text == "Hello" && server.counts.connections == 1)
        }

        @Test func `informational responses are delivered separately`() async throws {
            server.route("/i") { _ in
                .text("Hello").preceded(by: .head(103, ["Link": "</a>"]), .head(100), .head(103, ["Link": "</b>"]))
            }
            let record = try await session.run(server.url("/i"))
            expectWhole(record)
            #expect(record.informational.map(\.status) == [103, 100, 103])
            #expect(record.informational[2].headers["link"] == "</b>" && record.heads[0].headers["link"] == nil)
            #expect(record.text == "Hello")
        }

        @Test(arguments: [
            ("HTTP/1.1 200\r\nContent-Length:2\r\n\r\nok", ""), ("HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", ""),
            ("HTTP/1.1 200 OK\r\nA:  b  \r\nContent-Length: 2\r\n\r\nok", "b"),
            ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok", "b c"),
            ("HTTP/1.1 200 OK\r\nA:b\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "b"),
            ("HTTP/1.1 200 OK\nA: b\nContent-Length: 2\n\nok", "b"),
        ])
        func `unusual but valid headers are accepted`(text: String, value: String) async throws {
            server.route("/u") { _ in .raw(text) }
            let record = try await session.run(server.url("/u"))
            expectWhole(record, "\(text)")
            #expect(record.text == "ok" && record.heads[0].headers["A"] ?? "" == value)
        }

        @Test func `header bytes that are not UTF-8 are read as Latin-1`() async throws {
            let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: ".utf8) + [0xE4] + Array("\r\n\r\n".utf8)
            server.route("/l") { _ in .raw(head) }
            #expect(try await session.run(server.url("/l")).heads[0].headers["A"] == "ä")
        }

        @Test func `redirects and challenges are delivered like other responses`() async throws {
            server.route("/r") { _ in .redirect(to: "//[::1]/") }
            server.route("/401") { _ in .status(401, ["WWW-Authenticate": "Basic realm=\"x\""]) }
            let redirect = try await session.run(server.url("/r"))
            expectWhole(redirect)
            #expect(redirect.status == 302 && redirect.heads[0].headers["Location"] == "//[::1]/")
            let challenge = try await session.run(server.url("/401"))
            expectWhole(challenge)
            #expect(challenge.status == 401)
            #expect(await server.requests(atLeast: 2).count == 2)
        }

        @Test func `a large body arrives completely in parts of limited size`() async throws {
            let count = 32 << 20
            server.route("/big") { _ in .repeating(TestPattern.block, count: count) }
            let largest = Locked(0)
            let receiver = RecordingReceiver { event, _ in
                if case .bytes(let count) = event { largest.withLock { $0 = max($0, count) } }
            }
            session.makeTask(with: try NetworkRequest(url: server.url("/big")), receiver: receiver).resume()
            let record = await receiver.end()
            #expect(record.isSuccess && record.bodyCount == count && record.isPattern && record.faults.isEmpty)
            #expect(largest.withLock { $0 } <= 64 << 10)
        }

        @Test func `a compressed body is decompressed unless the request sets Accept-Encoding or disables decoding`()
            async throws
        {
            server.route("/z") { _ in
                .bytes(Compressed.hello, fields: [LoopbackField("Content-Encoding", "gzip")])
            }
            let record = try await session.run(server.url("/z"))
            expectWhole(record)
            #expect(record.text == "Hello, gzip. Hello, gzip. Hello, gzip. ")
            #expect(record.heads[0].isDecoded && record.heads[0].expectedLength == nil)
            let raw = try await session.run(server.url("/z"), headers: ["Accept-Encoding": "gzip"])
            expectWhole(raw)
            #expect(raw.body == Compressed.hello && !raw.heads[0].isDecoded)
            let options = with(TransferOptions()) { $0.decodesContent = false }
            #expect(try await session.run(server.url("/z"), options: options).body == Compressed.hello)
            let requests = await server.requests(atLeast: 3)
            #expect(requests[0]["Accept-Encoding"]?.contains("gzip") == true)
            #expect(requests[1].values("Accept-Encoding") == ["gzip"] && requests[2]["Accept-Encoding"] == nil)
        }

        @Test func `metrics report the connection and the phases`() async throws {
            server.route("/m") { _ in .text("Hello") }
            let first = try #require(try await session.run(server.url("/m")).metrics.first)
            #expect(!first.isConnectionReused && first.connected != nil && first.version == .http1_1)
            #expect(first.remoteAddress == "127.0.0.1:\(server.port)" && first.bodyBytesReceived == 5)
            #expect(first.headerBytesReceived > 20)
            let moments = [first.slotGranted, first.connected, first.requestBegan, first.firstByte, first.ended]
            #expect(moments.compactMap { $0 } == moments.compactMap { $0 }.sorted() && !moments.contains(nil))
            let second = try #require(try await session.run(server.url("/m")).metrics.first)
            #expect(second.isConnectionReused && second.connected == nil && server.counts.connections == 1)
        }
    }

    enum Compressed {
        /// A greeting that is repeated three times.
        static let hello: [UInt8] = [
            0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0xD7,
            0x51, 0x48, 0xAF, 0xCA, 0x2C, 0xD0, 0x53, 0xF0, 0xC0, 0xC9, 0x01, 0x00, 0xFF, 0xB3, 0x54, 0xA8,
            0x27, 0x00, 0x00, 0x00,
        ]

        /// 4 MiB of zeros.
        static let zeros: [UInt8] =
            [
                0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xED, 0xC1, 0x01, 0x01, 0x00, 0x00, 0x00,
                0x82, 0x20, 0xFF, 0xAF, 0x6E, 0x48, 0x40, 0x01,
            ] + [UInt8](repeating: 0x00, count: 4063)
            + [0x7C, 0x1B, 0x6A, 0x40, 0x47, 0x11, 0x00, 0x00, 0x40, 0x00]
    }
#endif
