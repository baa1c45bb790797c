// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    private static func echoed(_ name: String, count: Int, _ body: @escaping @Sendable ([UInt8]) throws -> RequestBody)
        -> ConformanceCase
    {
        ConformanceCase(name, options: { $0.keptBodyBytes = 1 << 26 }) { bench async throws in
            bench.server.route("/") { _ in .status(204) }
            let bytes = TestPattern.bytes(count: count)
            let record = await bench.run(try bench.request("POST", body: try body(bytes)))
            #expect(record.status == 204, "\(String(describing: record.error))")
            let request = try #require(bench.server.requests.first)
            #expect(request.bodyCount == count)
            // Compared outside: what differs in millions of bytes takes for ever to be described.
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
        ConformanceCase(name) { bench async throws in
            bench.server.route("/") { _ in .status(204) }
            let record = await bench.run(try bench.request("POST", body: try body()))
            #expect(record.error.map { codes.contains($0.code) } == true, "\(String(describing: record.error))")
            // It must not look to the server like a body that is complete.
            #expect(bench.server.counts.requests == 0)
            try await bench.checkHealth()
        }
    }

    static var bodies: [ConformanceCase] {
        [
            echoed("a body in memory is sent with its length", count: 5) { .data(Data($0)) },
            echoed("a body of no bytes is sent with the length 0", count: 0) { .data(Data($0)) },
            echoed("a large body in memory is sent whole", count: 20 << 20) { .data(Data($0)) },
            echoed("a file is sent whole", count: 5 << 20) { .file(try FileRegion(try TemporaryFile(Data($0)).url)) },
            echoed("a part of a file is sent", count: 1 << 20) { bytes in
                let file = try TemporaryFile(Data([1, 2, 3] + bytes + [4, 5]))
                return .file(try FileRegion(file.url, offset: 3, length: Int64(bytes.count)))
            },
            echoed("an empty file is sent", count: 0) { .file(try FileRegion(try TemporaryFile(Data($0)).url)) },
            echoed("a stream of unknown length is sent in chunks", count: 1 << 20) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 10_000) }
            },
            echoed("a stream of known length is sent with it", count: 1 << 20) { bytes in
                .stream(length: Int64(bytes.count), canBeSentAgain: true) { PieceProducer(bytes, size: 10_000) }
            },
            echoed("a stream of single bytes is sent whole", count: 2_000) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 1) }
            },
            echoed("an empty stream is an empty body", count: 0) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 1) }
            },
            echoed("a stream that has nothing yet wakes the transfer later", count: 100_000) { bytes in
                .stream(canBeSentAgain: true) { PieceProducer(bytes, size: 5_000, isLate: true) }
            },
            echoed("a body sent after 100 Continue arrives whole", count: 100_000) { .data(Data($0)) },
            failing("a stream that fails is an error, and no body that is cut", .bodyUnreadable) {
                .stream(canBeSentAgain: true) {
                    PieceProducer(TestPattern.bytes(count: 50_000), size: 5_000, failsAt: 30_000)
                }
            },
            failing("a stream that is shorter than said is an error", .bodyLengthMismatch, .bodyUnreadable) {
                .stream(length: 60_000, canBeSentAgain: true) {
                    PieceProducer(TestPattern.bytes(count: 50_000), size: 5_000)
                }
            },
            failing("a stream that cannot be opened is an error", .bodyUnreadable) {
                .stream(canBeSentAgain: true) { throw PieceProducer.Failure() }
            },
            failing("a file that is gone is an error", .bodyUnreadable, .bodyChanged) {
                let file = try TemporaryFile(Data(count: 100))
                let region = try FileRegion(file.url)
                try FileManager.default.removeItem(at: file.url)
                return .file(region)
            },
            failing("a file that was shortened is an error", .bodyChanged) {
                let file = try TemporaryFile(Data(count: 1 << 20))
                let region = try FileRegion(file.url)
                try FileHandle(forWritingTo: file.url).truncate(atOffset: 1_000)
                return .file(region)
            },
            failing("a stream that is longer than said is an error, never a second request", .bodyLengthMismatch) {
                .stream(length: 5, canBeSentAgain: true) {
                    PieceProducer(Array("helloGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n".utf8), size: 100)
                }
            },
            failing("a file that was empty and is so no more is an error", .bodyChanged) {
                let file = try TemporaryFile(Data())
                let region = try FileRegion(file.url)
                try Data([1]).write(to: file.url)
                return .file(region)
            },
            ConformanceCase("a POST without a body has the length 0, or none") { bench async throws in
                bench.server.route("/") { _ in .status(204) }
                #expect(try await bench.run(bench.request("POST")).status == 204)
                #expect(["0", nil].contains(bench.server.requests.first?["Content-Length"]))
                #expect(bench.server.requests.first?["Transfer-Encoding"] == nil)
            },
            ConformanceCase("no type is invented for a body") { bench async throws in
                bench.server.route("/") { _ in .status(204) }
                _ = await bench.run(try bench.request("POST", body: .data(Data("a=b".utf8))))
                #expect(bench.server.requests.first?["Content-Type"] == nil)
            },
            ConformanceCase("a body waits for 100 Continue if it is told to") { bench async throws in
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
                #expect(await running.end().status == 204)
                #expect(bench.server.requests.first?.bodyCount == 100_000)
            },
            ConformanceCase(
                "a server that says nothing about 100 Continue gets the body all the same",
                options: { $0.sendsContinue = false }
            ) { bench async throws in
                bench.server.route("/") { _ in .status(204) }
                let request = try bench.request("POST", body: .data(Data(count: 10))) { $0.expectsContinue = true }
                #expect(await bench.run(request).status == 204)
                #expect(bench.server.requests.first?.bodyCount == 10)
            },
            ConformanceCase("a refusal in the place of 100 Continue keeps the body back") { bench async throws in
                bench.server.routeEarly("/") { _ in LoopbackAnswer(.head(417, ["Content-Length": "0"]), .close) }
                let request = try bench.request("POST", body: .data(Data(count: 10 << 20))) {
                    $0.expectsContinue = true
                }
                #expect(await bench.run(request).status == 417)
                #expect(bench.server.counts.bodyBytes == 0)
            },
            ConformanceCase("an answer that comes while the body is still sent is handed over") { bench async throws in
                bench.server.routeEarly("/") { _ in .text("too large", status: 413).with("Connection", "close") }
                let record = await bench.run(try bench.request("POST", body: .data(Data(count: 20 << 20))))
                #expect(record.status == 413)
                #expect(record.text == "too large")
                try await bench.checkHealth()
            },
            ConformanceCase("a body goes up while the answer comes down") { bench async throws in
                bench.server.routeEarly("/") { _ in .echo }
                let bytes = TestPattern.bytes(count: 4 << 20)
                let body = RequestBody.stream(canBeSentAgain: true) { PieceProducer(bytes, size: 50_000) }
                let record = await bench.run(try bench.request("POST", body: body))
                #expect(record.isSuccess, "\(String(describing: record.error))")
                #expect(record.bodyCount == bytes.count)
                #expect(record.isPattern)
            },
            ConformanceCase(
                "a server that reads slowly gets every byte once", options: { $0.receiveBufferSize = 8_192 }
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
            ConformanceCase("a server that breaks off in the middle of the body is an error") { bench async throws in
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
