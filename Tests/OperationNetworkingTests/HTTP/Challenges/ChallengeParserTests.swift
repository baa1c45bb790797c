// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ChallengeParserTests {
    private func shown(_ fields: String...) -> [String] {
        Challenge.parse(fields).map { challenge in
            let names = ["realm", "nonce", "qop", "title", "charset", "error", "a", "b"]
            let parameters = names.compactMap { name in challenge[name].map { "\(name)=<\($0)>" } }
            return ([challenge.scheme] + (challenge.token.map { ["token:\($0)"] } ?? []) + parameters).joined(
                separator: " ")
        }
    }

    @Test(arguments: [
        ("Basic", ["basic"]), ("Basic realm=\"x\"", ["basic realm=<x>"]), ("BASIC REALM=x", ["basic realm=<x>"]),
        ("Basic realm=\"a, b=c\"", ["basic realm=<a, b=c>"]),
        ("Basic realm=\"a\\\"b\\\\c\"", ["basic realm=<a\"b\\c>"]),
        ("Basic realm = \"x\" , charset = UTF-8", ["basic realm=<x> charset=<UTF-8>"]),
        (
            "Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\"",
            ["newauth realm=<apps> title=<Login to \"apps\">", "basic realm=<simple>"]
        ),
        ("Negotiate", ["negotiate"]), ("Negotiate, Basic realm=x", ["negotiate", "basic realm=<x>"]),
        ("Negotiate YII=", ["negotiate token:YII="]),
        ("Negotiate a/b+c==, Basic realm=x", ["negotiate token:a/b+c==", "basic realm=<x>"]),
        (
            "Bearer error=\"invalid_token\",a=1,Digest nonce=n,qop=\"auth,auth-int\"",
            ["bearer error=<invalid_token> a=<1>", "digest nonce=<n> qop=<auth,auth-int>"]
        ),
        (",,, Basic realm=x ,, , Digest nonce=n,,", ["basic realm=<x>", "digest nonce=<n>"]),
        ("Basic a=1, a=2", ["basic a=<1>"]), ("Basic realm=\"\"", ["basic realm=<>"]),
        ("Basic realm=\"open", []), ("Basic realm=, Digest nonce=n", ["basic token:realm=", "digest nonce=<n>"]),
        ("\"Basic\"", []),
        ("Basic realm=\"x\" y=1, Digest nonce=n", ["digest nonce=<n>"]), ("", []), (" , ", []),
        ("=a, Basic", ["basic"]),
        ("@, Basic realm=x", ["basic realm=<x>"]), ("Basic realm=\"\u{E9}\u{301}\"", ["basic realm=<\u{E9}\u{301}>"]),
    ])
    func `a challenge header is parsed as RFC 9110 requires`(field: String, expected: [String]) {
        #expect(shown(field) == expected)
    }

    @Test func `several challenge headers are parsed in order`() {
        #expect(shown("Basic realm=x", "broken=", "Digest nonce=n") == ["basic realm=<x>", "digest nonce=<n>"])
    }

    @Test func `arbitrary text never crashes the parser, and long text takes linear time`() {
        let pieces = ["Basic", "Digest", " ", ",", "=", "\"", "\\", "realm", "a", "é", "\t", "==", "@"]
        for text in SeededGenerator.texts(20_000, of: pieces, most: 12, seed: 7235) {
            for challenge in Challenge.parse([text]) { #expect(challenge.scheme.isToken, "\(text)") }
        }
        #expect(Challenge.parse([String(repeating: "@\"", count: 100_000)]).isEmpty)
        #expect(Challenge.parse([String(repeating: "a ", count: 100_000)]).isEmpty)
        #expect(Challenge.parse([String(repeating: "a,", count: 100_000)]).count == 32)
    }
}
