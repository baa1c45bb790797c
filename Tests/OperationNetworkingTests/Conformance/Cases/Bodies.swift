// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    private static func echoed(_ name: String, count: Int, _ body: @escaping @Sendable ([UInt8]) throws -> RequestBody)
        -> ConformanceCase
    {
        withNoContent(name, options: { $0.keptBodyBytes = 1 << 26 }) { bench async throws in
            let bytes = TestPattern.bytes(count: count)
            let record = await bench.run(try bench.request("POST", body: try body(bytes)))
            #expect(record.status == 204, "\(String(describing: record.error))")
            let request = try #require(bench.server.requests.first)
            #expect(request.bodyCount == count)
            // Compared outside of #expect, which would take too long to describe a difference in millions of bytes.
            let isSame = request.body == bytes
            #expect(isSame)
            #expect(record.sent == Int64(count))
            #expect(bench.server.counts.heads == 1)
            try await bench.checkHealth()
        }
    }

    private static func failing(
        _ name: String, _ codes: NetworkError.Code..., body: @escaping @Sendable () throws -> RequestBody
    ) -> ConformanceCase {
        withNoContent(name) { bench async throws in
            let record = await bench.run(try bench.request("POST", body: try body()))
            #expect(record.error.map { codes.contains($0.code) } == true, "\(String(describing: record.error))")
            // The server must not see a complete body.
            #expect(bench.server.counts.requests == 0)
            try await bench.checkHealth()
        }
    }

    static var bodies: [ConformanceCase] {
        [
            echoed("an in-memory body is sent completely", count: 5) { .data(Data($0)) },
            echoed("an empty in-memory body is sent as an empty body", count: 0) { .data(Data($0)) },
            echoed("a large in-memory body is sent completely", count: 20 << 20) { .data(Data($0)) },
            echoed(
                "a file is sent completely", count: 5 << 20
            ) { .file(try FileRegion(try TemporaryFile(Data($0)).url)) },
            echoed("a region of a file is sent without the bytes around it", count: 1 << 20) { bytes in
                let file = try TemporaryFile(Data([1, 2, 3] + bytes + [4, 5]))
                return .file(try FileRegion(file.url, offset: 3, length: Int64(bytes.count)))
            },
            echoed(
                "an empty file is sent as an empty body", count: 0
            ) { .file(try FileRegion(try TemporaryFile(Data($0)).url)) },
            echoed("an empty region of a file is sent as an empty body", count: 0) { _ in
                .file(try FileRegion(try TemporaryFile(Data([1, 2, 3])).url, offset: 3))
            },
            echoed("a stream of unknown length is sent completely", count: 1 << 20) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 10_000) }
            },
            echoed("a stream of known length is sent completely", count: 1 << 20) { bytes in
                .stream(length: Int64(bytes.count), canBeSentAgain: true) { PieceProducer(bytes, size: 10_000) }
            },
            echoed("a stream that produces one byte at a time is sent completely", count: 2_000) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 1) }
            },
            echoed("an empty stream is sent as an empty body", count: 0) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 1) }
            },
            echoed("a stream whose bytes are not yet available is sent completely later", count: 100_000) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 5_000, isLate: true) }
            },
            echoed("a body of 100,000 bytes arrives completely", count: 100_000) { .data(Data($0)) },
            failing("a stream that fails ends the request with an error instead of a truncated body", .bodyUnreadable) {
                .stream(canBeSentAgain: true) {
                    PieceProducer(TestPattern.bytes(count: 50_000), size: 5_000, failsAt: 30_000)
                }
            },
            failing(
                "a stream that is shorter than its stated length fails the request", .bodyLengthMismatch,
                .bodyUnreadable
            ) {
                .stream(length: 60_000, canBeSentAgain: true) {
                    PieceProducer(TestPattern.bytes(count: 50_000), size: 5_000)
                }
            },
            failing("a stream that cannot be opened fails the request", .bodyUnreadable) {
                .stream(canBeSentAgain: true) { throw PieceProducer.Failure() }
            },
            failing("a file that was deleted fails the request", .bodyUnreadable, .bodyChanged) {
                let file = try TemporaryFile(Data(count: 100))
                let region = try FileRegion(file.url)
                try FileManager.default.removeItem(at: file.url)
                return .file(region)
            },
            failing("a file that was truncated fails the request", .bodyChanged) {
                let file = try TemporaryFile(Data(count: 1 << 20))
                let region = try FileRegion(file.url)
                try FileHandle(forWritingTo: file.url).truncate(atOffset: 1_000)
                return .file(region)
            },
            failing(
                "a stream that is longer than its stated length fails and never becomes a second request",
                .bodyLengthMismatch
            ) {
                .stream(length: 5, canBeSentAgain: true) {
                    PieceProducer(Array("helloGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n".utf8), size: 100)
                }
            },
            failing("a file that was empty but has grown fails the request", .bodyChanged) {
                let file = try TemporaryFile(Data())
                let region = try FileRegion(file.url)
                try Data([1]).write(to: file.url)
                return .file(region)
            },
            withNoContent("a POST without a body has Content-Length 0 or no Content-Length") { bench async throws in
                #expect(try await bench.run(bench.request("POST")).status == 204)
                #expect(["0", nil].contains(bench.server.requests.first?["Content-Length"]))
                #expect(bench.server.requests.first?["Transfer-Encoding"] == nil)
            },
            withNoContent("no Content-Type is added to a body") { bench async throws in
                _ = await bench.run(try bench.request("POST", body: .data(Data("a=b".utf8))))
                #expect(bench.server.requests.first?["Content-Type"] == nil)
            },
            ConformanceCase("a body with expectsContinue waits for 100 Continue") { bench async throws in
                let gate = Gate()
                bench.server.routeEarly("/") { _ in
                    LoopbackAnswer(.stall(until: gate), .head(100), .awaitBody, .head(204))
                }
                let running = bench.start(
                    try bench.request("POST", body: .data(Data(TestPattern.bytes(count: 100_000)))) {
                        $0.expectsContinue = true
                    })
                let heads = await bench.server.heads(atLeast: 1)
                #expect(heads.first?["Expect"] == "100-continue")
                #expect(bench.server.counts.bodyBytes == 0)
                gate.open()
                let record = await running.end()
                #expect(record.status == 204 && record.informational.map(\.status) == [100])
                #expect(bench.server.requests.first?.bodyCount == 100_000)
            },
            withNoContent(
                "a server that never sends 100 Continue still receives the body",
                options: { $0.sendsContinue = false }
            ) { bench async throws in
                let request = try bench.request("POST", body: .data(Data(count: 10))) { $0.expectsContinue = true }
                #expect(await bench.run(request).status == 204)
                #expect(bench.server.requests.first?.bodyCount == 10)
            },
            ConformanceCase("the body is not sent if the server refuses instead of sending 100 Continue") {
                bench async throws in
                bench.server.routeEarly("/") { _ in LoopbackAnswer(.head(417, ["Content-Length": "0"]), .close) }
                let request = try bench.request("POST", body: .data(Data(count: 10 << 20))) {
                    $0.expectsContinue = true
                }
                #expect(await bench.run(request).status == 417)
                #expect(bench.server.counts.bodyBytes == 0)
            },
            ConformanceCase("a response that arrives during the upload is delivered") { bench async throws in
                bench.server.routeEarly("/") { _ in .text("too large", status: 413).with("Connection", "close") }
                let record = await bench.run(try bench.request("POST", body: .data(Data(count: 20 << 20))))
                #expect(record.status == 413)
                #expect(record.text == "too large")
                try await bench.checkHealth()
            },
            ConformanceCase("the request body is sent while the response body is received") { bench async throws in
                bench.server.routeEarly("/") { _ in .echo }
                let bytes = TestPattern.bytes(count: 4 << 20)
                let body = RequestBody.stream(canBeSentAgain: true) { PieceProducer(bytes, size: 50_000) }
                let record = await bench.run(try bench.request("POST", body: body))
                #expect(record.isSuccess, "\(String(describing: record.error))")
                #expect(record.bodyCount == bytes.count)
                #expect(record.isPattern)
            },
            ConformanceCase(
                "a server that reads slowly receives every byte exactly once", options: { $0.receiveBufferSize = 8_192 }
            ) {
                bench in
                bench.server.routeEarly("/") { _ in
                    LoopbackAnswer(.readSlowly(size: 60_000, every: .milliseconds(1)), .awaitBody, .head(204))
                }
                let bytes = TestPattern.bytes(count: 1 << 20)
                let record = await bench.run(try bench.request("PUT", body: .data(Data(bytes))))
                #expect(record.status == 204)
                let isSame = bench.server.requests.first?.body == bytes
                #expect(isSame)
            },
            ConformanceCase("a connection that the server resets during the upload fails with connectionLost") {
                bench async throws in
                bench.server.routeEarly("/") { _ in LoopbackAnswer(.awaitBody(atLeast: 10_000), .reset) }
                let record = await bench.run(try bench.request("POST", body: .data(Data(count: 20 << 20))))
                #expect(record.error?.code == .connectionLost, "\(String(describing: record.error))")
                #expect(record.error?.isUnsent == false)
                #expect(bench.server.counts.heads == 1)
                try await bench.checkHealth()
            },
        ]
    }
}
