// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct ExchangeChallengeTests {
        private let server: LoopbackServer
        private let transport = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        private func session(_ policy: ChallengePolicy?) -> ExchangeSession {
            ExchangeSession.over(transport) { $0.challenges = policy }
        }

        /// Accepts requests with a matching Authorization header and sends the challenge to all others.
        private func protect(_ path: String, _ challenge: String, _ accepts: @escaping @Sendable (String) -> Bool) {
            server.route(path) { request in
                if let field = request["Authorization"], accepts(field) { return .text("in \(request.text)") }
                return .text("who?", status: 401).with("WWW-Authenticate", challenge)
            }
        }

        private static func annaOnce(_ question: CredentialQuestion) -> Credential? {
            question.refused.isEmpty ? .password(user: "anna", password: "secret") : nil
        }

        @Test
        func `a Basic challenge is answered, and the next request sends the credential immediately`() async throws {
            protect("/a*", "Basic realm=\"r\"") { $0 == "Basic YW5uYTpzZWNyZXQ=" }
            let questions = Locked<[String]>([])
            let session = session(
                ChallengePolicy { question in
                    questions.withLock { $0.append("\(question.space.scheme) \(question.space.realm)") }
                    return Self.annaOnce(question)
                })
            let first = try await session.run(server.url("/a/1"), "POST", body: .data(Data("body".utf8)))
            #expect(first.text == "in body" && first.isOrderly)
            #expect(try await session.run(server.url("/a/2")).text == "in ")
            #expect(questions.withLock { $0 } == ["basic r"])
            #expect(server.requests.count == 3)
            session.forgetCredentials()
            #expect(try await session.run(server.url("/a/2")).text == "in ")
            #expect(server.requests.count == 5)
        }

        @Test func `a credential that is accepted after forgetCredentials is not remembered`() async throws {
            let (isOut, asked, answers) = (Gate(), Gate(), Gate())
            server.route("/a*") { request in
                guard request["Authorization"] != nil else {
                    return .status(401, ["WWW-Authenticate": "Basic realm=r"])
                }
                guard request.path == "/a/slow" else { return .status(204) }
                return LoopbackAnswer(.stall(until: isOut), .head(200, ["Content-Length": "0"]))
            }
            let session = session(
                ChallengePolicy { question in
                    asked.open()
                    await answers.passage()
                    return Self.annaOnce(question)
                })
            // The user signs out while the rule is asked.
            let first = RecordingReceiver()
            try session.begin(server.url("/a/1"), first)
            await asked.passage()
            session.forgetCredentials()
            answers.open()
            #expect(await first.end().status == 204)
            #expect(try await session.run(server.url("/a/2")).status == 204)
            #expect(server.requests.map { $0["Authorization"] != nil } == [false, true, false, true])
            // The user signs out while a request with the remembered credential is in progress.
            let second = RecordingReceiver()
            try session.begin(server.url("/a/slow"), second)
            _ = await server.heads(atLeast: 5)
            session.forgetCredentials()
            isOut.open()
            #expect(await second.end().status == 200)
            #expect(try await session.run(server.url("/a/3")).status == 204)
            #expect(server.requests.map { $0["Authorization"] != nil }.suffix(3) == [true, false, true])
        }

        @Test(arguments: ["MD5", "SHA-256"])
        func `a Digest response matches the server's computation, with a new nonce count each time`(algorithm: String)
            async throws
        {
            let challenge = "Digest realm=r, nonce=n1, qop=auth, algorithm=\(algorithm)"
            let answer = try #require(DigestAnswer(Challenge.parse([challenge])[0]))
            let counts = Locked<Set<String>>([])
            server.route("/d*") { request in
                func part(_ name: String) -> String? {
                    let field = Challenge.parse([request["Authorization"] ?? ""]).first
                    return field?[name]
                }
                guard let count = part("nc").flatMap({ UInt32($0, radix: 16) }), let client = part("cnonce"),
                    counts.withLock({ $0.insert("\(client) \(count)").inserted }),
                    request["Authorization"]
                        == answer.value(
                            user: "anna", password: "secret", method: request.method, target: request.target,
                            count: count,
                            clientNonce: client)
                else {
                    return .status(
                        401, ["WWW-Authenticate": challenge])
                }
                return .text("in")
            }
            let session = session(ChallengePolicy(Self.annaOnce))
            for index in 0..<4 {
                #expect(try await session.run(server.url("/d?x=\(index)")).text == "in")
            }
            #expect(server.requests.count == 5)
        }

        @Test func `a wrong credential, no credential or no policy delivers the 401 with its body`() async throws {
            protect("/a", "Basic realm=\"r\"") { _ in false }
            let policies: [ChallengePolicy?] = [
                ChallengePolicy(Self.annaOnce), ChallengePolicy { _ in nil }, nil,
                ChallengePolicy { _ in .password(user: "same", password: "again") },
            ]
            for (policy, count) in zip(policies, [2, 1, 1, 2]) {
                let before = server.requests.count
                let seen = try await session(policy).run(server.url("/a"))
                #expect(seen.status == 401 && seen.text == "who?" && seen.isOrderly && seen.error == nil)
                #expect(server.requests.count == before + count)
            }
        }

        @Test func `a policy that always returns a new credential is asked at most three times`() async throws {
            protect("/a", "Basic realm=\"r\"") { _ in false }
            let count = Locked(0)
            let seen = try await session(
                ChallengePolicy { _ in
                    .password(user: "u\(count.next())", password: "")
                }
            ).run(server.url("/a"))
            #expect(seen.status == 401 && server.requests.count == 4)
        }

        @Test func `a request with its own Authorization header or a one-time body is not retried`() async throws {
            protect("/a", "Basic realm=\"r\"") { _ in false }
            let session = session(ChallengePolicy(Self.annaOnce))
            #expect(try await session.run(server.url("/a"), headers: ["Authorization": "Mine x"]).status == 401)
            #expect(server.requests.count == 1)
            let once = RequestBody.stream(length: 1, canBeSentAgain: false) {
                PieceProducer(Array(Data("x".utf8)), size: .max)
            }
            #expect(try await session.run(server.url("/a"), "POST", body: once).status == 401)
            #expect(server.requests.count == 2)
        }

        @Test func `a Bearer token comes from the policy and is not sent to another port`() async throws {
            let other = try LoopbackServer()
            other.route("/") { .text($0["Authorization"] ?? "nothing") }
            let place = other.url("/").absoluteString
            server.route("/a") { request in
                request["Authorization"] == "Bearer t0ken"
                    ? .redirect(to: place)
                    : .status(401, ["WWW-Authenticate": "Bearer realm=\"api\", error=\"invalid_token\""])
            }
            let session = session(ChallengePolicy { $0.space.scheme == "bearer" ? .token("t0ken") : nil })
            #expect(try await session.run(server.url("/a")).text == "nothing")
        }

        @Test(arguments: [true, false])
        func `a sign-in page can redirect back to a URL that now gets the credential`(remembers: Bool) async throws {
            server.route("/a") { $0["Authorization"] == nil ? .redirect(to: "/login") : .text("in") }
            server.route("/login") {
                $0["Authorization"] == nil
                    ? .status(401, ["WWW-Authenticate": "Basic realm=r"]) : .redirect(to: "/a")
            }
            let policy = with(ChallengePolicy(Self.annaOnce)) { $0.remembers = remembers }
            let failure: NetworkError.Code? = remembers ? nil : .redirectLoop
            let seen = try await session(policy).run(server.url("/a"))
            #expect(seen.error?.code == failure && seen.status == (remembers ? 200 : nil))
            #expect(server.requests.map(\.path) == ["/a", "/login", "/login"] + (remembers ? ["/a"] : []))
        }

        @Test func `a task canceled while the policy decides sends nothing more and ends once`() async throws {
            server.route("/a") { _ in
                .status(401, ["WWW-Authenticate": "Digest realm=r, nonce=n, qop=auth, Basic realm=\"r\""])
            }
            server.route("/other") { _ in .text("other") }
            let (asked, go, answered) = (Gate(), Gate(), Gate())
            let schemes = Locked<[String]>([])
            let probe = RecordingReceiver()
            let session = session(
                ChallengePolicy { question in
                    schemes.withLock { $0.append(question.space.scheme) }
                    asked.open()
                    await go.passage()
                    defer { answered.open() }
                    // No credential for the first challenge, so that the second one would be asked.
                    return question.space.scheme == "basic" ? Self.annaOnce(question) : nil
                })
            let task = try session.begin(server.url("/a"), probe)
            await asked.passage()
            task.cancel()
            let seen = await probe.end()
            #expect(seen.error?.code == .cancelled && seen.isOrderly && seen.heads.isEmpty)
            go.open()
            await answered.passage()
            task.resume()
            for _ in 0..<20 { _ = try await session.run(server.url("/other")) }
            #expect(server.requests.filter { $0.path == "/a" }.count == 1)
            #expect(schemes.withLock { $0 } == ["digest"])
        }
    }
#endif
