// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionUploadTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/up") { request in .text("\(request.bodyCount)") }
        }

        /// A producer of small parts that has no bytes at every other call.
        private func slowProducer(_ count: Int) -> PieceProducer {
            PieceProducer(
                [UInt8](unsafeUninitializedCapacity: count) { bytes, size in
                    for index in 0..<count { bytes[index] = UInt8(truncatingIfNeeded: index) }
                    size = count
                }, size: 20_000, isLate: true)
        }

        private func expectWhole(_ record: TransferRecorder.Record, _ note: Comment? = nil) {
            #expect(record.disorder.isEmpty && record.ends.count == 1, note)
            #expect(record.error == nil, note)
            #expect(server.violations.isEmpty, note)
        }

        @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
        func `every method sends its body`(method: String) async throws {
            let record = try await session.run(server.url("/up"), method, body: .data(Data("content".utf8)))
            expectWhole(record)
            let request = await server.requests(atLeast: 1)[0]
            #expect(request.method == method && request.text == "content")
            #expect(request.values("Content-Length") == ["7"] && request["Content-Type"] == nil)
            #expect(request["Expect"] == nil && record.sent == [7])
        }

        @Test func `a request without a body has Content-Length 0 for POST, PUT and PATCH only`() async throws {
            for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET"] {
                expectWhole(try await session.run(server.url("/up"), method), "\(method)")
            }
            let lengths = await server.requests(atLeast: 6).map { $0["Content-Length"] }
            #expect(lengths == ["0", "0", "0", nil, nil, nil])
        }

        @Test(arguments: [0, 1, 65_536, 65_537, 3_000_000])
        func `a body of any size arrives completely`(count: Int) async throws {
            let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            // A slice of a larger value, whose indices do not begin at zero.
            let part = (Data([1, 2, 3]) + data)[3...]
            let record = try await session.run(
                server.url("/up"), "POST", headers: ["Content-Type": "x/y"], body: .data(part))
            expectWhole(record)
            let request = await server.requests(atLeast: 1)[0]
            #expect(request.bodyCount == count && request["Content-Type"] == "x/y")
            #expect(request.body.elementsEqual(data.prefix(1 << 20)))
            #expect(record.sent.last ?? 0 == Int64(count) && record.text == "\(count)")
        }

        @Test func `a file, a region of a file and an empty region are sent`() async throws {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("upload-\(UUID().uuidString)")
            let content = Data((0..<500_000).map { UInt8(truncatingIfNeeded: $0) })
            try content.write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            expectWhole(try await session.run(server.url("/up"), "PUT", body: .file(FileRegion(file))))
            let part = try FileRegion(file, offset: 100, length: 50)
            expectWhole(try await session.run(server.url("/up"), "PUT", body: .file(part)))
            let empty = try FileRegion(file, offset: 500_000)
            expectWhole(try await session.run(server.url("/up"), "PUT", body: .file(empty)))
            let requests = await server.requests(atLeast: 3)
            #expect(requests[0].body.elementsEqual(content) && requests[1].body.elementsEqual(content[100..<150]))
            #expect(requests[2].bodyCount == 0 && requests[2]["Content-Length"] == "0")
        }

        @Test func `a file that changed, was deleted or is not a regular file is an error`() async throws {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("upload-\(UUID().uuidString)")
            try Data(count: 1000).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let region = try FileRegion(file)
            try Data(count: 900).write(to: file)
            let record = try await session.run(server.url("/up"), "PUT", body: .file(region))
            #expect(record.code == .bodyChanged && record.ends.count == 1)
            try FileManager.default.removeItem(at: file)
            #expect(try await session.run(server.url("/up"), "PUT", body: .file(region)).code == .bodyUnreadable)
            #expect(throws: NetworkError.self) { try FileRegion(file) }
            #expect(throws: NetworkError.self) { try FileRegion(URL(fileURLWithPath: "/dev/zero")) }
        }

        @Test(arguments: [Int64?.none, 300_000])
        func `a stream with or without a length is sent as its bytes are produced`(length: Int64?) async throws {
            let body = RequestBody.stream(length: length, canBeSentAgain: false) { slowProducer(300_000) }
            let record = try await session.run(server.url("/up"), "POST", body: body)
            expectWhole(record)
            let request = await server.requests(atLeast: 1)[0]
            #expect(request.body.elementsEqual((0..<300_000).map { UInt8(truncatingIfNeeded: $0) }))
            #expect(request["Transfer-Encoding"] == (length == nil ? "chunked" : nil))
            #expect(request["Content-Length"] == length.map { "\($0)" })
        }

        @Test func `a producer that fails or ends early fails the task`() async throws {
            struct Odd: Error {}
            let failing = RequestBody.stream(canBeSentAgain: true) { throw Odd() }
            #expect(try await session.run(server.url("/up"), "POST", body: failing).code == .bodyUnreadable)
            let short = RequestBody.stream(length: 400_000, canBeSentAgain: true) { slowProducer(300_000) }
            let record = try await session.run(server.url("/up"), "POST", body: short)
            #expect(record.code == .bodyLengthMismatch && record.ends.count == 1 && record.heads.isEmpty)
        }

        @Test func `a stream of length 0 is sent if it is empty and refused otherwise`() async throws {
            let count = server.counts.heads
            let full = RequestBody.stream(length: 0, canBeSentAgain: true) { PieceProducer([1], size: 1) }
            #expect(try await session.run(server.url("/up"), "POST", body: full).code == .bodyLengthMismatch)
            #expect(server.counts.heads == count)
            let empty = RequestBody.stream(length: 0, canBeSentAgain: true) { PieceProducer([], size: 1) }
            expectWhole(try await session.run(server.url("/up"), "POST", body: empty))
            #expect(await server.requests(atLeast: 1)[0]["Content-Length"] == "0")
        }

        @Test func `a body with expectsContinue waits for 100 Continue`() async throws {
            let options = with(TransferOptions()) { $0.expectsContinue = true }
            let record = try await session.run(
                server.url("/up"), "POST", body: .data(Data("content".utf8)), options: options)
            expectWhole(record)
            #expect(record.informational.map(\.status) == [100])
            let request = await server.requests(atLeast: 1)[0]
            #expect(request["Expect"] == "100-continue" && request.text == "content")
        }

        @Test func `an early response is delivered although the server did not read the body`() async throws {
            server.routeEarly("POST", "/early") { _ in
                LoopbackAnswer(
                    .stopReading, .head(413, ["Content-Length": "5", "Connection": "close"]), .send("large"),
                    .closeSending)
            }
            let body = RequestBody.stream(length: 50 << 20, canBeSentAgain: false) { slowProducer(50 << 20) }
            let record = try await session.run(server.url("/early"), "POST", body: body)
            #expect(record.status == 413 && record.text == "large")
        }

        @Test func `requests of all kinds succeed in sequence over one connection`() async throws {
            let stream = RequestBody.stream(canBeSentAgain: true) { slowProducer(10) }
            for (method, body) in [
                ("GET", RequestBody.none), ("POST", .data(Data("a".utf8))), ("GET", .none), ("PUT", stream),
                ("HEAD", .none),
                ("POST", .none), ("PUT", .data(Data(count: 100_000))), ("DELETE", .none),
                ("POST", .data(Data("b".utf8))),
                ("POST", .data(Data("c".utf8))), ("GET", .none), ("HEAD", .none), ("GET", .none),
            ] {
                let headers: HeaderFields = body.isNone ? [:] : ["Content-Type": "a/b"]
                expectWhole(try await session.run(server.url("/up"), method, headers: headers, body: body), "\(method)")
            }
            let requests = await server.requests(atLeast: 13)
            #expect(requests.map(\.bodyCount) == [0, 1, 0, 10, 0, 0, 100_000, 0, 1, 1, 0, 0, 0])
            #expect(requests.map { $0["Content-Type"] == nil } == requests.map { $0.bodyCount == 0 })
            #expect(server.counts.connections == 1)
        }
    }

#endif
