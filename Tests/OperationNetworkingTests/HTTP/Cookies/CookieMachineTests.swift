// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CookieMachineTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func machine(_ fields: [String], from url: String, limits: CookieLimits = CookieLimits()) throws
        -> CookieMachine
    {
        var machine = CookieMachine(limits: limits)
        _ = try machine.receive(fields, from: WebAddress(url), now: now)
        return machine
    }

    /// A Set-Cookie header, the URL that sets it, the URL of the next request, and whether the cookie is sent.
    @Test(arguments: [
        ("a=b", "http://h.com/", "http://h.com/", true), ("a=b", "http://h.com/", "http://x.h.com/", false),
        ("a=b", "http://h.com/", "https://h.com:8443/", true),
        ("a=b; Domain=h.com", "http://x.h.com/", "http://h.com/", true),
        ("a=b; Domain=h.com", "http://x.h.com/", "http://y.x.h.com/", true),
        ("a=b; Domain=.h.com", "http://h.com/", "http://y.h.com/", true),
        ("a=b; Domain=h.com", "http://x.h.com/", "http://xh.com/", false),
        ("a=b; Domain=", "http://h.com/", "http://x.h.com/", false),
        ("a=b; Domain=y.h.com", "http://x.h.com/", "http://y.h.com/", false),
        ("a=b; Domain=x.h.com", "http://h.com/", "http://x.h.com/", false),
        ("a=b; Domain=com", "http://h.com/", "http://h.com/", false),
        ("a=b; Domain=co.uk", "http://h.co.uk/", "http://h.co.uk/", false),
        ("a=b; Domain=github.io", "http://me.github.io/", "http://you.github.io/", false),
        ("a=b; Domain=github.io", "http://github.io/", "http://github.io/", true),
        ("a=b; Domain=github.io", "http://github.io/", "http://you.github.io/", false),
        ("a=b; Domain=com.", "http://evil.com./", "http://h.com./", false),
        ("a=b; Domain=evil.com.", "http://evil.com./", "http://evil.com./", false),
        ("a=b", "http://evil.com./", "http://evil.com./", true),
        ("a=b; Domain=localhost", "http://localhost/", "http://localhost/", true),
        ("a=b; Domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", true),
        ("a=b; Domain=0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", false),
        ("a=b; Domain=[::1]", "http://[::1]/", "http://[::1]:80/", true),
        ("a=b; Domain=é.com", "http://h.com/", "http://h.com/", false),
        ("a=b; Path=/x", "http://h.com/y", "http://h.com/x", true),
        ("a=b; Path=/x", "http://h.com/", "http://h.com/x/y", true),
        ("a=b; Path=/x", "http://h.com/", "http://h.com/xy", false),
        ("a=b; Path=/x/", "http://h.com/", "http://h.com/x", false),
        ("a=b", "http://h.com/x/y/z", "http://h.com/x/y", true),
        ("a=b", "http://h.com/x/y/z", "http://h.com/x/yy", false),
        ("a=b", "http://h.com/x", "http://h.com/", true), ("a=b", "http://h.com/x/", "http://h.com/", false),
        ("a=b; Secure", "https://h.com/", "https://h.com/", true),
        ("a=b; Secure", "https://h.com/", "http://h.com/", false),
        ("a=b; Secure", "http://h.com/", "https://h.com/", false),
        ("a=b; SameSite=None", "https://h.com/", "https://h.com/", false),
        ("a=b; SameSite=None; Secure", "https://h.com/", "https://h.com/", true),
        ("a=b; SameSite=Strict", "http://h.com/", "http://h.com/", true),
        ("__Secure-a=b", "https://h.com/", "https://h.com/", false),
        ("__Secure-a=b; Secure", "https://h.com/", "https://h.com/", true),
        ("__SECURE-a=b", "https://h.com/", "https://h.com/", false),
        ("__Host-a=b; Secure; Path=/", "https://h.com/x/y", "https://h.com/", true),
        ("__Host-a=b; Secure", "https://h.com/", "https://h.com/", false),
        ("__Host-a=b; Path=/", "https://h.com/", "https://h.com/", false),
        ("__Host-a=b; Secure; Path=/; Domain=h.com", "https://h.com/", "https://h.com/", false),
        ("__host-a=b; Secure; Path=/x", "https://h.com/", "https://h.com/x", false),
        ("=__Host-a=b; Secure; Path=/", "https://h.com/", "https://h.com/", false),
        ("a=b; Max-Age=0", "http://h.com/", "http://h.com/", false),
        ("a=b; Max-Age=1", "http://h.com/", "http://h.com/", true),
    ])
    func `a cookie is stored and sent as RFC 6265bis requires`(
        field: String, from: String, to: String, goes: Bool
    ) throws {
        var machine = try machine([field], from: from)
        let header = try machine.header(for: WebAddress(to), now: now)
        #expect((header != nil) == goes)
    }

    @Test func `cookies with longer paths are sent first, then cookies that were set earlier`() throws {
        var machine = try machine(
            ["a=1; Path=/", "b=2; Path=/x/y", "c=3; Path=/x", "d=4; Path=/x/y", "e; Path=/"], from: "http://h.com/")
        _ = try machine.receive(["a=9; Path=/"], from: WebAddress("http://h.com/"), now: now + 5)
        let header = try machine.header(for: WebAddress("http://h.com/x/y"), now: now + 9)
        #expect(header == "b=2; d=4; c=3; a=9; e")
    }

    @Test func `an expiration date that is not finite is replaced by one that can be stored`() throws {
        var machine = CookieMachine(limits: CookieLimits())
        for (name, end) in [("a", Double.infinity), ("b", .nan), ("c", -.infinity)] {
            let cookie = Cookie(name: name, value: "", domain: "h.com", expires: Date(timeIntervalSince1970: end))
            _ = machine.put(cookie, now: now)
        }
        #expect(machine.cookies.map(\.expires) == [.distantFuture])
    }

    @Test func `a cookie replaces one with the same name, domain and path, or removes it if expired`()
        throws
    {
        var machine = try machine(["a=1", "a=2; Domain=h.com", "a=3; Path=/x", "a=4"], from: "http://h.com/")
        let home = try WebAddress("http://h.com/")
        #expect(machine.count == 3)
        let before = machine.header(for: home, now: now)
        #expect(before == "a=4; a=2")
        let hasRemoved = machine.receive(["a=; Max-Age=0"], from: home, now: now)
        let after = machine.header(for: home, now: now)
        let hasChanged = machine.receive(["zzz=; Max-Age=0"], from: home, now: now)
        #expect(hasRemoved && after == "a=2" && !hasChanged)
    }

    @Test(arguments: [
        ("a=evil", "http://h.com/", true), ("a=evil; Domain=h.com", "http://x.h.com/", true),
        ("a=evil; Path=/x", "http://h.com/", true),
        ("b=fine", "http://h.com/", false), ("a=evil", "http://other.com/", false), ("a=evil", "http://x.h.com/", true),
    ])
    func `an unencrypted connection cannot replace a secure cookie`(
        field: String, from: String, isRefused: Bool
    ) throws {
        var machine = try machine(["a=good; Secure; Domain=h.com; Path=/"], from: "https://h.com/")
        let isTaken = try machine.receive([field], from: WebAddress(from), now: now)
        #expect(isTaken == !isRefused)
    }

    @Test func `a secure cookie on a longer path does not block a cookie on a shorter path`() throws {
        var machine = try machine(["a=good; Secure; Path=/login"], from: "https://h.com/")
        let short = try machine.receive(["a=1; Path=/"], from: WebAddress("http://h.com/"), now: now)
        let long = try machine.receive(["a=1; Path=/login/x"], from: WebAddress("http://h.com/"), now: now)
        #expect(short && !long)
    }

    @Test func `an expired cookie is not sent`() throws {
        var machine = try machine(["a=1; Max-Age=10", "b=2"], from: "http://h.com/")
        let address = try WebAddress("http://h.com/")
        let before = machine.header(for: address, now: now + 9)
        let after = machine.header(for: address, now: now + 10)
        #expect(before == "a=1; b=2" && after == "b=2")
    }

    @Test func `one response sets at most 50 cookies`() throws {
        let machine = try machine((0..<80).map { "c\($0)=1" }, from: "http://h.com/")
        #expect(machine.count == 50)
        #expect(machine.cookies.last?.name == "c49")
    }

    @Test func `a full domain first evicts insecure cookies, then the least recently used ones`() throws {
        let limits = with(CookieLimits()) { $0.perDomain = 3 }
        var machine = CookieMachine(limits: limits)
        let home = try WebAddress("https://h.com/")
        for (index, field) in ["s=1; Secure", "a=1; Path=/a", "b=1; Path=/b"].enumerated() {
            _ = machine.receive([field], from: home, now: now + Double(index))
        }
        _ = try machine.header(for: WebAddress("https://h.com/a"), now: now + 50)
        _ = machine.receive(["c=1"], from: home, now: now + 60)
        #expect(machine.cookies.map(\.name) == ["s", "a", "c"])
        _ = machine.receive(["t=1; Secure"], from: home, now: now + 70)
        _ = machine.receive(["u=1; Secure"], from: home, now: now + 71)
        _ = machine.receive(["v=1; Secure"], from: home, now: now + 72)
        #expect(machine.cookies.map(\.name) == ["t", "u", "v"])
    }

    @Test func `a full jar first evicts expired cookies, then the oldest ones`() throws {
        let limits = with(CookieLimits()) { $0.total = 5 }
        var machine = CookieMachine(limits: limits)
        for index in 0..<5 {
            let age = index == 3 ? "; Max-Age=1" : ""
            _ = try machine.receive(["a=1\(age)"], from: WebAddress("http://h\(index).com/"), now: now + Double(index))
        }
        _ = try machine.receive(["a=1"], from: WebAddress("http://h5.com/"), now: now + 10)
        #expect(machine.cookies.map(\.domain) == ["h0.com", "h1.com", "h2.com", "h4.com", "h5.com"])
        _ = try machine.receive(["a=1"], from: WebAddress("http://h6.com/"), now: now + 11)
        #expect(machine.cookies.map(\.domain) == ["h1.com", "h2.com", "h4.com", "h5.com", "h6.com"])
    }

    @Test func `a cookie set in code cannot inject headers into a request`() {
        var machine = CookieMachine()
        machine.put(Cookie(name: "a", value: "b\r\nX: y", domain: "h.com"), now: now)
        machine.put(Cookie(name: "a", value: "b; c=d", domain: "h.com"), now: now)
        #expect(machine.count == 0)
    }

    @Test func `random calls preserve the count, the limits and the domain of each cookie`() throws {
        let hosts = ["a.com", "b.a.com", "c.b.a.com", "d.com", "127.0.0.1", "x.co.uk"]
        let attributes = [
            "", "; Secure", "; Domain=a.com", "; Domain=b.a.com", "; Domain=co.uk", "; Path=/p", "; Max-Age=0",
            "; Max-Age=5",
        ]
        var limits = CookieLimits()
        limits.perDomain = 4
        limits.total = 9
        for seed in UInt64(0)..<200 {
            var generator = SeededGenerator(seed: seed)
            var machine = CookieMachine(limits: limits)
            for step in 0..<60 {
                let moment = now + Double(step)
                guard let host = hosts.randomElement(using: &generator),
                    let attribute = attributes.randomElement(using: &generator)
                else { continue }
                let scheme = generator.chance(1, in: 2) ? "https" : "http"
                let address = try WebAddress("\(scheme)://\(host)/p/q")
                _ = machine.receive(
                    ["n\(Int.random(in: 0..<4, using: &generator))=\(host)\(attribute)"], from: address, now: moment)
                let cookies = machine.cookies
                #expect(machine.count == cookies.count && cookies.count <= 9, "seed \(seed)")
                #expect(Dictionary(grouping: cookies, by: \.domain).values.allSatisfy { $0.count <= 4 }, "seed \(seed)")
                // The value names the host that set it. A cookie is sent only to hosts in the same domain.
                let sent = machine.header(for: address, now: moment) ?? ""
                for value in sent.split(separator: "; ").compactMap({ $0.split(separator: "=").last }) {
                    #expect(value.suffix(5) == host.suffix(5), "seed \(seed): \(sent) to \(host)")
                }
            }
        }
    }

    @Test func `an expired secure cookie does not block an insecure one`() throws {
        var machine = try machine(["a=1; Secure; Max-Age=10"], from: "https://h.com/")
        _ = try machine.receive(["a=2"], from: WebAddress("http://h.com/"), now: now + 9)
        #expect(machine.cookies.map(\.value) == ["1"])
        _ = try machine.receive(["a=3"], from: WebAddress("http://h.com/"), now: now + 10)
        #expect(machine.cookies.map(\.value) == ["3"])
    }
}

extension CookieMachine {
    fileprivate mutating func receive(_ fields: [String], from address: WebAddress, now: Date) -> Bool {
        let offers = Self.offers(fields, limits: limits, suffixes: Self.isCommonSuffix, now: now)
        return receive(offers, from: address, now: now)
    }
}
