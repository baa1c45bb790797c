// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationExporters
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite("Requests as curl commands", .timeLimit(.minutes(3)))
    struct CurlCommandTests {
        /// Whether `curl` is installed.
        private static let hasCurl = FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")

        private struct Sent: Equatable, CustomStringConvertible {
            let method: String
            let target: String
            let fields: [String]
            let body: [UInt8]

            init(_ request: LoopbackRequest) {
                (method, target, body) = (request.method, request.target, request.body)
                // Each program sends its own Accept-Encoding header.
                fields = request.fields.filter { $0.name.lowercased() != "accept-encoding" }.map {
                    "\($0.name): \($0.value)"
                }
                .sorted()
            }

            var description: String {
                "\(method) \(target) \(fields) \(String(decoding: body.prefix(200), as: UTF8.self))"
            }
        }

        private func run(_ command: String, in folder: TemporaryFolder) async throws {
            // The length of an argument is limited, and that of a script is not.
            let script = folder.url.appendingPathComponent("script")
            try Data((command + " --silent --output /dev/null --noproxy '*'\n").utf8).write(to: script)
            try await TestThread.run {
                let end = try Process.end(of: "/bin/sh", [script.path], readsErrors: true)
                #expect(end.status == 0, "\(end.output) of \(command)")
            }
        }

        @Test(.enabled(if: hasCurl, "there is no /usr/bin/curl: no command is carried out"))
        func `the command sends the same request as the operation, with a real shell and a real curl`() async throws {
            let folder = try TemporaryFolder()
            let file = folder.url.appendingPathComponent("it's a '\u{301} \"file\" $HOME")
            try Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0) }).write(to: file)
            // For a shell, a quotation mark with a combining character is still a quotation mark.
            let text =
                "don'\u{301}t '\u{200D}`id` it's \"quoted\" $HOME `id` \\ \\n %s %d @file 100% é\nsecond line\r\n\tend"
            let bodies: [RequestBody] = [
                .none, .data(Data()), .data(Data(text.utf8)), .data(Data("@/etc/passwd".utf8)), .data(Data("-".utf8)),
                .data(Data((0...255).map { UInt8($0) })), .data(Data(String(repeating: text, count: 3_000).utf8)),
                .data(Data((0..<150_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })),
                try .file(FileRegion(file)), try .file(FileRegion(file, offset: 10, length: 500)),
                // A byte order mark.
                .data(Data([0xEF, 0xBB, 0xBF, 0x7B, 0x7D])),
            ]
            let fields: [HeaderFields] = [
                [:], ["X-Quote": "it's \"a\" $HOME \\ ;", "Content-Type": "text/plain", "Cookie": "a=b; c=d"],
                ["X-Empty": "", "Authorization": "Bearer x", "User-Agent": "test/1", "Accept": "text/plain"],
            ]
            let bench = try OperationBench()
            bench.server.route("/*") { _ in .text("Hello") }
            for (index, body) in bodies.enumerated() {
                for method in body.isNone ? ["GET", "HEAD", "DELETE"] : ["POST", "PUT", "PATCH"] {
                    let target = "/a'b/%7Bx%7D/../c?q=it's%20$1&[1]"
                    let url =
                        URL(string: "http://127.0.0.1:\(bench.server.port)" + target)
                        ?? bench.server.url("/fallback?a=it's")
                    let request = try NetworkRequest(method, url: url, headers: fields[index % 3], body: body)
                    let operation = NetworkDataOperation(request: request, urlSession: bench.session) { data, _ in
                        data.count
                    }
                    operation.callbackQueue = bench.callbacks
                    _ = try await operation.run()
                    try await run(try #require(operation.curlCommand(redaction: .none)), in: folder)
                    let sent = bench.server.requests.suffix(2).map(Sent.init)
                    #expect(
                        sent.count == 2 && sent[0] == sent[1], "\(request.curlCommand(redaction: .none).prefix(2_000))")
                }
            }
        }

        @Test func `secrets are redacted in the URL, the headers and the body`() throws {
            let url = try #require(URL(string: "https://example.com/a?token=S3CRET&S3CRET&S3CRET=="))
            let headers: HeaderFields = ["Authorization": "Bearer S3CRET", "Cookie": "a=S3CRET", "X-Plain": "shown"]
            let bodies = [
                #"{"password":"S3CRET","user":"anna"}"#,
                "user=anna&password=S3CRET&S3CRET&next=https%3A%2F%2Fa.example%3Fcode%3DS3CRET&S3CRET==&pass=S3CRET"
                    + "&payload=%7B%22token%22%3A%22S3CRET%22%7D",
                "S3CRET", #""S3CRET""#,
            ]
            for (index, text) in bodies.enumerated() {
                let type = ["application/json", "application/x-www-form-urlencoded", "text/plain", "application/json"][
                    index]
                var headers = headers
                headers["Content-Type"] = type
                let request = try NetworkRequest("POST", url: url, headers: headers, body: .data(Data(text.utf8)))
                let command = request.curlCommand()
                #expect(!command.contains("S3CRET") && command.contains("X-Plain: shown"), "\(command)")
                #expect(command.contains("anna") == (index < 2))
                #expect(request.curlCommand(redaction: .none).contains("S3CRET"))
            }
        }

        @Test func `a body that the command cannot contain is named in its first line`() throws {
            let stream = RequestBody.stream(length: 12, canBeSentAgain: true) { Endless() }
            for body in [stream, .data(Data(count: 2 << 20))] {
                let request = try NetworkRequest("PUT", url: URL(fileURLWithPath: "/").asHTTP, body: body)
                let lines = request.curlCommand(redaction: .none).split(separator: "\n")
                #expect(lines[0].hasPrefix("# Replace BODY with") && lines[1].hasPrefix("curl --request 'PUT'"))
            }
        }

        @Test(arguments: [false, true])
        func `the command of an operation contains its cookies and its redirected URL`(isObserved: Bool) async throws {
            let bench = try OperationBench()
            let session = ExchangeSession.over(bench.session.transport) { $0.cookies = CookieJar() }
            bench.server.route("/") { _ in .redirect(to: "/there").with("Set-Cookie", "sid=chocolate; Path=/") }
            bench.server.route("/there") { _ in .text("Hello") }
            let operation = NetworkDataOperation(url: bench.server.url("/"), urlSession: session) { data, _ in
                data.count
            }
            operation.callbackQueue = bench.callbacks
            if isObserved { operation.addNetworkObserver(EventLog()) }
            #expect(operation.curlCommand() == nil)
            _ = try await operation.run()
            let command = try #require(operation.curlCommand(redaction: .none))
            #expect(command.contains("/there") && command.contains("Cookie: sid=chocolate"), "\(command)")
            #expect(operation.curlCommand()?.contains("chocolate") == false)
        }
    }

    extension URL {
        fileprivate var asHTTP: URL { URL(string: "http://example.com/") ?? self }
    }
#endif
