// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct ExchangeRedirectTests {
        private let server: LoopbackServer
        private let transport = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
            server.route("/echo*") { .text("\($0.method) \($0.target) \($0.text)") }
        }

        private func session(_ policy: RedirectPolicy = .follow) -> ExchangeSession {
            ExchangeSession.over(transport) { $0.redirects = policy }
        }

        @Test func `redirects are followed, and only the final response is delivered`() async throws {
            server.route("/a") { _ in .redirect(to: "b/c") }
            server.route("/b/c") { _ in .redirect(to: "?x=1", status: 301) }
            server.route("GET", "/b/c") {
                $0.query == nil ? .redirect(to: "?x=1") : .redirect(to: "../echo/./end#part")
            }
            let seen = try await session().run(server.url("/a"))
            #expect(seen.text == "GET /echo/end ")
            #expect(seen.heads.first?.url == server.url("/echo/end"))
            #expect(seen.isOrderly && seen.error == nil && seen.metrics != nil)
            #expect(server.requests.map(\.target) == ["/a", "/b/c", "/b/c?x=1", "/echo/end"])
            #expect(server.violations.isEmpty)
        }

        @Test(arguments: [
            (301, "GET", ""), (302, "GET", ""), (303, "GET", ""), (307, "POST", "hello"), (308, "POST", "hello"),
        ])
        func `a redirect keeps the body only if it keeps the method`(
            status: Int, method: String, body: String
        ) async throws {
            server.route("/start") { _ in .redirect(to: "/echo", status: status) }
            let data = Data("hello".utf8)
            for content in [
                RequestBody.data(data),
                .stream(length: 5, canBeSentAgain: true) { PieceProducer(Array(data), size: .max) },
                .file(try FileRegion(try TemporaryFile(data).url)),
            ] {
                let seen = try await session().run(
                    server.url("/start"), "POST", headers: ["Content-Type": "text/plain"], body: content)
                #expect(seen.text == "\(method) /echo \(body)")
                #expect(seen.progress == seen.progress.sorted())
            }
            let last = server.requests.last
            #expect(last?["Content-Type"] == (method == "POST" ? "text/plain" : nil))
            #expect(server.violations.isEmpty)
        }

        @Test func `a redirect must not repeat a one-time body, but may drop it`() async throws {
            server.route("/start") { _ in .redirect(to: "/echo", status: 307) }
            server.route("/done") { _ in .redirect(to: "/echo", status: 303) }
            let data = Data("hello".utf8)
            func once() -> RequestBody {
                .stream(length: 5, canBeSentAgain: false) { PieceProducer(Array(data), size: .max) }
            }
            let seen = try await session().run(server.url("/start"), "POST", body: once())
            #expect(seen.error?.code == .bodyNotRepeatable && seen.error?.status == 307)
            #expect(seen.heads.isEmpty && seen.isOrderly)
            #expect(server.requests.count == 1)
            #expect(try await session().run(server.url("/done"), "POST", body: once()).text == "GET /echo ")
        }

        @Test(arguments: [false, true])
        func `a redirect sends a one-time body unless the body was read before the next request`(
            isRead: Bool
        ) async throws {
            let scripted = ScriptedSession { request in
                request.url.path == "/a" ? [.head(307, ["Location": "/b"])] : [.head(200, [:])]
            }
            let body = RequestBody.stream(length: 1, canBeSentAgain: false) { PieceProducer([1], size: 1) }
            let request = try NetworkRequest("PUT", url: try #require(URL(string: "https://h.com/a")), body: body)
            let recorder = RecordingReceiver()
            ExchangeSession(over: scripted).makeTask(with: request, receiver: recorder).resume()
            // The redirect arrives, and the transport may read the body before the task ends.
            #expect(scripted.step())
            if isRead, case .stream(let makeProducer) = body.source { _ = try makeProducer() }
            while scripted.step() {}
            let seen = await recorder.end()
            #expect(seen.code == (isRead ? NetworkError.Code.bodyNotRepeatable : nil))
            #expect(scripted.requests.map(\.url.path) == (isRead ? ["/a"] : ["/a", "/b"]))
        }

        @Test func `secret headers are not sent to another port or restored on the way back`() async throws {
            let other = try LoopbackServer()
            let home = server.url("/echo/home").absoluteString
            let away = other.url("/away").absoluteString
            other.route("/away") { _ in .redirect(to: home) }
            server.route("/start") { _ in .redirect(to: away) }
            let policy = with(RedirectPolicy.follow) { $0.secretHeaders = ["X-Api-Key"] }
            let headers: HeaderFields = ["Authorization": "Basic x", "Cookie": "a=b", "X-Api-Key": "k", "X-Plain": "p"]
            let seen = try await session(policy).run(server.url("/start"), headers: headers)
            #expect(seen.status == 200)
            for request in try [#require(other.requests.first), #require(server.requests.last)] {
                #expect(request["Authorization"] == nil && request["Cookie"] == nil && request["X-Api-Key"] == nil)
                #expect(request["X-Plain"] == "p")
            }
            #expect(server.requests.first?["Authorization"] == "Basic x")
        }

        @Test func `a redirect to itself is followed after a cookie that the transport may keep`() async throws {
            let hasCookie = Locked(false)
            let scripted = ScriptedSession { _ in
                hasCookie.withLock { exchange(&$0, with: true) }
                    ? [.head(200, [:])] : [.head(302, ["Location": "/a", "Set-Cookie": "seen=1"])]
            }
            let recorder = RecordingReceiver()
            let session = ExchangeSession(over: scripted)
            try session.begin(try #require(URL(string: "https://h.com/a")), recorder)
            while scripted.step() {}
            #expect(await recorder.end().status == 200)
        }

        @Test func `a redirect loop, too many redirects and an invalid Location are errors`() async throws {
            server.route("/loop") { _ in .redirect(to: "/loop") }
            server.route("/ping") { _ in .redirect(to: "/pong") }
            server.route("/pong") { _ in .redirect(to: "/ping") }
            server.route("/count/*") { request in
                .redirect(to: "/count/\((Int(request.path.dropFirst(7)) ?? 0) + 1)")
            }
            #expect(try await session().run(server.url("/loop")).error?.code == .redirectLoop)
            #expect(try await session().run(server.url("/ping")).error?.code == .redirectLoop)
            let before = server.requests.count
            #expect(try await session().run(server.url("/count/0")).error?.code == .tooManyRedirects)
            #expect(server.requests.count == before + 11)
            for place in [
                "//a%20b/", "//[::1%25eth0]/", "//%00/", "ftp://x/", "file:///etc/passwd", "//", "http://h:0/",
            ] {
                server.route("/bad") { _ in .redirect(to: place) }
                let seen = try await session().run(server.url("/bad"))
                #expect(seen.error?.code == .invalidRedirect && seen.isOrderly, "\(place)")
            }
        }

        @Test func `a redirect that is not followed is delivered with its body`() async throws {
            server.route("/start") { _ in .text("moved", status: 302).with("Location", "/echo") }
            let seen = try await session(.stop).run(server.url("/start"))
            #expect(seen.status == 302 && seen.text == "moved" && seen.isOrderly)
        }

        @Test func `nothing is delivered until an asynchronous redirect policy decides`() async throws {
            server.route("/start") { _ in .text("moved", status: 302).with("Location", "/echo") }
            for decision in [RedirectDecision.follow, .stop, .refuse("A stranger with token=S3CRET")] {
                let (asked, go) = (Gate(), Gate())
                let session = session(
                    .deciding { proposal in
                        asked.open()
                        await go.passage()
                        return proposal.count == 1 ? decision : .stop
                    })
                let probe = RecordingReceiver()
                try session.begin(server.url("/start"), probe)
                await asked.passage()
                #expect(probe.record.heads.isEmpty)
                go.open()
                let seen = await probe.end()
                #expect(seen.isOrderly)
                switch decision {
                case .follow: #expect(seen.text == "GET /echo ")
                case .stop: #expect(seen.text == "moved" && seen.status == 302)
                case .refuse:
                    #expect(seen.error?.code == .redirectRefused)
                    #expect(seen.error?.message.hasSuffix("stranger with token=***") == true)
                }
            }
        }

        @Test func `a redirect is followed without waiting for its long body`() async throws {
            server.route("/start") { _ in
                LoopbackAnswer(
                    .head(302, ["Content-Length": "\(1 << 26)", "Location": "/echo"]),
                    .send(repeating: Array(repeating: 65, count: 1 << 16), count: 1 << 26))
            }
            server.route("/chunks") { _ in
                LoopbackAnswer(
                    steps: [.head(302, ["Transfer-Encoding": "chunked", "Location": "/echo"])]
                        + Array(repeating: .chunk(Array(repeating: 65, count: 1 << 14)), count: 64) + [.stallForever])
            }
            server.route("/endless") { _ in
                LoopbackAnswer(.send("HTTP/1.1 302 Found\r\nLocation: /echo\r\nContent-Length: 10\r\n\r\nabc"), .close)
            }
            #expect(try await session().run(server.url("/chunks")).text == "GET /echo ")
            #expect(try await session().run(server.url("/start")).text == "GET /echo ")
            #expect(try await session().run(server.url("/endless")).text == "GET /echo ")
        }
    }

#endif
