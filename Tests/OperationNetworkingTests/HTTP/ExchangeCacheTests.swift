// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Dispatch
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct ExchangeCacheTests {
        let server: LoopbackServer
        private let folder = CacheFolderFixture()
        private let time = MovableTime(Date(timeIntervalSince1970: 1_700_000_000))
        private let transport = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        func session(
            _ limits: CacheLimits = CacheLimits(), _ change: (inout ExchangeConfiguration) -> Void = { _ in }
        ) -> ExchangeSession {
            let time = time
            var configuration = ExchangeConfiguration()
            configuration.now = { time.now }
            configuration.cache = HTTPCache(CacheFolder(url: folder.url), limits: limits) { time.now }
            change(&configuration)
            return ExchangeSession(over: transport, configuration: configuration)
        }

        /// A session whose cache has the fresh response `body` for `/a`.
        func sessionWithBody(_ change: (inout ExchangeConfiguration) -> Void = { _ in }) async throws
            -> ExchangeSession
        {
            server.route("/a") { _ in .text("body").with("Cache-Control", "max-age=60") }
            let session = session(CacheLimits(), change)
            _ = try await session.run(server.url("/a"))
            return session
        }

        private func count() -> Int { server.requests.count }

        @Test func `a fresh response is served without a request, also by a new session`() async throws {
            server.route("/a") { _ in .text("body").with("Cache-Control", "max-age=60") }
            let session = session()
            #expect(try await session.run(server.url("/a")).text == "body")
            time.advance(59)
            let second = try await session.run(server.url("/a"))
            #expect(second.text == "body" && second.isOrderly && second.heads.first?.headers["Age"] == "59")
            #expect(second.heads.first?.headers["Content-Length"] == "4" && second.status == 200)
            #expect(try await self.session().run(server.url("/a")).text == "body")
            #expect(count() == 1)
            #expect(try await session.run(server.url("/a"), "HEAD").body.isEmpty)
            #expect(count() == 1)
            time.advance(1)
            #expect(try await session.run(server.url("/a")).text == "body")
            #expect(count() == 2)
        }

        @Test func `a stale response is revalidated and served if it is unchanged`() async throws {
            let version = Locked(1)
            server.route("/a") { request in
                let tag = "\"v\(version.withLock { $0 })\""
                let head: KeyValuePairs = [
                    "ETag": tag, "Cache-Control": "max-age=10", "X-Asked": request["If-None-Match"] ?? "no",
                ]
                if request["If-None-Match"] == tag { return .status(304, head) }
                return .text("body \(tag)").with("ETag", tag).with("Cache-Control", "max-age=10")
            }
            let session = session()
            #expect(try await session.run(server.url("/a")).text == "body \"v1\"")
            time.advance(10)
            let seen = try await session.run(server.url("/a"))
            #expect(seen.text == "body \"v1\"" && seen.status == 200 && seen.isOrderly)
            #expect(seen.heads.first?.headers["X-Asked"] == "\"v1\"")
            #expect(try await session.run(server.url("/a")).text == "body \"v1\"")
            #expect(count() == 2)
            version.withLock { $0 = 2 }
            time.advance(10)
            #expect(try await session.run(server.url("/a")).text == "body \"v2\"")
            #expect(try await session.run(server.url("/a")).text == "body \"v2\"")
            #expect(count() == 3)
        }

        @Test func `a 304 response with a different ETag repeats the request without validators`() async throws {
            server.route("/a") { request in
                request["If-None-Match"] == nil
                    ? .text("body").with("ETag", "\"a\"").with("Cache-Control", "no-cache")
                    : .status(304, ["ETag": "\"b\""])
            }
            let session = session()
            for _ in 0..<2 { #expect(try await session.run(server.url("/a")).text == "body") }
            #expect(server.requests.map { $0["If-None-Match"] } == [nil, "\"a\"", nil])
        }

        @Test func `the cache respects Vary and no-store, and a POST invalidates the response`() async throws {
            server.route("GET", "/v") {
                .text($0["Accept-Language"] ?? "").with("Vary", "Accept-Language").with("Cache-Control", "max-age=60")
            }
            server.route("GET", "/n") { _ in .text("n").with("Cache-Control", "no-store, max-age=60") }
            server.route("GET", "/c") { _ in .text("c").with("Cache-Control", "max-age=60") }
            server.route("POST", "/c") { _ in .text("ok") }
            let session = session()
            for language in ["de", "en", "de", "en"] {
                #expect(
                    try await session.run(server.url("/v"), headers: ["Accept-Language": language]).text == language)
            }
            #expect(count() == 2)
            for _ in 0..<2 { _ = try await session.run(server.url("/n")) }
            #expect(count() == 4)
            for _ in 0..<2 { _ = try await session.run(server.url("/c")) }
            #expect(count() == 5)
            _ = try await session.run(server.url("/c"), "POST", body: .data(Data("x".utf8)))
            _ = try await session.run(server.url("/c"))
            #expect(count() == 7)
        }

        @Test func `only-if-cached sends no request, and stale-if-error replaces failed responses`()
            async throws
        {
            server.route("/a") { _ in
                .text("body").with("Cache-Control", "max-age=10, stale-if-error=100").with("ETag", "\"a\"")
            }
            let session = session()
            let missing = try await session.run(server.url("/a"), headers: ["Cache-Control": "only-if-cached"])
            #expect(missing.status == 504 && missing.isOrderly && missing.error == nil && count() == 0)
            _ = try await session.run(server.url("/a"))
            server.route("/a") { _ in .text("sorry", status: 503) }
            time.advance(50)
            #expect(try await session.run(server.url("/a")).text == "body")
            server.route("/a") { _ in .reset }
            #expect(try await session.run(server.url("/a")).text == "body")
            time.advance(100)
            #expect(try await session.run(server.url("/a")).error != nil)
            server.route("/a") { _ in .text("sorry", status: 503) }
            #expect(try await session.run(server.url("/a")).status == 503)
        }

        @Test func `stale-if-error works without a validator, and an unrequested 304 is delivered`() async throws {
            server.route("/a") { _ in .text("body").with("Cache-Control", "max-age=1, stale-if-error=60") }
            let session = session()
            _ = try await session.run(server.url("/a"))
            time.advance(2)
            server.route("/a") { _ in .text("sorry", status: 503) }
            #expect(try await session.run(server.url("/a")).text == "body")
            server.route("/a") { _ in .reset }
            #expect(try await session.run(server.url("/a")).text == "body")
            server.route("/a") { _ in .status(304) }
            #expect(try await session.run(server.url("/a")).status == 304)
            #expect(server.requests.allSatisfy { $0["If-None-Match"] == nil && $0["If-Modified-Since"] == nil })
            server.route("/a") { _ in .text("new").with("Cache-Control", "max-age=1") }
            #expect(try await session.run(server.url("/a")).text == "new")
            time.advance(2)
            server.route("/a") { _ in .text("sorry", status: 503) }
            #expect(try await session.run(server.url("/a")).status == 503)
        }

        @Test func `sessions with separate cookie jars do not share private responses`() async throws {
            server.route("/sign-in") { request in
                .text("ok").with("Set-Cookie", "sid=\(request["X-User"] ?? ""); Path=/").with(
                    "Cache-Control", "no-store")
            }
            server.route("/page") { request in
                .text("page of \(request["Cookie"] ?? "none")").with("Cache-Control", "private, max-age=60")
            }
            let sessions = ["A", "B"].map { _ in self.session { $0.cookies = CookieJar() } }
            for (session, user) in zip(sessions, ["A", "B"]) {
                _ = try await session.run(server.url("/sign-in"), headers: ["X-User": user])
                for _ in 0..<2 { #expect(try await session.run(server.url("/page")).text == "page of sid=\(user)") }
            }
            // In one session, the user signs out and another user signs in.
            _ = try await sessions[0].run(server.url("/sign-in"), headers: ["X-User": "C"])
            #expect(try await sessions[0].run(server.url("/page")).text == "page of sid=C")
            #expect(server.requests.count { $0.path == "/page" } == 3)
        }

        @Test func `a request that its receiver cancels is not served a stale response`() async throws {
            server.route("/a") { _ in
                .text("body").with("Cache-Control", "max-age=10, stale-if-error=100").with("ETag", "\"a\"")
            }
            let session = session()
            _ = try await session.run(server.url("/a"))
            time.advance(50)
            let receiver = RefusingReceiver()
            session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: receiver).resume()
            #expect(await receiver.ends.events(atLeast: 1) == [.cancelled])
            #expect(count() == 1)
        }

        @Test func `a response is revalidated once in the background while it is served stale`() async throws {
            let number = Locked(0)
            server.route("/a") { _ in
                .text("\(number.next())").with(
                    "Cache-Control", "max-age=10, stale-while-revalidate=60"
                )
                .with("ETag", "\"\(UUID())\"")
            }
            let session = session()
            #expect(try await session.run(server.url("/a")).text == "1")
            time.advance(20)
            #expect(try await session.run(server.url("/a")).text == "1")
            _ = await server.requests(atLeast: 2)
            // The new response reaches the cache shortly after it was sent. Until then, the old one is served.
            var text = "1"
            while text == "1" { text = try await session.run(server.url("/a")).text }
            #expect(text != "1")
        }

        @Test(arguments: [200, 410], ["ETag", "X-No-Validator"])
        func `a response that replaces a stored one but may not be stored removes it`(
            status: Int, validator: String
        ) async throws {
            let number = Locked(0)
            server.route("/a") { _ in
                let count = number.next()
                let answer = LoopbackAnswer.text("\(count)", status: count == 2 ? status : 200)
                return answer.with(validator, "\"\(count)\"")
                    .with("Cache-Control", count == 2 ? "no-store" : "max-age=10, stale-while-revalidate=60")
            }
            let session = session()
            #expect(try await session.run(server.url("/a")).text == "1")
            time.advance(20)
            #expect(try await session.run(server.url("/a")).text == "1")
            _ = await server.requests(atLeast: 2)
            // The new response reaches the cache shortly after it was sent.
            while try await session.run(server.url("/a")).text == "1" {}
            #expect(try await session.run(server.url("/a")).text != "1")
        }

        @Test func `a reload without a validator sends no condition, and only a 304 response keeps the old response`()
            async throws
        {
            let session = try await sessionWithBody()
            server.route("/a") { _ in .status(304) }
            #expect(try await session.run(server.url("/a"), headers: ["Cache-Control": "no-cache"]).status == 304)
            #expect(try await session.run(server.url("/a"), headers: ["If-None-Match": "\"x\""]).status == 304)
            #expect(try await session.run(server.url("/a")).text == "body")
            server.route("/a") { _ in .text("new").with("Cache-Control", "no-store") }
            #expect(try await session.run(server.url("/a"), headers: ["Cache-Control": "no-cache"]).text == "new")
            #expect(try await session.run(server.url("/a")).text == "new")
            #expect(server.requests.map { $0["If-None-Match"] } == [nil, nil, "\"x\"", nil, nil])
            #expect(server.requests.allSatisfy { $0["If-Modified-Since"] == nil })
        }

        @Test func `a suspended exchange starts no background revalidation`() async throws {
            server.route("/a") { _ in .text("a").with("Cache-Control", "max-age=10, stale-while-revalidate=60") }
            server.route("/other") { _ in .text("other") }
            let session = session()
            _ = try await session.run(server.url("/a"))
            time.advance(20)
            let probe = RecordingReceiver()
            let task = session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe)
            session.startSuspended(task)
            for _ in 0..<3 { _ = try await session.run(server.url("/other")) }
            #expect(server.requests.filter { $0.path == "/a" }.count == 1)
            task.resume()
            #expect(await probe.end().text == "a")
        }

        @Test func `a long cached body is served in parts and can be held, suspended and canceled`()
            async throws
        {
            let whole = TestPattern.bytes(count: 5_000_000)
            server.route("/long") { _ in .bytes(whole).with("Cache-Control", "max-age=60") }
            let session = session()
            let first = try await session.run(server.url("/long"))
            #expect(first.bodyCount == 5_000_000 && first.isPattern && first.error == nil)
            let held = RecordingReceiver { event, task in
                guard case .bytes = event else { return }
                task.hold()
                task.suspend()
                DispatchQueue.global().async {
                    task.proceed()
                    task.resume()
                }
            }
            session.makeTask(with: try NetworkRequest(url: server.url("/long")), receiver: held).resume()
            let second = await held.end()
            #expect(second.bodyCount == 5_000_000 && second.isPattern && second.isOrderly)
            let cancelling = RecordingReceiver { if case .bytes = $0 { $1.cancel() } }
            session.makeTask(with: try NetworkRequest(url: server.url("/long")), receiver: cancelling).resume()
            let third = await cancelling.end()
            #expect(third.error?.code == .cancelled && third.isOrderly && third.body.count <= 65_536)
            #expect(count() == 1)
        }

        @Test func `a truncated, canceled or oversized response is not stored`() async throws {
            server.route("/cut") { _ in .text("0123456789").with("Cache-Control", "max-age=60").cut(at: 100) }
            server.route("/long") { _ in
                LoopbackAnswer.repeating([65], count: 100_000).with("Cache-Control", "max-age=60")
            }
            server.route("/fine") { _ in .text("fine").with("Cache-Control", "max-age=60") }
            let session = session(CacheLimits(totalBytes: 1 << 20, bodyBytes: 50_000))
            for _ in 0..<2 { #expect(try await session.run(server.url("/cut")).error != nil) }
            for _ in 0..<2 { #expect(try await session.run(server.url("/long")).body.count == 100_000) }
            #expect(count() == 4)
            let cancelling = RecordingReceiver { if case .head = $0 { $1.cancel() } }
            session.makeTask(with: try NetworkRequest(url: server.url("/fine")), receiver: cancelling).resume()
            _ = await cancelling.end()
            #expect(try await session.run(server.url("/fine")).text == "fine")
            _ = try await session.run(server.url("/fine"))
            _ = await session.configuration.cache?.diskUsage()
            #expect(folder.files(".part").isEmpty && folder.files(".body").count <= 1)
        }

        /// The limit of the session, and whether the response does not announce its length.
        @Test(arguments: [(nil, false), (10_000, false), (10_000, true)] as [(Int64?, Bool)])
        func `a response that is too large removes the stored one that it replaces`(
            limit: Int64?, isChunked: Bool
        ) async throws {
            server.route("/a") { _ in .text("old").with("Cache-Control", "max-age=60") }
            let session = session(CacheLimits(totalBytes: 1 << 20, bodyBytes: 50_000)) { $0.maximumBodyBytes = limit }
            _ = try await session.run(server.url("/a"))
            let large = String(repeating: "A", count: 100_000)
            server.route("/a") { _ in
                (isChunked ? LoopbackAnswer.chunks([large]) : .text(large)).with("Cache-Control", "max-age=60")
            }
            let seen = try await session.run(server.url("/a"), headers: ["Cache-Control": "no-cache"])
            #expect(seen.error?.code == (limit == nil ? nil : .bodyTooLarge))
            server.route("/a") { _ in .text("new") }
            #expect(try await session.run(server.url("/a")).text == "new")
        }

        @Test func `a damaged cached body is requested again`() async throws {
            let session = try await sessionWithBody()
            _ = await session.configuration.cache?.diskUsage()
            let file = try #require(folder.files(".body").first)
            try Data("evil".utf8).write(to: file)
            #expect(try await session.run(server.url("/a")).text == "body")
            #expect(count() == 2)
            #expect(try await session.run(server.url("/a")).text == "body")
            #expect(count() == 2)
        }

        @Test func `a 304 response with no-store removes the response from the cache`() async throws {
            server.route("/a") { request in
                request["If-None-Match"] == nil
                    ? .text("body").with("ETag", "\"a\"").with("Cache-Control", "max-age=10")
                    : .status(304, ["ETag": "\"a\"", "Cache-Control": "max-age=100, no-store"])
            }
            let session = session()
            _ = try await session.run(server.url("/a"))
            time.advance(10)
            #expect(try await session.run(server.url("/a")).text == "body")
            _ = await session.configuration.cache?.diskUsage()
            #expect(folder.files(".body").isEmpty && folder.files(".metadata").isEmpty)
            #expect(try await session.run(server.url("/a")).text == "body")
            #expect(server.requests.map { $0["If-None-Match"] } == [nil, "\"a\"", nil])
        }

        @Test(arguments: [true, false])
        func `a response requested before a change is not stored after it`(cameLate: Bool) async throws {
            let gate = Gate()
            server.route("GET", "/a") { _ in
                let head = LoopbackStep.head(200, ["Content-Length": "4", "Cache-Control": "max-age=60"])
                return cameLate
                    ? LoopbackAnswer(.stall(until: gate), head, .send("body"))
                    : LoopbackAnswer(head, .send("bo"), .stall(until: gate), .send("dy"))
            }
            server.route("PUT", "/a") { _ in .text("done") }
            let session = session()
            let probe = RecordingReceiver()
            session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe).resume()
            _ = await server.requests(atLeast: 1)
            if !cameLate { _ = await probe.record { $0.head != nil } }
            _ = try await session.run(server.url("/a"), "PUT", body: .data(Data("x".utf8)))
            gate.open()
            #expect(await probe.end().text == "body")
            _ = try await session.run(server.url("/a"))
            #expect(count() == 3)
            _ = try await session.run(server.url("/a"))
            #expect(count() == 3)
        }

        @Test func `a change invalidates the cache even if its response is refused`() async throws {
            server.route("GET", "/a") { _ in .text("body").with("Cache-Control", "max-age=60") }
            server.route("PUT", "/a") { _ in LoopbackAnswer.repeating([65], count: 1001) }
            server.route("DELETE", "/a") { _ in .redirect(to: "ftp://h.com/") }
            let session = session { $0.maximumBodyBytes = 1000 }
            for (method, total) in [("PUT", 3), ("DELETE", 5)] {
                _ = try await session.run(server.url("/a"))
                _ = try await session.run(server.url("/a"), method)
                _ = try await session.run(server.url("/a"))
                #expect(count() == total)
            }
        }

        @Test func `with only-if-cached, a damaged body is not requested again`() async throws {
            let session = try await sessionWithBody()
            _ = await session.configuration.cache?.diskUsage()
            try Data("evil".utf8).write(to: try #require(folder.files(".body").first))
            let seen = try await session.run(server.url("/a"), headers: ["Cache-Control": "only-if-cached"])
            #expect(seen.status == 504 && seen.isOrderly && count() == 1)
        }

        @Test func `a request that decodes its body is not served a response stored undecoded`() async throws {
            server.route("/a") { _ in .gzip(Array("plain".utf8)).with("Cache-Control", "max-age=60") }
            let session = session()
            let options = with(TransferOptions()) { $0.decodesContent = false }
            #expect(try await session.run(server.url("/a"), options: options).body.starts(with: [0x1F, 0x8B]))
            #expect(try await session.run(server.url("/a")).text == "plain")
            #expect(count() == 2)
            #expect(try await session.run(server.url("/a")).text == "plain")
            #expect(count() == 2)
        }

        @Test func `redirects are cached, and a response with Authorization is served only to its user`() async throws {
            server.route("/old") { _ in .redirect(to: "/new", status: 301).with("Cache-Control", "max-age=60") }
            server.route("/new") { _ in .text("new").with("Cache-Control", "max-age=60") }
            server.route("/me") { .text($0["Authorization"] ?? "").with("Cache-Control", "max-age=60") }
            let session = session()
            for _ in 0..<2 { #expect(try await session.run(server.url("/old")).text == "new") }
            #expect(count() == 2)
            for user in ["Basic anna", "Basic otto", "Basic anna"] {
                #expect(try await session.run(server.url("/me"), headers: ["Authorization": user]).text == user)
            }
            #expect(count() == 4)
        }
    }

    /// A wall clock that a test advances.
    final class MovableTime: Sendable {
        private let moment: Locked<Date>

        init(_ start: Date) { moment = Locked(start) }

        var now: Date { moment.withLock { $0 } }

        func advance(_ seconds: Double) { moment.withLock { $0 += seconds } }
    }
#endif
