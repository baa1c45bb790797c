// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
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
