// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var pieces: [HttpbinCase] {
            [
                HttpbinCase("a response of known length arrives completely") { bench async throws in
                    let first = try await bench.base.get("bytes/5000", ["seed": 7], as: Data.self).runAny()
                    let second = try await bench.base.get("bytes/5000", ["seed": 7], as: Data.self).runAny()
                    #expect(first.count == 5_000 && first == second)
                },
                HttpbinCase("a response of unknown length arrives completely") { bench async throws in
                    let operation = bench.base.get(
                        "stream-bytes/50000", ["seed": 1, "chunk_size": 1_000], as: Data.self)
                    #expect(try await operation.runAny().count == 50_000)
                    #expect(operation.responseHead?.expectedLength == nil)
                },
                HttpbinCase("a request without Range receives the complete file") { bench async throws in
                    #expect(try await bench.text("range/1000").run() == Alphabet.text(0..<1_000))
                },
                HttpbinCase("a request with Range receives the requested part") { bench async throws in
                    let operation = try bench.text("range/1000", ["Range": "bytes=100-199"])
                    #expect(try await operation.run() == Alphabet.text(100..<200))
                    #expect(operation.response?.statusCode == 206)
                },
                HttpbinCase("a request with a suffix range receives the end of the file") { bench async throws in
                    #expect(
                        try await bench.text("range/1000", ["Range": "bytes=-50"]).run() == Alphabet.text(950..<1_000))
                },
                HttpbinCase("a range beyond the end of the file fails with status 416") { bench async throws in
                    #expect(try await failure(of: bench.text("range/1000", ["Range": "bytes=2000-"]))?.status == 416)
                },
                HttpbinCase("a download saves its body to a temporary file") { bench async throws in
                    let operation = NetworkDownloadOperation<String>(
                        url: try bench.url("range/60000"), urlSession: bench.session
                    ) {
                        file, _ in try String(contentsOf: file, encoding: .utf8)
                    }
                    #expect(try await operation.run() == Alphabet.text(0..<60_000))
                },
                HttpbinCase("a download verifies its checksum and moves the file to its destination") {
                    bench async throws in
                    let folder = try TemporaryFolder()
                    let place = folder.url.appendingPathComponent("new/file.txt")
                    let operation = NetworkDownloadOperation<URL>(
                        url: try bench.url("range/60000"), urlSession: bench.session
                    ) {
                        file, _ in file
                    }
                    operation.destination = .file(place)
                    operation.downloadOptions.checksum = FileChecksum(
                        algorithm: .crc32, hexadecimal: Alphabet.checksum(60_000))
                    operation.downloadOptions.expectedLength = 60_000
                    #expect(try await operation.run() == place)
                    #expect(try String(contentsOf: place, encoding: .utf8) == Alphabet.text(0..<60_000))
                    #expect(folder.content == ["new"])
                },
                HttpbinCase("a download over its maximum length fails with bodyTooLarge") { bench async throws in
                    let operation = NetworkDownloadOperation<Int>(
                        url: try bench.url("range/60000"), urlSession: bench.session
                    ) {
                        _, _ in 0
                    }
                    operation.downloadOptions.maximumLength = 50_000
                    #expect(await failure(of: operation)?.code == .bodyTooLarge)
                },
                HttpbinCase("a response stream delivers lines") { bench async throws in
                    let stream = try await bench.session.stream(NetworkRequest(url: try bench.url("stream/20")))
                    var ids: [Int] = []
                    for try await line in stream.lines {
                        ids.append(try JSONDecoder().decode(Numbered.self, from: Data(line.utf8)).id)
                    }
                    #expect(ids == Array(0..<20))
                },
                HttpbinCase("a response stream delivers bytes until the caller stops") { bench async throws in
                    let stream = try await bench.session.stream(NetworkRequest(url: try bench.url("range/50000")))
                    var text = ""
                    for try await byte in stream.bytes {
                        text.unicodeScalars.append(Unicode.Scalar(byte))
                        if text.count == 100 { break }
                    }
                    #expect(text == Alphabet.text(0..<100))
                },
                HttpbinCase("a body over the memory limit fails with bodyTooLarge") { bench async throws in
                    let operation = try bench.text("range/60000")
                    operation.responseRules.maximumBytesInMemory = 10_000
                    #expect(await failure(of: operation)?.code == .bodyTooLarge)
                },
            ]
        }
    }

    private struct Numbered: Decodable, Sendable { let id: Int }

    /// The text that `/range` returns.
    private enum Alphabet {
        static func text(_ range: Range<Int>) -> String {
            String(decoding: range.map { UInt8(ascii: "a") + UInt8($0 % 26) }, as: UTF8.self)
        }

        static func checksum(_ count: Int) -> String {
            CRC32.checksum(of: text(0..<count).utf8, startingWith: CRC32()).map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0\(digits)" : digits
            }.joined()
        }
    }

    extension EndpointOperation {
        /// Runs the operation with any content type of the response.
        fileprivate func runAny() async throws -> ResultType {
            responseRules.contentTypes = .any
            return try await run()
        }
    }
#endif
