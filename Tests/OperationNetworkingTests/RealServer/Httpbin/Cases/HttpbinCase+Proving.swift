// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        static var proving: [HttpbinCase] {
            [
                provingAnna("Basic: the user and password answer a challenge", at: "basic-auth/anna/sesame"),
                HttpbinCase(
                    "Basic: a wrong password fails with status 401",
                    configure: { $0.challenges = .anna }
                ) { bench async throws in
                    let error = await failure(of: bench.base.get("basic-auth/anna/other", as: Data.self))
                    #expect(error?.code == .unacceptableStatus && error?.status == 401)
                },
                HttpbinCase("Basic: without a policy, the operation fails with status 401") { bench async throws in
                    #expect(await failure(of: bench.base.get("basic-auth/anna/x", as: Data.self))?.status == 401)
                },
                HttpbinCase("Basic: the user and password of the URL are sent, and removed from the URL") {
                    bench async throws in
                    let port = try #require(bench.base.url.port)
                    let url = try #require(
                        URL(string: "http://anna:sesame@127.0.0.1:\(port)/basic-auth/anna/sesame"))
                    let operation = NetworkDataOperation(url: url, urlSession: bench.session) { _, response in
                        response.statusCode
                    }
                    #expect(try await operation.run() == 200)
                    #expect(operation.request?.url.user == nil)
                },
                HttpbinCase("Basic: an explicit Authorization header is sent without a challenge") {
                    bench async throws in
                    let proof = "Basic \(Data("anna:sesame".utf8).base64EncodedString())"
                    let asked = try bench.text("hidden-basic-auth/anna/sesame")
                    #expect(await failure(of: asked)?.status == 404)
                    let proven = try bench.text("hidden-basic-auth/anna/sesame", ["Authorization": proof])
                    #expect(try await proven.run().contains("true"))
                },
                HttpbinCase(
                    "Basic: accepted credentials are sent with the next request"
                ) { bench async throws in
                    let questions = Locked(0)
                    var configuration = ExchangeConfiguration()
                    configuration.challenges = ChallengePolicy { _ in
                        questions.withLock { $0 += 1 }
                        return .password(user: "anna", password: "sesame")
                    }
                    var base = bench.base
                    base.session = ExchangeSession(over: bench.session.transport, configuration: configuration)
                    for _ in 0..<3 {
                        #expect(try await base.get("basic-auth/anna/sesame", as: Proof.self).run().authenticated)
                    }
                    #expect(questions.withLock { $0 } == 1)
                },
                HttpbinCase("Bearer: an explicit token is sent") { bench async throws in
                    let answer = try await bench.base.operation(
                        for: Endpoint<Proof>.get("bearer").header("Authorization", "Bearer t0ken")
                    ).run()
                    #expect(answer.authenticated && answer.token == "t0ken")
                },
                HttpbinCase(
                    "Bearer: a token from the policy answers a challenge",
                    configure: { $0.challenges = ChallengePolicy { $0.refused.isEmpty ? .token("t0ken") : nil } }
                ) { bench async throws in
                    let answer = try await bench.base.get("bearer", as: Proof.self).run()
                    #expect(answer.token == "t0ken")
                },
                HttpbinCase("Bearer: a request without a token fails with status 401") { bench async throws in
                    #expect(await failure(of: bench.base.get("bearer", as: Data.self))?.status == 401)
                },
                provingAnna(
                    "Digest: the user and password answer an MD5 challenge", at: "digest-auth/auth/anna/sesame"),
                provingAnna(
                    "Digest: the user and password answer a SHA-256 challenge",
                    at: "digest-auth/auth/anna/sesame/SHA-256"),
                HttpbinCase(
                    "Digest: a wrong password fails with status 401",
                    configure: { $0.challenges = .anna }
                ) { bench async throws in
                    #expect(
                        await failure(of: bench.base.get("digest-auth/auth/anna/other", as: Data.self))?.status == 401)
                },
            ]
        }
    }

    /// Returns a case in which the user and password of Anna are accepted.
    private func provingAnna(_ name: String, at target: String) -> HttpbinCase {
        HttpbinCase(name, configure: { $0.challenges = .anna }) { bench async throws in
            #expect(try await bench.isProven(target))
        }
    }

    private struct Proof: Decodable, Sendable {
        let authenticated: Bool
        let token: String?
    }

    extension ChallengePolicy {
        fileprivate static let anna = ChallengePolicy { question in
            question.refused.isEmpty ? .password(user: "anna", password: "sesame") : nil
        }
    }

    extension HttpbinBench {
        /// Returns whether the service reports the user as authenticated.
        fileprivate func isProven(_ target: String) async throws -> Bool {
            let text = try await text(target).run()
            return try JSONDecoder().decode(Proof.self, from: Data(text.utf8)).authenticated
        }
    }
#endif
