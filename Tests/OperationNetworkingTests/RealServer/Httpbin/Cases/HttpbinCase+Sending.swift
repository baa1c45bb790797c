// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension HttpbinCase {
        static var sending: [HttpbinCase] {
            [
                HttpbinCase("a form is sent URL-encoded") { bench async throws in
                    let endpoint = Endpoint<Echo<NoContent>>.post(
                        "post", body: try .form(["user": "anna", "age": 30, "none": nil]))
                    let echo = try await bench.base.operation(for: endpoint).run()
                    #expect(echo.form == ["user": "anna", "age": "30"])
                    #expect(echo.headers["Content-Type"]?.hasPrefix("application/x-www-form-urlencoded") == true)
                },
                HttpbinCase("a form with lists and nested values is sent") { bench async throws in
                    let endpoint = Endpoint<Echo<NoContent>>.post(
                        "post", body: try .form(["tags": ["a", "b"], "user": ["name": "anna"], "yes": true]))
                    #expect(
                        try await bench.base.operation(for: endpoint).run().form
                            == ["tags[]": ["a", "b"], "user[name]": "anna", "yes": "true"])
                },
                HttpbinCase("a form encodes special characters") { bench async throws in
                    let text = "a&b=c;d+e %20 \"ü€😀\" \r\n"
                    let endpoint = Endpoint<Echo<NoContent>>.post("post", body: try .form(["text": text]))
                    #expect(try await bench.base.operation(for: endpoint).run().form?["text"]?.all == [text])
                },
                HttpbinCase("a multipart form of text and data is sent") { bench async throws in
                    var form = MultipartForm()
                    form.add("title", "On the beach 😀")
                    form.add("photo", Data("not really".utf8), fileName: "a \"b\".jpeg")
                    let echo = try await bench.upload(.multipart(form)).run()
                    #expect(echo.form == ["title": "On the beach 😀"])
                    #expect(echo.files == ["photo": "not really"])
                },
                HttpbinCase("a multipart form with a file is sent with its length") { bench async throws in
                    let bytes = Data(TestPattern.bytes(count: 300_000))
                    let file = try TemporaryFile(bytes)
                    var form = MultipartForm()
                    form.add("photo", file: try FileRegion(file.url), fileName: "a.png")
                    let echo = try await bench.upload(.multipart(form)).run()
                    #expect(echo.files?["photo"]?.all == ["data:image/png;base64,\(bytes.base64EncodedString())"])
                    #expect(echo.headers["Content-Length"] != nil)
                },
                HttpbinCase("a multipart form with a stream of unknown length is sent in chunks") {
                    bench async throws in
                    var form = MultipartForm()
                    form.add(
                        .init(
                            name: "stream", fileName: "s.txt", contentType: "text/plain",
                            body: .stream(canBeSentAgain: true) { PieceProducer(Array("piece by piece".utf8), size: 3) }
                        ))
                    let echo = try await bench.upload(.multipart(form)).run()
                    #expect(echo.files == ["stream": "piece by piece"])
                    #expect(echo.headers["Transfer-Encoding"] == "chunked")
                },
                HttpbinCase("an InputStream is sent in chunks") { bench async throws in
                    let bytes = Data(String(repeating: "0123456789", count: 20_000).utf8)
                    let echo = try await bench.upload(.stream(InputStream(data: bytes))).run()
                    #expect(echo.bytes == bytes && echo.headers["Transfer-Encoding"] == "chunked")
                },
                HttpbinCase("a compressed body is sent with Content-Encoding: gzip") { bench async throws in
                    let text = String(repeating: "All work and no play. ", count: 1_000)
                    let body = try RequestBody.data(Data(text.utf8)).withContentType("text/plain").gzipped()
                    let echo = try await bench.upload(body).run()
                    #expect(echo.headers["Content-Encoding"] == "gzip" && echo.headers["Content-Type"] == "text/plain")
                    #expect(echo.bytes.count < 1_000 && Gunzip.text(echo.bytes) == text)
                },
            ]
        }
    }
#endif
