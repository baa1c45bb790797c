// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var received: [HttpbinCase] {
            [
                HttpbinCase("JSON compressed with gzip is decoded") { bench async throws in
                    let operation = bench.base.get("gzip", as: Packed.self)
                    #expect(try await operation.run().gzipped == true)
                    #expect(operation.responseHead?.isDecoded == true)
                },
                HttpbinCase("JSON compressed with deflate is decoded") { bench async throws in
                    #expect(try await bench.base.get("deflate", as: Packed.self).run().deflated == true)
                },
                HttpbinCase("a Brotli body is delivered undecoded if requested, and otherwise fails") {
                    bench async throws in
                    #expect(await failure(of: bench.base.get("brotli", as: Data.self))?.code == .undecodableBody)
                    let endpoint = Endpoint<Data>.get("brotli").header("Accept-Encoding", "br")
                    let operation = bench.base.operation(for: endpoint)
                    let data = try await operation.run()
                    #expect(operation.responseHead?.headers["Content-Encoding"] == "br")
                    #expect(
                        operation.responseHead?.isDecoded == false && !data.isEmpty && data.first != UInt8(ascii: "{"))
                },
                HttpbinCase("text in many scripts is received correctly") { bench async throws in
                    let text = try await bench.text("encoding/utf8").run()
                    for sample in ["STARGΛ̊TE", "გთხოვთ", "Зарегистрируйтесь", "สิบสองกษัตริย์", "ሰማይ", "⡌⠁⠧⠑", "▉"] {
                        #expect(text.contains(sample), "\(sample)")
                    }
                },
                HttpbinCase("several redirects are followed to the final response") { bench async throws in
                    let operation = bench.base.get("redirect/4", as: Echo<NoContent>.self)
                    #expect(try await operation.run().url.hasSuffix("/get"))
                    #expect(operation.response?.url?.path == "/get")
                },
                HttpbinCase("a response stream delivers lines") { bench async throws in
                    let stream = try await bench.session.stream(NetworkRequest(url: try bench.url("stream/20")))
                    var ids: [Int] = []
                    for try await line in stream.lines {
                        ids.append(try JSONDecoder().decode(Numbered.self, from: Data(line.utf8)).id)
                    }
                    #expect(ids == Array(0..<20))
                },
                HttpbinCase("a slow body arrives completely") { bench async throws in
                    let operation = bench.base.operation(
                        for: Endpoint<Data>.get("drip", ["duration": 0.1, "numbytes": 20]).header("Accept", "*/*"))
                    #expect(try await operation.run() == Data(repeating: UInt8(ascii: "*"), count: 20))
                    #expect(operation.downloadProgress == TransferProgress(completedBytes: 20, totalBytes: 20))
                },
            ]
        }
    }

    private struct Numbered: Decodable, Sendable { let id: Int }

    private struct Packed: Decodable, Sendable {
        let gzipped: Bool?
        let deflated: Bool?
    }
#endif
