// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(2)))
    struct ExchangeControlTests {
        private let server: LoopbackServer
        private let transport = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        private func session(_ change: (inout ExchangeConfiguration) -> Void = { _ in }) -> ExchangeSession {
            ExchangeSession.over(transport, change)
        }

        @Test func `cookies set by a redirect are sent to its target`() async throws {
            server.route("/login") { _ in
                .redirect(to: "/home").with("Set-Cookie", "id=42; HttpOnly").adding(
                    "Set-Cookie", "other=x, y; Path=/elsewhere")
            }
            server.route("/home") { .text($0["Cookie"] ?? "none") }
            let jar = CookieJar()
            let session = session { $0.cookies = jar }
            #expect(try await session.run(server.url("/login")).text == "id=42")
            #expect(try await session.run(server.url("/home")).text == "id=42")
            #expect(try await session.run(server.url("/home"), headers: ["Cookie": "own=1"]).text == "own=1")
            #expect(jar.cookies.map(\.name) == ["id", "other"])
            #expect(try await self.session().run(server.url("/home")).text == "none")
        }

        @Test func `a redirect to the same URL that sets a cookie is followed`() async throws {
            server.route("/a") { request in
                request["Cookie"] == nil ? .redirect(to: "/a").with("Set-Cookie", "seen=1") : .text("in")
            }
            #expect(try await session { $0.cookies = CookieJar() }.run(server.url("/a")).text == "in")
        }

        @Test func `a body over the limit fails with bodyTooLarge, with or without Content-Length`() async throws {
            server.route("/told") { _ in LoopbackAnswer.repeating([65], count: 1001) }
            server.route("/chunks") { _ in
                .chunks([String(repeating: "a", count: 600), String(repeating: "b", count: 600)])
            }
            server.route("/fits") { _ in LoopbackAnswer.repeating([65], count: 1000) }
            let session = session { $0.maximumBodyBytes = 1000 }
            let told = try await session.run(server.url("/told"))
            #expect(
                told.error?.code == .bodyTooLarge && told.error?.status == 200 && told.heads.isEmpty && told.isOrderly)
            let chunks = try await session.run(server.url("/chunks"))
            #expect(chunks.error?.code == .bodyTooLarge && chunks.body.count <= 1000 && chunks.isOrderly)
            #expect(try await session.run(server.url("/fits")).body.count == 1000)
            #expect(try await session.run(server.url("/told"), "HEAD").error == nil)
        }

        @Test func `a 304 response is accepted even if its Content-Length exceeds the limit`() async throws {
            server.route("/same") { _ in .status(304, ["Content-Length": "5000", "ETag": "\"a\""]) }
            let session = session { $0.maximumBodyBytes = 1000 }
            let seen = try await session.run(server.url("/same"), headers: ["If-None-Match": "\"a\""])
            #expect(seen.status == 304 && seen.error == nil, "\(String(describing: seen.error))")
        }

        @Test func `the wait for a slow redirect body ends after a time limit`() async throws {
            let gate = Gate()
            server.route("/a") { _ in
                LoopbackAnswer(
                    .head(302, ["Location": "/b", "Transfer-Encoding": "chunked"]), .chunk("x"), .stall(until: gate))
            }
            server.route("/b") { _ in .text("b") }
            let clock = ManualClock()
            let isDraining = Gate()
            let noticing = ClosureClock(
                over: clock,
                schedule: { instant, action in
                    defer { isDraining.open() }
                    return clock.schedule(at: instant, action)
                })
            let session = session { $0.clock = noticing }
            let probe = RecordingReceiver()
            session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe).resume()
            await isDraining.passage()
            #expect(server.requests.map(\.path) == ["/a"])
            clock.advance(by: .seconds(2))
            let seen = await probe.end()
            #expect(seen.text == "b" && seen.isOrderly && clock.pendingCount == 0)
            gate.open()
        }

        @Test func `headers over the limit fail with headerTooLarge, and a request can raise the limit`() async throws {
            server.route("/") { _ in .text("x").with("X-Long", String(repeating: "y", count: 70_000)) }
            let session = session()
            #expect(try await session.run(server.url()).error?.code == .headerTooLarge)
            let options = with(TransferOptions()) { $0.maximumHeaderSize = 80_000 }
            let seen = try await session.run(server.url(), options: options)
            #expect(seen.text == "x" && seen.isOrderly)
        }

        @Test func `a deadline covers the whole exchange, including redirects`() async throws {
            server.route("/a") { _ in .redirect(to: "/b") }
            server.route("/b") { _ in .silence }
            let clock = ManualClock()
            let session = session {
                $0.deadline = .seconds(30)
                $0.clock = clock
            }
            let probe = RecordingReceiver()
            session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe).resume()
            _ = await server.requests(atLeast: 2)
            clock.advance(by: .seconds(29))
            #expect(probe.record.ends == 0)
            clock.advance(by: .seconds(1))
            let seen = await probe.end()
            #expect(seen.error?.code == .timedOut && seen.isOrderly)
            #expect(clock.pendingCount == 0)
            server.route("/c") { _ in .text("x") }
            _ = try await session.run(server.url("/c"))
            #expect(clock.pendingCount == 0)
        }

        @Test func `only an exchange that sent nothing reports isUnsent`() async throws {
            let gone = try LoopbackServer()
            let nowhere = gone.url("/")
            await gone.stopped()
            server.route("/a") { _ in .redirect(to: nowhere.absoluteString, status: 303) }
            let direct = try await session().run(nowhere)
            #expect(direct.error?.code == .cannotConnect && direct.error?.isUnsent == true)
            let after = try await session().run(server.url("/a"), "POST", body: .data(Data("x".utf8)))
            #expect(after.error?.code == .cannotConnect && after.error?.isUnsent == false)
            server.route("/silent") { _ in .silence }
            let probe = RecordingReceiver()
            let task = try session().begin(server.url("/silent"), probe)
            _ = await server.requests(atLeast: 2)
            task.cancel()
            #expect(await probe.end().error?.isUnsent == false)
        }

        @Test func `a decision made while an exchange is suspended takes effect on resume`() async throws {
            let (asked, decide) = (Gate(), Gate())
            server.route("/a") { _ in .redirect(to: "/b") }
            let session = session {
                $0.redirects = .deciding { _ in
                    asked.open()
                    await decide.passage()
                    return .stop
                }
            }
            let probe = RecordingReceiver()
            let task = try session.begin(server.url("/a"), probe)
            await asked.passage()
            task.suspend()
            decide.open()
            // Other exchanges complete meanwhile, also on the threads that ran the policy.
            server.route("/other") { _ in .text("other") }
            for _ in 0..<5 { #expect(try await self.session().run(server.url("/other")).text == "other") }
            #expect(probe.record.heads.isEmpty && probe.record.ends == 0)
            task.resume()
            let seen = await probe.end()
            #expect(seen.status == 302 && seen.isOrderly && seen.error == nil)
        }

        @Test func `exchanges canceled at random moments of redirects, challenges and caching end exactly once`()
            async throws
        {
            let folder = CacheFolderFixture()
            let moment = RandomMoment()
            server.route("/r") { _ in
                moment.step()
                return .redirect(to: "/p")
            }
            server.route("/p") { request in
                moment.step()
                return request["Authorization"] == nil
                    ? .status(401, ["WWW-Authenticate": "Basic realm=r"])
                    : .text(String(repeating: "x", count: 3000)).with("Cache-Control", "max-age=1").with(
                        "ETag", "\"a\"")
            }
            let session = session {
                $0.redirects = .deciding { _ in
                    moment.step()
                    await Task.yield()
                    return .follow
                }
                $0.challenges = ChallengePolicy { question in
                    moment.step()
                    await Task.yield()
                    return question.refused.isEmpty ? .password(user: "a", password: "b") : nil
                }
                $0.cookies = CookieJar()
                $0.cache = HTTPCache(folder: folder.url)
            }
            var generator = SeededGenerator(seed: 4)
            var complete = 0
            for round in 0..<400 {
                let probe = RecordingReceiver { event, _ in
                    switch event {
                    case .head, .bytes: moment.step()
                    default: break
                    }
                }
                let task = session.makeTask(with: try NetworkRequest(url: server.url("/r")), receiver: probe)
                // Some exchanges are not canceled, so that some complete.
                let isSpared = round.isMultiple(of: 20)
                // After the gate opens, the exchange is at a random point when it is canceled.
                let gate = moment.begin(after: Int.random(in: 0..<8, using: &generator))
                let turns = Int.random(in: 0..<300, using: &generator)
                let isSuspending = generator.chance(1, in: 3)
                task.resume()
                if isSuspending {
                    task.suspend()
                    task.resume()
                }
                let cancelling = Task.detached {
                    if isSpared { return }
                    await gate.passage()
                    for _ in 0..<turns { await Task.yield() }
                    task.cancel()
                }
                let seen = await probe.end()
                // The exchange may have ended before it reached that step.
                gate.open()
                await cancelling.value
                #expect(seen.isOrderly, "round \(round): \(seen.faults) \(seen.ends)")
                if seen.error == nil {
                    complete += 1
                    #expect(seen.body.count == 3000)
                } else {
                    #expect(seen.error?.code == .cancelled)
                }
                if generator.chance(1, in: 10) { session.forgetCredentials() }
            }
            #expect(complete >= 20 && complete < 400, "\(complete) of 400")
            #expect(server.violations.isEmpty)
        }
    }

    /// A gate that opens after a given number of steps.
    private final class RandomMoment: Sendable {
        private let state = Locked((gate: Gate(), stepsLeft: 0))

        /// Creates the gate for the next round.
        func begin(after steps: Int) -> Gate {
            let gate = Gate()
            if steps == 0 { gate.open() }
            state.withLock { $0 = (gate, steps) }
            return gate
        }

        func step() {
            let gate = state.withLock { state in
                state.stepsLeft -= 1
                return state.stepsLeft == 0 ? state.gate : nil
            }
            gate?.open()
        }
    }

#endif
