// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite("Compressed bodies", .timeLimit(.minutes(3)), .enabled(if: RequestBody.canCompress))
    struct GzipBodyTests {
        private static let text = String(repeating: "All work and no play. ", count: 2_000)

        private func bytes(_ count: Int) -> Data {
            var generator = SeededGenerator(seed: 5)
            // Half of the bytes can be compressed.
            return Data((0..<count).map { $0 % 4096 < 2048 ? 7 : UInt8.random(in: 0...255, using: &generator) })
        }

        @Test func `data is compressed immediately, has a known length, and can be sent again`() throws {
            let body = try RequestBody.data(Data(Self.text.utf8)).withContentType("text/plain").gzipped()
            let packed = Data(try BodyBytes.all(of: body))
            #expect(body.length == Int64(packed.count) && packed.count < 1_000)
            #expect(body.canBeSentAgain && body.contentType == "text/plain" && body.contentEncoding == "gzip")
            #expect(Gunzip.text(packed) == Self.text)
            #expect(Gunzip.data(Data(try BodyBytes.all(of: RequestBody.data(Data()).gzipped()))) == Data())
            #expect(try RequestBody.none.gzipped().isNone)
        }

        @Test func `a compressed body is not compressed again, and cannot be part of a form`() throws {
            let body = try RequestBody.data(Data(Self.text.utf8)).gzipped()
            #expect(Gunzip.text(Data(try BodyBytes.all(of: body.gzipped()))) == Self.text)
            var form = MultipartForm()
            form.add("text", body: body)
            #expect { try RequestBody.multipart(form) } throws: {
                ($0 as? NetworkError)?.code == .bodyNotEncodable
            }
            #expect(throws: NetworkError.self) { try RequestBody.fields(["text": body]) }
        }

        @Test("Files, streams and large data are compressed while they are sent, in portions of any size")
        func streamed() async throws {
            let bytes = bytes(1_200_000)
            let file = try TemporaryFile(bytes)
            let short = bytes.prefix(50_000)
            try await TestThread.run {
                for body in [RequestBody.data(bytes), .file(try FileRegion(file.url))] {
                    let packed = try body.gzipped()
                    #expect(packed.length == nil && packed.canBeSentAgain)
                    for _ in 0..<2 { #expect(Gunzip.data(Data(try BodyBytes.all(of: packed))) == bytes) }
                }
                for portion in [1, 7, 1_000] {
                    let stream = RequestBody.stream(canBeSentAgain: true) {
                        PieceProducer(Array(short), size: 999, isLate: true)
                    }
                    let all = try BodyBytes.all(of: stream.gzipped(), portion: portion)
                    #expect(Gunzip.data(Data(all)) == short)
                }
            }
            let once = try RequestBody.stream(InputStream(data: short)).gzipped()
            #expect(!once.canBeSentAgain)
        }

        @Test func `a file that changed, or a producer that throws, fails the compressed body`() async throws {
            let file = try TemporaryFile(bytes(300_000))
            let changed = try RequestBody.file(try FileRegion(file.url)).gzipped()
            try Data(count: 10).write(to: file.url)
            let thrown = try RequestBody.stream(canBeSentAgain: true) {
                PieceProducer(Array(repeating: 1, count: 10_000), size: 100, failsAt: 5_000)
            }.gzipped()
            try await TestThread.run {
                #expect { try BodyBytes.all(of: changed) } throws: { ($0 as? NetworkError)?.code == .bodyChanged }
                #expect { try BodyBytes.all(of: thrown) } throws: { ($0 as? NetworkError)?.code == .bodyUnreadable }
            }
        }

        @Test
        func `a compressed body is sent in chunks with its encoding header, and again after a redirect`() async throws {
            let bench = try OperationBench()
            bench.server.route("POST", "/first") { _ in .redirect(to: "/second", status: 307) }
            bench.server.route("POST", "/second") { _ in .redirect(to: "/third", status: 303) }
            bench.server.route("GET", "/third") { .text($0["Content-Encoding"] ?? "none") }
            let file = try TemporaryFile(Data(Self.text.utf8))
            let body = try RequestBody.file(try FileRegion(file.url)).gzipped()
            #expect(try await bench.upload("/first", body: body).run() == "none")
            for request in bench.server.requests.prefix(2) {
                #expect(request["Content-Encoding"] == "gzip" && request["Transfer-Encoding"] == "chunked")
                #expect(Gunzip.text(Data(request.body)) == Self.text)
            }
            #expect(bench.server.violations == [])
        }
    }
#endif
