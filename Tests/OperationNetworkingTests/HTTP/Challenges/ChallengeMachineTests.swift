// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ChallengeMachineTests {
    private let anna = Credential.password(user: "anna", password: "secret")

    private func hop(
        _ method: String = "GET", _ url: String = "https://h.com/a/b", headers: HeaderFields = [:],
        body: RequestBody = .none
    ) throws -> Hop {
        try Hop(method: method, address: WebAddress(url), headers: headers, body: body)
    }

    private func head(_ status: Int, _ challenges: String...) throws -> ResponseHead {
        let url = try #require(URL(string: "https://h.com/a/b"))
        return ResponseHead(
            url: url, status: status,
            headers: HeaderFields(challenges.map { HeaderFields.Field("WWW-Authenticate", $0) }))
    }

    private func questions(_ action: ChallengeMachine.Action) -> [CredentialQuestion]? {
        if case .ask(let questions) = action { questions } else { nil }
    }

    /// The questions that the machine asks after a response, or `nil` if it asks none.
    private func asked(
        _ machine: inout ChallengeMachine, _ head: ResponseHead, _ proof: Proof? = nil, isFromMemory: Bool = false
    ) throws -> [CredentialQuestion]? {
        questions(machine.receive(head, to: try hop(), proof: proof, isFromMemory: isFromMemory, clientNonce: "c"))
    }

    private func taken(
        _ machine: inout ChallengeMachine, _ credential: Credential?, _ question: CredentialQuestion?
    ) throws -> Proof? {
        try machine.take(credential, for: #require(question), clientNonce: "c")
    }

    private func isDelivered(_ action: ChallengeMachine.Action) -> Bool {
        if case .deliver = action { true } else { false }
    }

    @Test func `challenges are asked from strongest to unknown, and unsupported ones are skipped`() throws {
        var machine = ChallengeMachine(maximumTries: 3)
        let action = try machine.receive(
            head(
                401, "Custom a=1, Basic realm=r", "Digest realm=r, nonce=n, qop=auth",
                "Digest realm=r, nonce=n, qop=auth, algorithm=SHA-256",
                "Digest realm=r, nonce=n, algorithm=SHA-512-256, Bearer realm=r"),
            to: hop(), proof: nil, isFromMemory: false, clientNonce: "c")
        let found = try #require(questions(action))
        #expect(found.map(\.space.scheme) == ["digest", "digest", "basic", "custom", "bearer"])
        #expect(found.first?.challenge["algorithm"] == "SHA-256")
        #expect(found.first?.space.origin.description == "https://h.com")
    }

    @Test
    func `without a usable challenge or a repeatable request, the response is delivered`()
        throws
    {
        let once = RequestBody.stream(canBeSentAgain: false) { throw CancellationError() }
        let cases = try [
            (head(401), hop()), (head(401, "Basic realm=\"open"), hop()),
            (head(401, "Basic"), hop(headers: ["authorization": "mine"])),
            (head(401, "Basic"), hop("POST", body: once)), (head(403, "Basic"), hop()), (head(407, "Basic"), hop()),
            (head(200, "Basic"), hop()),
        ]
        for (head, hop) in cases {
            var machine = ChallengeMachine(maximumTries: 3)
            let action = machine.receive(head, to: hop, proof: nil, isFromMemory: false, clientNonce: "c")
            #expect(isDelivered(action))
        }
    }

    @Test func `a refused credential is reported and not sent again`() throws {
        var machine = ChallengeMachine(maximumTries: 3)
        let basic = try head(401, "Basic realm=r")
        let first = try asked(&machine, basic)?.first
        #expect(first?.refused == [])
        let proof = try taken(&machine, anna, first)
        let second = try asked(&machine, basic, proof)?.first
        #expect(second?.refused == [anna])
        for useless in [anna, .token("t"), nil] {
            let proof = try taken(&machine, useless, second)
            #expect(proof == nil)
        }
        let other = Credential.password(user: "otto", password: "x")
        let next = try taken(&machine, other, second)
        let end = try machine.receive(head(200), to: hop(), proof: next, isFromMemory: false, clientNonce: "c")
        guard case .accepted(let accepted) = end else { return unmet("The credential was not accepted.") }
        #expect(accepted.credential == other)
    }

    @Test func `a stale nonce is renewed without asking for a credential`() throws {
        var machine = ChallengeMachine(maximumTries: 3)
        let first = try asked(&machine, head(401, "Digest realm=r, nonce=one, qop=auth"))?.first
        let taken = try taken(&machine, anna, first)
        var proof = try #require(taken)
        for count in 1...2 {
            let value = proof.value(method: "GET", target: "/")
            #expect(value?.contains("nc=0000000\(count)") == true)
        }
        let stale = try head(401, "Digest realm=r, nonce=two, qop=auth, stale=TRUE")
        let action = try machine.receive(stale, to: hop(), proof: proof, isFromMemory: false, clientNonce: "d")
        guard case .answer(let renewed) = action else { return unmet("The nonce was not renewed.") }
        #expect(renewed.nonce == "two" && renewed.count == 0)
        // If the server calls the same nonce stale again, it refuses the credential.
        let again = try asked(&machine, stale, renewed)
        #expect(again?.first?.refused == [anna])
    }

    @Test(arguments: [0, 1, 3, 7])
    func `a server that refuses every credential is tried at most maximumTries times`(limit: Int) throws {
        for isStale in [false, true] {
            var machine = ChallengeMachine(maximumTries: limit)
            var proof: Proof?
            var tries = 0
            while true {
                let stale = isStale ? ", stale=true" : ""
                let action = try machine.receive(
                    head(401, "Digest realm=r, nonce=n\(tries), qop=auth\(stale)"), to: hop(), proof: proof,
                    isFromMemory: false, clientNonce: "c")
                switch action {
                case .answer(let next): proof = next
                case .ask(let questions):
                    proof = try machine.take(
                        .password(user: "u\(tries)", password: ""), for: #require(questions.first), clientNonce: "c")
                case .deliver, .accepted: proof = nil
                }
                guard proof != nil else { break }
                tries += 1
            }
            #expect(tries == limit)
        }
    }

    @Test func `a refused proof from memory does not mark its credential as refused`() throws {
        var machine = ChallengeMachine(maximumTries: 3)
        let challenge = try #require(Challenge.parse(["Basic realm=r"]).first)
        let proof = try #require(Proof(challenge, anna, at: hop().address.origin, clientNonce: "c"))
        let question = try asked(&machine, head(401, "Basic realm=r"), proof, isFromMemory: true)?.first
        #expect(question?.refused == [])
        let again = try taken(&machine, anna, question)
        #expect(again != nil)
    }

    @Test func `the memory returns proofs by origin and path, and increments each nonce count`() throws {
        var memory = ProofMemory()
        func used(_ url: String) throws -> String? { try memory.use(for: hop("GET", url))?.value }
        let origin = try hop().address.origin
        let basic = try #require(Proof(Challenge.parse(["Basic realm=r"])[0], anna, at: origin, clientNonce: "c"))
        memory.remember(basic, acceptedBy: try hop("GET", "https://h.com/a/b"))
        let reached = try ["https://h.com/a/x/y", "https://h.com/c", "https://h.com:444/a/b", "http://h.com/a/b"].map(
            used)
        #expect(reached.map { $0 != nil } == [true, false, false, false])
        let challenge = Challenge.parse(["Digest realm=d, nonce=n, qop=auth"])[0]
        var digest = try #require(Proof(challenge, anna, at: origin, clientNonce: "c"))
        _ = digest.value(method: "GET", target: "/")
        memory.remember(digest, acceptedBy: try hop())
        for count in 2...5 {
            let value = try used("https://h.com/elsewhere")
            #expect(value?.contains("nc=0000000\(count)") == true)
        }
        // An older copy of the proof that is accepted late does not reset the count.
        memory.remember(digest, acceptedBy: try hop())
        let next = try used("https://h.com/z")
        #expect(next?.contains("nc=00000006") == true)
        memory.forget(digest)
        let forgotten = try used("https://h.com/z")
        #expect(forgotten == nil)
        memory.forgetAll()
        let last = try used("https://h.com/a/b")
        #expect(last == nil)
    }

    @Test func `an older nonce that is accepted late does not replace a newer nonce`() throws {
        var memory = ProofMemory()
        func proof(_ nonce: String) throws -> Proof {
            let challenge = Challenge.parse(["Digest realm=d, nonce=\(nonce), qop=auth"])[0]
            return try #require(Proof(challenge, anna, at: hop().address.origin, clientNonce: "c"))
        }
        memory.remember(try proof("one"), acceptedBy: try hop())
        let taken = memory.use(for: try hop())
        let late = try #require(taken?.proof)
        memory.forget(late)
        memory.remember(late, acceptedBy: try hop(), isFromMemory: true)
        let refused = memory.use(for: try hop())
        #expect(refused == nil)
        memory.remember(try proof("two"), acceptedBy: try hop())
        memory.remember(late, acceptedBy: try hop(), isFromMemory: true)
        let newer = memory.use(for: try hop())?.proof
        #expect(newer?.nonce == "two")
    }

    @Test func `a remembered Basic proof applies to each path at which it was accepted`() throws {
        var memory = ProofMemory()
        func reached(_ path: String) throws -> Bool { try memory.use(for: hop("GET", "https://h.com\(path)")) != nil }
        let challenge = Challenge.parse(["Basic realm=r"])[0]
        let basic = try #require(Proof(challenge, anna, at: hop().address.origin, clientNonce: "c"))
        for path in ["/a/x", "/b/x", "/a/deeper/x"] {
            memory.remember(basic, acceptedBy: try hop("GET", "https://h.com\(path)"))
        }
        let first = try ["/a/z", "/b/z", "/c/z"].map(reached)
        #expect(first == [true, true, false])
        for index in 0..<100 { memory.remember(basic, acceptedBy: try hop("GET", "https://h.com/\(index)/x")) }
        let second = try ["/99/z", "/90/z", "/a/z"].map(reached)
        #expect(second == [true, true, false])
        memory.remember(basic, acceptedBy: try hop("GET", "https://h.com/x"))
        #expect(try reached("/a/z"))
        memory.forget(basic)
        #expect(try !reached("/a/z"))
    }
}
