// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
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

        private func expectWhole(_ record: RecordingReceiver.Record, _ note: Comment? = nil) {
            #expect(record.isInOrder && record.ends == 1, note)
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
            #expect(request["Expect"] == nil && record.progress == [7])
        }

        @Test func `a request without a body has Content-Length 0 for POST, PUT and PATCH only`() async throws {
            for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "GET"] {
                expectWhole(try await session.run(server.url("/up"), method), "\(method)")
            }
            let lengths = await server.requests(atLeast: 6).map { $0["Content-Length"] }
            #expect(lengths == ["0", "0", "0", nil, nil, nil])
        }

        @Test(arguments: [RequestBody.none, .data(Data())])
        func `a request without content expects no 100 Continue`(body: RequestBody) async throws {
            let options = with(TransferOptions()) { $0.expectsContinue = true }
            expectWhole(try await session.run(server.url("/up"), "POST", body: body, options: options))
            let request = await server.requests(atLeast: 1)[0]
            #expect(request["Expect"] == nil && request["Content-Length"] == "0")
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
            #expect(record.sent == Int64(count) && record.text == "\(count)")
        }

        @Test func `a file that changed, was deleted or is not a regular file is an error`() async throws {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("upload-\(UUID().uuidString)")
            try Data(count: 1000).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let region = try FileRegion(file)
            try Data(count: 900).write(to: file)
            let record = try await session.run(server.url("/up"), "PUT", body: .file(region))
            #expect(record.code == .bodyChanged && record.ends == 1)
            try FileManager.default.removeItem(at: file)
            #expect(try await session.run(server.url("/up"), "PUT", body: .file(region)).code == .bodyUnreadable)
            #expect(throws: NetworkError.self) { try FileRegion(file) }
            #expect(throws: NetworkError.self) { try FileRegion(URL(fileURLWithPath: "/dev/zero")) }
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

        @Test func `a stream is sent with its length, and one that ends early fails the task`() async throws {
            let known = RequestBody.stream(length: 300_000, canBeSentAgain: false) { slowProducer(300_000) }
            expectWhole(try await session.run(server.url("/up"), "POST", body: known))
            let request = await server.requests(atLeast: 1)[0]
            #expect(request["Content-Length"] == "300000" && request["Transfer-Encoding"] == nil)
            let short = RequestBody.stream(length: 400_000, canBeSentAgain: true) { slowProducer(300_000) }
            let record = try await session.run(server.url("/up"), "POST", body: short)
            #expect(record.code == .bodyLengthMismatch && record.ends == 1 && record.heads.isEmpty)
        }

        @Test func `an empty region of a file is sent with Content-Length 0`() async throws {
            let region = try FileRegion(try TemporaryFile(Data([1, 2, 3])).url, offset: 3)
            expectWhole(try await session.run(server.url("/up"), "PUT", body: .file(region)))
            #expect(await server.requests(atLeast: 1)[0]["Content-Length"] == "0")
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

        @Test func `a suspended upload stops, and arrives completely after it resumes`() async throws {
            let suspended = Gate()
            let box = Locked<(any NetworkTask)?>(nil)
            let body = RequestBody.stream(canBeSentAgain: false) {
                ClosureProducer { buffer, _, call in
                    if call == 5 {
                        box.withLock { $0 }?.suspend()
                        suspended.open()
                    }
                    guard call <= 100 else { return .end }
                    for index in 0..<10_000 { buffer[index] = UInt8(truncatingIfNeeded: call) }
                    return .bytes(10_000)
                }
            }
            let recorder = RecordingReceiver()
            let request = try NetworkRequest("POST", url: server.url("/up"), body: body)
            let task = session.makeTask(with: request, receiver: recorder)
            box.withLock { $0 = task }
            task.resume()
            await suspended.passage()
            server.route("/other") { _ in .text("other") }
            #expect(try await session.run(server.url("/other")).text == "other")
            #expect(recorder.record.sent == 50_000)
            task.resume()
            let record = await recorder.end()
            #expect(record.text == "1000000" && record.error == nil && record.isInOrder)
            box.withLock { $0 = nil }
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
            #expect(requests[3]["Transfer-Encoding"] == "chunked" && requests[3]["Content-Length"] == nil)
            #expect(server.counts.connections == 1)
        }
    }

#endif
