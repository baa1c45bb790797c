// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationTestKit
    import Testing

    /// Tests the platform session without libcurl, in a child process that looks for a different library file.
    @Suite(.timeLimit(.minutes(2)))
    struct SessionFallbackTests {
        private let server: LoopbackServer

        init() throws {
            server = try LoopbackServer()
            server.route("/") { _ in .text("hello") }
            server.route("/redirect") { _ in .redirect(to: "/") }
            server.route("/secret") { _ in .status(401, ["WWW-Authenticate": "Basic realm=r"]) }
            server.route("/cookie") { request in
                let answer = request["Cookie"] == nil ? LoopbackAnswer.text("none") : .status(400)
                return answer.with("Set-Cookie", "id=1")
            }
            server.route("POST", "/upload") { request in
                request.body.count == 100_000 ? .text("all") : .status(400)
            }
        }

        @Test func `without libcurl, one notice states the reason, and URLSession sends the requests`() async throws {
            let (output, status) = try await Fixture("SessionProbe").run("fallback", server.url().absoluteString)
            #expect(
                output == """
                    problem: [sessionUnavailable while waiting]: CurlSession cannot work here: libcurl-of-nobody.so.4 was \
                    not found. Install libcurl 7.80 or newer (Debian: libcurl4).
                    version: none
                    transport: URLSession
                    CurlSession: sessionUnavailable
                    operation: hello
                    redirect: 200
                    secret: 401
                    cookie: 200
                    cookie: 200
                    upload: 200
                    notice: DefaultNetworkSession: CurlSession cannot work here: libcurl-of-nobody.so.4 was not found. \
                    Install libcurl 7.80 or newer (Debian: libcurl4). URLSession sends the requests of this process \
                    instead. Some server responses crash a process that uses URLSession on Linux. [sessionFallback] \
                    URLSession

                    """)
            #expect(status == 0)
            let paths = server.requests.map(\.path)
            #expect(paths == ["/", "/redirect", "/", "/secret", "/cookie", "/cookie", "/upload"])
            #expect(server.violations.isEmpty, "\(server.violations)")
            await server.stopped()
        }
    }
#endif
