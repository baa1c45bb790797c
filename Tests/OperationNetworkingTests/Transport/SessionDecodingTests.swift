// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionDecodingTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        private func answer(_ bytes: [UInt8], _ coding: String = "gzip") {
            server.route("/") { _ in .bytes(bytes, fields: [LoopbackField("Content-Encoding", coding)]) }
        }

        @Test func `a request with Range or without decoding does not ask for compression`() async throws {
            server.route("/") { .text($0["Accept-Encoding"] ?? "none") }
            #expect(try await session.run(server.url(), headers: ["Range": "bytes=1-"]).text == "none")
            let undecoded = with(TransferOptions()) { $0.decodesContent = false }
            #expect(try await session.run(server.url(), options: undecoded).text == "none")
            #expect(try await session.run(server.url()).text != "none")
        }

        @Test
        func `a compressed body truncated at any byte is rejected, even with a correct Content-Length`() async throws {
            for count in 1..<Compressed.hello.count {
                answer(Array(Compressed.hello[..<count]))
                let record = try await session.run(server.url())
                #expect(record.code == .undecodableBody && record.ends == 1, "\(count)")
                #expect(record.error?.status == 200)
            }
        }

        @Test func `a changed byte in the gzip trailer is rejected`() async throws {
            for index in Compressed.hello.indices.suffix(8) {
                var bytes = Compressed.hello
                bytes[index] ^= 1
                answer(bytes)
                #expect(try await session.run(server.url()).code == .undecodableBody, "\(index)")
            }
        }

        @Test func `several gzip members form one body, and other trailing bytes are rejected`() async throws {
            answer(Compressed.hello + Compressed.hello)
            let twice = try await session.run(server.url())
            #expect(twice.error == nil && twice.bodyCount == 78)
            answer(Compressed.hello + [1])
            #expect(try await session.run(server.url()).code == .undecodableBody)
        }

        @Test func `a limited number of zeros after a gzip body is accepted as padding`() async throws {
            let zeros = [UInt8](repeating: 0, count: 512)
            for bytes in [Compressed.hello + [0], Compressed.hello + zeros] {
                answer(bytes)
                let record = try await session.run(server.url())
                #expect(record.error == nil && record.bodyCount == 39)
            }
            answer(Compressed.hello + zeros + Compressed.hello + zeros)
            #expect(try await session.run(server.url()).bodyCount == 78)
            answer(Compressed.hello + zeros + [1])
            #expect(try await session.run(server.url()).code == .undecodableBody)
            answer(Compressed.hello + [UInt8](repeating: 0, count: ContentDecoder.mostPadding + 1))
            #expect(try await session.run(server.url()).code == .undecodableBody)
        }

        @Test func `headers whose first line begins with a space are rejected`() async throws {
            server.route("/a") { _ in .raw("HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 0\r\n\r\n") }
            let record = try await session.run(server.url("/a"))
            #expect(record.code == .invalidResponse, "\(String(describing: record.error))")
        }

        @Test func `deflate is decoded with and without a zlib header`() async throws {
            // "aaa" as one block with fixed Huffman codes.
            let bare: [UInt8] = [0x4B, 0x4C, 0x4C, 0x04, 0x00]
            answer(bare, "deflate")
            #expect(try await session.run(server.url()).text == "aaa")
            answer([0x78, 0x9C] + bare + [0x02, 0x49, 0x01, 0x24], "Deflate")
            #expect(try await session.run(server.url()).text == "aaa")
        }

        @Test(arguments: [false, true])
        func `holding or suspending during an expanding body delivers every byte exactly once`(
            suspends: Bool
        ) async throws {
            answer(Compressed.zeros)
            let options = with(TransferOptions()) { $0.maximumExpansion = 2000 }
            let recorder = RecordingReceiver { event, task in
                guard case .bytes = event else { return }
                if suspends { task.suspend() } else { task.hold() }
                DispatchQueue.global().async {
                    if suspends { task.resume() } else { task.proceed() }
                }
            }
            try session.begin(server.url(), options: options, recorder)
            let record = await recorder.end()
            #expect(record.error == nil && record.bodyCount == 4 << 20 && record.isInOrder)
        }

        @Test(arguments: ["br", "gzip, br", "aws-chunked"], [("HEAD", 200), ("GET", 304), ("GET", 204)])
        func `a response without a body needs no decompression`(coding: String, way: (String, Int)) async throws {
            server.route(way.0, "/") { _ in LoopbackAnswer.status(way.1).with("Content-Encoding", coding) }
            let record = try await session.run(server.url(), way.0)
            #expect(record.error == nil && record.status == way.1)
        }

        @Test(arguments: ["br", "zstd", "compress", "gzip, br", "Zstd", "gzip, gzip"])
        func `an unsupported Content-Encoding fails unless the request decodes the body itself`(coding: String)
            async throws
        {
            server.route("/coded") { _ in .text("hello").with("Content-Encoding", coding) }
            server.route("/plain") { _ in .text("plain").with("Content-Encoding", "identity") }
            let record = try await session.run(server.url("/coded"))
            #expect(record.code == .undecodableBody && record.bodyCount == 0 && record.error?.status == 200)
            let options = with(TransferOptions()) { $0.decodesContent = false }
            #expect(try await session.run(server.url("/coded"), options: options).text == "hello")
            #expect(try await session.run(server.url("/coded"), headers: ["Accept-Encoding": coding]).text == "hello")
            #expect(try await session.run(server.url("/plain")).text == "plain")
        }

        @Test func `a hold during an expanding body stops its delivery, and the task can be canceled`() async throws {
            answer(Compressed.zeros)
            let options = with(TransferOptions()) { $0.maximumExpansion = 2000 }
            let held = Gate()
            let recorder = RecordingReceiver { event, task in
                guard case .bytes = event else { return }
                task.hold()
                held.open()
            }
            let request = try NetworkRequest(url: server.url(), options: options)
            let task = session.makeTask(with: request, receiver: recorder)
            task.resume()
            await held.passage()
            server.route("/other") { _ in .text("other") }
            #expect(try await session.run(server.url("/other")).text == "other")
            #expect(recorder.record.bodyCount <= 32 << 10 && recorder.record.ends == 0)
            task.cancel()
            #expect(await recorder.end().code == .cancelled)
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
