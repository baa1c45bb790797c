// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct RedirectMachineTests {
    private static let secrets: HeaderFields = [
        "Authorization": "Basic x", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "*/*", "Referer": "https://h.com/",
    ]

    private func hop(
        _ method: String = "GET", _ url: String = "https://h.com/a", headers: HeaderFields = [:],
        body: RequestBody = .none
    ) throws -> Hop {
        try Hop(method: method, address: WebAddress(url), headers: headers, body: body)
    }

    private func head(_ status: Int, _ locations: String...) throws -> ResponseHead {
        let url = try #require(URL(string: "https://h.com/a"))
        return ResponseHead(
            url: url, status: status, headers: HeaderFields(locations.map { HeaderFields.Field("Location", $0) }))
    }

    private func next(
        _ status: Int, _ location: String, after hop: Hop, policy: RedirectPolicy = .follow
    ) throws -> Hop? {
        var machine = RedirectMachine(policy: policy)
        guard case .follow(let next) = try machine.receive(head(status, location), to: hop, cookies: nil) else {
            return nil
        }
        return next
    }

    @Test func `headers with secret names are not sent to another origin`() throws {
        let headers: HeaderFields = ["X-Api-Key": "k", "x-auth-token": "t", "PRIVATE-TOKEN": "p", "X-Plain": "p"]
        let stranger = try #require(try next(302, "https://evil.com/", after: hop(headers: headers)))
        #expect(stranger.headers.map(\.name) == ["X-Plain"])
        let same = try #require(try next(302, "/b", after: hop(headers: headers)))
        #expect(same.headers.count == 4)
    }

    @Test func `an idempotency key is sent to another origin unless the policy lists it`() throws {
        let first = try hop("POST", headers: ["Idempotency-Key": "one", "X-Api-Key": "k"])
        #expect(try next(308, "https://o.com/", after: first)?.headers == ["Idempotency-Key": "one"])
        let policy = with(RedirectPolicy.follow) { $0.secretHeaders = ["idempotency-key"] }
        #expect(try next(308, "https://o.com/", after: first, policy: policy)?.headers == [:])
    }

    @Test func `headers that look like credentials are not sent to another origin, and harmless ones are`() throws {
        let secrets: HeaderFields = [
            "Authentication": "anything", "Authn": "anything", "X-Client-Cert": "MIIB", "X-SSL-Client-Cert": "MIIB",
            "X-Access": "1", "X-Identity": "1", "X-Login": "Bearer abc", "X-Who": "basic YTpi", "X-Info": "token=abc",
            "X-More": "a=1; password\t=\tabc", "X-Id": "eyJhbGciOiJub25lIn0.e30.abc", "X-JSON": #"{"secret":"abc"}"#,
            "X-Page": #"{"page":"https://a/b?token=abc"}"#, "X-Raw": #"["X-Api-Key","abc"]"#, "X-Pair": "a=Bearer abc",
        ]
        let harmless: HeaderFields = [
            "Accept": "application/json;q=0.9, */*;q=0.8", "Accept-Language": "de",
            "User-Agent": "App/1.0 (Linux; 6.1)",
            "X-Plan": "Basic plan", "X-State": "token expired", "X-Next": "https://auth.example:8443/a?x=1",
            "Range": "bytes=0-99", "X-Time": "12:30", "If-None-Match": #""abc==""#, "X-Bare": "a\u{301}=b",
            "X-Client": ##"{"page":"https://a/b?c=d","note":"#5","all":["{\"at\":\"https://a/b?c\"}"]}"##,
        ]
        let hop = try hop(headers: HeaderFields(Array(secrets) + Array(harmless)))
        let stranger = try #require(try next(302, "https://evil.com/", after: hop))
        #expect(stranger.headers == harmless)
        #expect(try next(302, "/b", after: hop)?.headers.count == secrets.count + harmless.count)
    }

    @Test(arguments: [200, 204, 300, 304, 305, 306, 309, 399, 400, 401, 500])
    func `a response with another status is not a redirect`(status: Int) throws {
        #expect(try next(status, "/b", after: hop()) == nil)
    }

    @Test(arguments: [
        (301, "GET", "GET", true), (301, "HEAD", "HEAD", true), (301, "POST", "GET", false), (301, "PUT", "PUT", true),
        (302, "POST", "GET", false), (302, "PATCH", "PATCH", true), (302, "DELETE", "DELETE", true),
        (303, "POST", "GET", false), (303, "PUT", "GET", false), (303, "DELETE", "GET", false),
        (303, "HEAD", "HEAD", true),
        (303, "GET", "GET", true), (307, "POST", "POST", true), (307, "GET", "GET", true), (308, "POST", "POST", true),
        (308, "PUT", "PUT", true),
    ])
    func `a redirect changes the method as RFC 9110 describes and drops the body with it`(
        status: Int, method: String, expected: String, keepsBody: Bool
    ) throws {
        let hasBody = !["GET", "HEAD"].contains(method)
        let headers: HeaderFields = [
            "Content-Type": "text/plain", "Content-Encoding": "gzip", "content-language": "de", "Accept": "a",
        ]
        let first = try hop(method, headers: headers, body: hasBody ? .data(Data("x".utf8)) : .none)
        let next = try #require(try next(status, "/b", after: first))
        #expect(next.method == expected)
        #expect(next.body.isNone == !(hasBody && keepsBody))
        #expect(next.headers.map(\.name) == (keepsBody ? headers.map(\.name) : ["Accept"]))
    }

    @Test(arguments: [
        ("https://h.com/b", true), ("https://h.com:443/b", true), ("https://H.COM/b", true), ("//h.com/b", true),
        ("b", true),
        ("https://x.h.com/b", false), ("https://h.com:444/b", false), ("https://other.com/b", false),
        ("http://h.com/b", false),
    ])
    func `secret headers are sent only to their origin`(location: String, staysHome: Bool) throws {
        var policy = RedirectPolicy.follow
        policy.allowsDowngrade = true
        policy.secretHeaders = ["x-api-key"]
        let next = try #require(try next(302, location, after: hop(headers: Self.secrets), policy: policy))
        #expect(next.headers.map(\.name) == (staysHome ? Self.secrets.map(\.name) : ["Accept"]))
    }

    @Test func `a user and password in Location are not used as credentials`() throws {
        let next = try #require(try next(302, "https://user:pass@h.com/b", after: hop()))
        #expect(next.address.text == "https://h.com/b")
        #expect(!next.headers.contains("Authorization"))
        #expect(next.address.hadUserInformation)
    }

    @Test(arguments: [
        ("ftp://h.com/", RedirectFailure.badAddress(.scheme("ftp"))),
        ("file:///etc/passwd", .badAddress(.scheme("file"))),
        ("//a%20b/", .badAddress(.host)), ("https://h.com:0/", .badAddress(.port)), ("http://h.com/", .downgrade),
    ])
    func `a redirect to a forbidden or invalid URL fails the exchange`(
        location: String, failure: RedirectFailure
    ) throws {
        var machine = RedirectMachine(policy: .follow)
        guard case .fail(let found) = try machine.receive(head(302, location), to: hop(), cookies: nil)
        else { return unmet("The redirect was not refused.") }
        #expect(found == failure)
        #expect(!found.message.isEmpty)
    }

    @Test
    func `different Locations fail, equal Locations are followed, and no Location delivers the response`() throws {
        var machine = RedirectMachine(policy: .follow)
        guard case .fail(.ambiguous) = try machine.receive(head(302, "/b", "/c"), to: hop(), cookies: nil)
        else { return unmet("The redirect was followed.") }
        guard case .follow = try machine.receive(head(302, "/b", "/b"), to: hop(), cookies: nil)
        else { return unmet("The redirect was not followed.") }
        guard case .deliver = try machine.receive(head(302), to: hop(), cookies: nil)
        else { return unmet("The response was not delivered.") }
    }

    @Test func `an empty Location is a loop after GET but not after POST`() throws {
        var machine = RedirectMachine(policy: .follow)
        guard case .follow(let same) = try machine.receive(head(302, ""), to: hop(), cookies: nil)
        else { return unmet("The redirect was not followed.") }
        #expect(machine.follow(same, cookies: nil) == .loop)
        guard
            case .follow(let get) = try machine.receive(head(303, ""), to: hop("POST", "https://h.com/p"), cookies: nil)
        else { return unmet("The redirect was not followed.") }
        #expect(machine.follow(get, cookies: nil) == nil)
    }

    @Test(arguments: [("id=1", nil), (nil, .token("t"))] as [(String?, Credential?)])
    func `a redirect to itself is a loop only if the cookies and the credential did not change`(
        cookies: String?, credential: Credential?
    ) throws {
        var machine = RedirectMachine(policy: .follow)
        let first = try hop()
        _ = try machine.receive(head(302, "/a"), to: first, cookies: nil)
        #expect(machine.follow(first, cookies: cookies, credential: credential) == nil)
        _ = try machine.receive(head(302, "/a"), to: first, cookies: cookies, credential: credential)
        #expect(machine.follow(first, cookies: cookies, credential: credential) == .loop)
    }

    @Test func `a redirect to itself that sets a cookie is no loop if the transport may keep the cookie`() throws {
        let first = try hop()
        let url = try #require(URL(string: "https://h.com/a"))
        let response = ResponseHead(url: url, status: 302, headers: ["Location": "/a", "Set-Cookie": "id=1"])
        let cases: [(isHidden: Bool, cookies: String?, failure: RedirectFailure?)] = [
            (true, nil, nil), (false, nil, .loop), (true, "own=1", .loop),
        ]
        for (isHidden, cookies, failure) in cases {
            var machine = RedirectMachine(policy: .follow)
            _ = machine.receive(response, to: first, cookies: cookies, hasHiddenCookies: isHidden)
            #expect(machine.follow(first, cookies: cookies) == failure)
        }
    }

    @Test(arguments: [0, 1, 3, 10])
    func `at most maximumCount redirects are followed`(limit: Int) throws {
        let policy = with(RedirectPolicy.follow) { $0.maximumCount = limit }
        var machine = RedirectMachine(policy: policy)
        var current = try hop()
        for count in 0..<limit {
            guard case .follow(let next) = try machine.receive(head(302, "/\(count)"), to: current, cookies: nil)
            else { return unmet("Redirect \(count) was not followed.") }
            #expect(machine.follow(next, cookies: nil) == nil)
            current = next
        }
        guard case .fail(.tooMany(limit)) = try machine.receive(head(302, "/last"), to: current, cookies: nil)
        else { return unmet("The redirect beyond the limit was followed.") }
    }

    @Test func `the stop policy delivers every redirect, and a deciding policy receives the proposed request`() throws {
        var stopping = RedirectMachine(policy: .stop)
        guard case .deliver = try stopping.receive(head(302, "ftp://x/"), to: hop(), cookies: nil)
        else { return unmet("The response was not delivered.") }
        var asking = RedirectMachine(policy: .deciding { _ in .stop })
        let first = try hop("POST", headers: Self.secrets, body: .data(Data("x".utf8)))
        guard
            case .ask(let proposal, let next) = try asking.receive(
                head(307, "https://o.com/#f"), to: first, cookies: nil)
        else { return unmet("The policy was not asked.") }
        #expect(proposal.count == 1 && proposal.method == "POST" && proposal.keepsBody && proposal.changesOrigin)
        #expect(proposal.url.absoluteString == "https://o.com/#f")
        #expect(proposal.headers == next.headers)
    }

    @Test func `random redirect chains end, stay encrypted and never send secrets to another origin`()
        throws
    {
        let places = [
            "https://a.com/", "https://b.com/x", "http://a.com/", "https://a.com:8443/", "/y", "?z", "//b.com/",
            "https://u:p@a.com/",
        ]
        for seed in UInt64(0)..<2_000 {
            var generator = SeededGenerator(seed: seed)
            var machine = RedirectMachine(policy: .follow)
            var current = try hop("POST", "https://a.com/", headers: Self.secrets, body: .data(Data("x".utf8)))
            var hasLeft = false
            var steps = 0
            while true {
                steps += 1
                guard let status = [301, 302, 303, 307, 308].randomElement(using: &generator),
                    let place = places.randomElement(using: &generator),
                    case .follow(let next) = try machine.receive(head(status, place), to: current, cookies: nil),
                    machine.follow(next, cookies: nil) == nil
                else { break }
                hasLeft = hasLeft || next.address.origin != current.address.origin
                #expect(next.headers.contains("Authorization") == !hasLeft, "seed \(seed)")
                #expect(next.address.origin.isSecure, "seed \(seed)")
                #expect(next.method == "POST" || next.body.isNone, "seed \(seed)")
                current = next
            }
            #expect(steps <= 11, "seed \(seed)")
        }
    }
}
