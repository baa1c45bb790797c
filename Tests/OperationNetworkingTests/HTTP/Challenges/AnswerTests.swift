// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct AnswerTests {
    private func digest(_ challenge: String) throws -> DigestAnswer? {
        DigestAnswer(try #require(Challenge.parse([challenge]).first))
    }

    @Test(arguments: [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
    func `the Digest example of RFC 7616 produces its response`(algorithm: String, response: String) throws {
        let answer = try #require(
            try digest(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=\(algorithm), "
                    + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            ))
        let value = answer.value(
            user: "Mufasa", password: "Circle of Life", method: "GET", target: "/dir/index.html", count: 1,
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(
            value == "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", "
                + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", response=\"\(response)\", "
                + "algorithm=\(algorithm), opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", qop=auth, nc=00000001, "
                + "cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\"")
    }

    @Test func `the Digest examples of RFC 2617 and RFC 2069 produce their responses`() throws {
        let modern = try #require(
            try digest(
                "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc069c403ebaf9f0171e9517f40e41\""
            ))
        let value = modern.value(
            user: "Mufasa", password: "Circle Of Life", method: "GET", target: "/dir/index.html", count: 1,
            clientNonce: "0a4f113b")
        #expect(value?.contains("response=\"6629fae49393a05397450978507c4ef1\"") == true)
        #expect(value?.contains("algorithm") == false)
        let old = try #require(
            try digest("Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\""))
        let oldValue = old.value(
            user: "Mufasa", password: "CircleOfLife", method: "GET", target: "/dir/index.html", count: 1,
            clientNonce: "x")
        #expect(oldValue?.contains("response=\"1949323746fe6a43ef61f9606e7febea\"") == true)
        #expect(oldValue?.contains("qop") == false && oldValue?.contains("cnonce") == false)
    }

    @Test(arguments: [
        "Digest realm=x", "Digest realm=x, nonce=n, algorithm=SHA-512-256", "Digest nonce=n, qop=auth-int",
        "Digest nonce=n, algorithm=MD5-sess", "Basic realm=x, nonce=n", "Digest nonce=n, algorithm=\"\"",
    ])
    func `an unsupported Digest challenge is not answered`(challenge: String) throws {
        #expect(try digest(challenge) == nil)
    }

    @Test
    func `Digest encodes non-ASCII user names, hashes user names on request and escapes quotes`()
        throws
    {
        let plain = try #require(try digest("Digest realm=\"a\\\"b\", nonce=n, qop=auth, charset=UTF-8"))
        let value = try #require(
            plain.value(user: "Jäsøn", password: "ü", method: "GET", target: "/", count: 0xAB, clientNonce: "c"))
        #expect(value.hasPrefix("Digest username*=UTF-8''J%C3%A4s%C3%B8n, realm=\"a\\\"b\""))
        #expect(value.contains("nc=000000ab"))
        let hashed = try #require(try digest("Digest realm=r, nonce=n, qop=auth, userhash=true, algorithm=SHA-256"))
        let hidden = try #require(
            hashed.value(user: "anna", password: "p", method: "GET", target: "/", count: 1, clientNonce: "c"))
        #expect(!hidden.contains("anna") && hidden.contains("userhash=true"))
    }

    @Test func `Basic encodes UTF-8 in Base64 and rejects a user name with a colon`() {
        #expect(Proof.basic(user: "Aladdin", password: "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(Proof.basic(user: "test", password: "123£") == "Basic dGVzdDoxMjPCow==")
        #expect(Proof.basic(user: "a:b", password: "c") == nil)
        #expect(Proof.basic(user: "a", password: "b\n") == nil)
        #expect(Proof.basic(user: "", password: ":") == "Basic Ojo=")
    }
}
