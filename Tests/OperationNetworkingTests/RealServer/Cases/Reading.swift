// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension RealServerCase {
        static var reading: [RealServerCase] {
            [
                RealServerCase("a small file is received over the negotiated HTTP version") { bench async throws in
                    let record = try await bench.get("/small")
                    #expect(record.text == String(repeating: "x", count: 100))
                    #expect(record.head?.version == bench.wire.version)
                    #expect(record.metrics?.version == bench.wire.version)
                    #expect((record.metrics?.secured != nil) == (bench.wire != .plain))
                    #expect(record.metrics?.remoteAddress == "127.0.0.1:\(bench.wire.port(bench.server.ports))")
                },
                RealServerCase("a request with newestVersion 1.1 uses HTTP/1.1") { bench async throws in
                    let request = try bench.request("GET", "/spoken") { $0.newestVersion = .http1_1 }
                    let record = await bench.run(request)
                    #expect(record.text.hasPrefix("HTTP/1.1 "))
                    #expect(record.head?.version == .http1_1)
                },
                RealServerCase("every byte of a large file arrives exactly once") { bench async throws in
                    let record = try await bench.get("/large")
                    #expect(record.isSuccess, "\(String(describing: record.error))")
                    #expect(record.bodyCount == NginxServer.largeCount && record.isPattern)
                },
                RealServerCase("range requests receive the requested part, or status 416 beyond the end") {
                    bench async throws in
                    let middle = await bench.run(try bench.request("GET", "/large", ["Range": "bytes=70000-79999"]))
                    #expect(middle.status == 206)
                    #expect(middle.body == TestPattern.bytes(from: 70_000, count: 10_000))
                    #expect(middle.head?.headers["Content-Range"] == "bytes 70000-79999/\(NginxServer.largeCount)")
                    let end = await bench.run(try bench.request("GET", "/large", ["Range": "bytes=-10"]))
                    #expect(end.body == TestPattern.bytes(from: NginxServer.largeCount - 10, count: 10))
                    let beyond = await bench.run(
                        try bench.request("GET", "/large", ["Range": "bytes=\(NginxServer.largeCount)-"]))
                    #expect(beyond.status == 416)
                },
                RealServerCase("If-Range and If-None-Match compare the ETag of the file") { bench async throws in
                    let etag = try #require(try await bench.get("/small").head?.headers["ETag"])
                    let same = await bench.run(
                        try bench.request("GET", "/small", ["Range": "bytes=90-", "If-Range": etag]))
                    #expect(same.status == 206 && same.bodyCount == 10)
                    let other = await bench.run(
                        try bench.request("GET", "/small", ["Range": "bytes=90-", "If-Range": "\"other\""]))
                    #expect(other.status == 200 && other.bodyCount == 100)
                    let known = await bench.run(try bench.request("GET", "/small", ["If-None-Match": etag]))
                    #expect(known.status == 304 && known.bodyCount == 0)
                },
                RealServerCase("a gzip response is decompressed") { bench async throws in
                    let record = try await bench.get("/gzip")
                    #expect(record.text == String(repeating: "All work and no play. ", count: 5_000))
                    #expect(record.head?.headers["Content-Encoding"] == "gzip")
                    #expect(record.head?.isDecoded == true)
                    let metrics = try #require(record.metrics)
                    #expect(metrics.bodyBytesReceived < 10_000)
                    let packed = await bench.run(try bench.request("GET", "/gzip", ["Accept-Encoding": "gzip"]))
                    #expect(packed.body.prefix(2) == [0x1F, 0x8B])
                },
                RealServerCase("trailers after the body are delivered") { bench async throws in
                    let record = try await bench.get("/trailers")
                    #expect(record.bodyCount == 110_000)
                    #expect(record.trailers?["X-Sum"] == "abc")
                },
                RealServerCase("redirects and error statuses are delivered without an error") { bench async throws in
                    for (target, status) in [
                        ("/found", 302), ("/permanent", 308), ("/nothing", 404), ("/teapot", 418),
                    ] {
                        let record = try await bench.get(target)
                        #expect(record.error == nil && record.status == status)
                    }
                    let location = try await bench.get("/permanent").head?.headers["Location"]
                    #expect(location?.hasSuffix("/small") == true)
                },
                RealServerCase("a challenge is delivered, and correct credentials are accepted") { bench async throws in
                    let asked = try await bench.get("/secret")
                    #expect(asked.status == 401)
                    #expect(asked.head?.headers["WWW-Authenticate"] == "Basic realm=\"the cave\"")
                    let right = "Basic \(Data("Aladdin:open sesame".utf8).base64EncodedString())"
                    let record = await bench.run(try bench.request("GET", "/secret", ["Authorization": right]))
                    #expect(record.status == 200 && record.bodyCount == 100)
                },
                RealServerCase("a response that the server broke off fails the request") { bench async throws in
                    let upstream = try LoopbackServer()
                    upstream.route("/cut") { _ in
                        LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("hello"), .reset)
                    }
                    upstream.route("/chunks") { _ in
                        LoopbackAnswer(.head(200, ["Transfer-Encoding": "chunked"]), .chunk("hello"), .close)
                    }
                    for target in ["/cut", "/chunks"] {
                        let record = try await bench.get("/up/\(upstream.port)\(target)")
                        let code = try #require(record.error?.code, "\(target): \(record.text)")
                        #expect([.truncatedBody, .connectionLost].contains(code))
                        #expect(record.text == "hello")
                    }
                    await upstream.stopped()
                },
            ]
        }
    }
#endif
