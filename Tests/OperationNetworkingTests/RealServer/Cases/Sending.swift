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
                uploaded("an empty body arrives as an empty file", count: 0) { .data(Data($0)) },
                uploaded("a file arrives completely") { .file(try FileRegion(try TemporaryFile(Data($0)).url)) },
                uploaded("a stream of unknown length arrives completely") { bytes in
                    .stream(canBeSentAgain: false) { PieceProducer(bytes, size: 10_000) }
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
            ]
        }
    }
#endif
