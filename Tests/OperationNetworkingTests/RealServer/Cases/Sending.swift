// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension RealServerCase {
        private static let count = 3 << 20

        private static func uploaded(
            _ name: String, count: Int = count, _ body: @escaping @Sendable ([UInt8]) throws -> RequestBody
        ) -> RealServerCase {
            RealServerCase(name) { bench async throws in
                let file = UUID().uuidString
                let bytes = TestPattern.bytes(count: count)
                let record = await bench.run(try bench.request("PUT", "/files/\(file)", body: try body(bytes)))
                #expect(record.status == 201, "\(String(describing: record.error))")
                #expect(record.sent == Int64(count))
                #expect(try Data(contentsOf: bench.server.uploaded(file)) == Data(bytes))
                #expect(try await bench.run(bench.request("DELETE", "/files/\(file)")).status == 204)
            }
        }

        static var sending: [RealServerCase] {
            [
                uploaded("an in-memory body arrives completely") { .data(Data($0)) },
                uploaded("a small body arrives completely", count: 1_000) { .data(Data($0)) },
                uploaded("an empty body arrives as an empty file", count: 0) { .data(Data($0)) },
                uploaded("a file arrives completely") { .file(try FileRegion(try TemporaryFile(Data($0)).url)) },
                uploaded("a stream of known length arrives completely") { bytes in
                    .stream(length: Int64(bytes.count), canBeSentAgain: true) { PieceProducer(bytes, size: 10_000) }
                },
                uploaded("a stream of unknown length arrives completely") { bytes in
                    .stream(canBeSentAgain: false) { PieceProducer(bytes, size: 10_000) }
                },
                uploaded("a stream whose bytes are produced late arrives completely", count: 300_000) { bytes in
                    .stream(canBeSentAgain: false) { PieceProducer(bytes, size: 5_000, isLate: true) }
                },
                RealServerCase("a suspended upload resumes where it stopped") { bench async throws in
                    let file = UUID().uuidString
                    let bytes = TestPattern.bytes(count: count)
                    let body = RequestBody.stream(canBeSentAgain: false) { PieceProducer(bytes, size: 9_000) }
                    let run = bench.start(try bench.request("PUT", "/files/\(file)", body: body))
                    for part in 1..<8 {
                        _ = await run.receiver.record { $0.sent >= Int64(part) << 18 }
                        run.task.suspend()
                        run.task.resume()
                    }
                    #expect(await run.end().status == 201)
                    #expect(try Data(contentsOf: bench.server.uploaded(file)) == Data(bytes))
                },
                RealServerCase("a body with expectsContinue waits for 100 Continue") { bench async throws in
                    let file = UUID().uuidString
                    let body = RequestBody.data(Data(TestPattern.bytes(count: 100_000)))
                    let record = await bench.run(
                        try bench.request("PUT", "/files/\(file)", body: body) { $0.expectsContinue = true })
                    #expect(record.status == 201)
                    #expect(record.informational.map(\.status) == (bench.wire == .http2 ? [] : [100]))
                },
                RealServerCase("a refusal that arrives during the upload is delivered") { bench async throws in
                    let record = await bench.run(
                        try bench.request("POST", "/small", body: .data(Data(count: 10 << 20))))
                    #expect(record.status == 405, "\(String(describing: record.error))")
                },
                RealServerCase("the request body is sent while the response body is received") { bench async throws in
                    let upstream = try LoopbackServer()
                    upstream.routeEarly("/echo") { _ in .echo }
                    let bytes = TestPattern.bytes(count: 1 << 20)
                    let body = RequestBody.stream(canBeSentAgain: false) { PieceProducer(bytes, size: 50_000) }
                    let record = await bench.run(try bench.request("POST", "/up/\(upstream.port)/echo", body: body))
                    #expect(record.isSuccess, "\(String(describing: record.error))")
                    #expect(record.bodyCount == bytes.count && record.isPattern)
                    await upstream.stopped()
                },
            ]
        }
    }
#endif
