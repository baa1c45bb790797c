// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var formats: [HttpbinCase] {
            [
                HttpbinCase("a JSON response is decoded to a model") { bench async throws in
                    let show = try await bench.base.get("json", as: [String: Slideshow].self).run()["slideshow"]
                    #expect(show?.author == "Yours Truly" && show?.slides.count == 2)
                },
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
                HttpbinCase("an HTML page is received as text") { bench async throws in
                    #expect(try await bench.text("html").run().contains("Herman Melville"))
                },
                HttpbinCase("XML is received as text") { bench async throws in
                    let operation = try bench.text("xml")
                    #expect(try await operation.run().contains("<slideshow"))
                    #expect(operation.response?.value(forHTTPHeaderField: "Content-Type") == "application/xml")
                },
                HttpbinCase("plain text is received") { bench async throws in
                    #expect(try await bench.text("robots.txt").run().contains("Disallow: /deny"))
                    #expect(try await bench.text("deny").run().contains("YOU SHOULDN'T BE HERE"))
                },
                HttpbinCase("text in many scripts is received correctly") { bench async throws in
                    let text = try await bench.text("encoding/utf8").run()
                    for sample in ["STARGΛ̊TE", "გთხოვთ", "Зарегистрируйтесь", "สิบสองกษัตริย์", "ሰማይ", "⡌⠁⠧⠑", "▉"] {
                        #expect(text.contains(sample), "\(sample)")
                    }
                },
                HttpbinCase("the server decodes a Base64 string in the path") { bench async throws in
                    #expect(try await bench.text("base64/R3LDvMOfZQ==").run() == "Grüße")
                },
                HttpbinCase("the links of a page are loaded concurrently through a queue") { bench async throws in
                    let page = try await bench.text("links/6").run()
                    let targets = page.matches(of: /href='([^']+)'/).map { String($0.1) }
                    #expect(targets.count == 5)
                    let queue = QueueManager()
                    let operations = try targets.map { try bench.text($0) }
                    for operation in operations { try queue.add(operation) }
                    for operation in operations { #expect(try await operation.value.contains("<title>Links</title>")) }
                },
            ]
        }
    }

    private struct Slideshow: Decodable, Sendable {
        struct Slide: Decodable, Sendable { let title: String }
        let author: String
        let slides: [Slide]
    }

    private struct Packed: Decodable, Sendable {
        let gzipped: Bool?
        let deflated: Bool?
    }
#endif
