// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheRulesTests {
    private static let fresh: HeaderFields = ["Cache-Control": "max-age=60"]

    @Test(
        arguments: [
            ("GET", 200, fresh, [:], true), ("HEAD", 200, fresh, [:], false), ("POST", 200, fresh, [:], false),
            ("GET", 206, fresh, [:], false), ("GET", 304, fresh, [:], false), ("GET", 404, fresh, [:], true),
            ("GET", 503, fresh, [:], true),
            ("GET", 302, fresh, [:], true), ("GET", 302, ["ETag": "\"a\""], [:], false),
            ("GET", 301, ["ETag": "\"a\""], [:], true),
            ("GET", 200, ["ETag": "\"a\""], [:], true),
            ("GET", 200, ["Last-Modified": "Tue, 14 Nov 2023 00:00:00 GMT"], [:], true),
            ("GET", 200, [:], [:], false), ("GET", 200, ["Cache-Control": "max-age=0"], [:], false),
            ("GET", 200, ["Cache-Control": "max-age=0", "ETag": "\"a\""], [:], true),
            ("GET", 200, ["Cache-Control": "max-age=0, stale-if-error=9"], [:], true),
            ("GET", 200, ["Cache-Control": "max-age=0, stale-while-revalidate=9"], [:], true),
            ("GET", 200, ["Cache-Control": "max-age=0, stale-if-error=0"], [:], false),
            ("GET", 200, ["Cache-Control": "max-age=0, stale-if-error=9, no-cache"], [:], false),
            ("GET", 200, ["Cache-Control": "max-age=0, stale-if-error=9, must-revalidate"], [:], false),
            ("GET", 200, ["Cache-Control": "no-store, max-age=60"], [:], false),
            ("GET", 200, ["Cache-Control": "no-cache, max-age=60"], [:], false),
            ("GET", 200, ["Cache-Control": "no-cache", "ETag": "\"a\""], [:], true),
            ("GET", 200, ["Cache-Control": "private, max-age=60"], [:], true),
            ("GET", 200, ["Cache-Control": "max-age=60", "Vary": "*"], [:], false),
            ("GET", 200, ["Cache-Control": "max-age=60", "Vary": "Accept"], [:], true),
            ("GET", 200, fresh, ["Range": "bytes=0-1"], false),
            ("GET", 200, fresh, ["Cache-Control": "no-store"], false),
            ("GET", 200, fresh, ["Authorization": "Basic x"], true),
            ("GET", 200, fresh, ["Authorization": "Digest username=x, nc=00000001"], false),
            ("GET", 200, ["Cache-Control": "must-understand, no-store, max-age=60"], [:], true),
            ("GET", 299, ["Cache-Control": "must-understand, no-store, max-age=60"], [:], false),
            ("GET", 200, ["Expires": "0"], [:], false),
            ("GET", 600, fresh, [:], false),
        ] as [(String, Int, HeaderFields, HeaderFields, Bool)])
    func `a response is stored if RFC 9111 permits it and it can be reused`(
        method: String, status: Int, headers: HeaderFields, request: HeaderFields, isKept: Bool
    ) throws {
        let response = try CacheSamples.response(status, headers, to: request)
        #expect(CacheRules.mayStore(response, method: method, request: request) == isKept)
    }

    @Test func `connection headers and cookies are not stored`() throws {
        let response = try CacheSamples.response(
            200,
            [
                "Connection": "close, X-Hop", "X-Hop": "1", "Keep-Alive": "x", "Transfer-Encoding": "chunked",
                "Set-Cookie": "a=b",
                "Proxy-Authenticate": "Basic", "ETag": "\"a\"", "X-Stays": "1", "X-Stays": "2",
            ])
        #expect(response.headers == ["ETag": "\"a\"", "X-Stays": "1", "X-Stays": "2"])
    }

    @Test(arguments: [
        ("POST", 200, ["https://h.com/a", "https://h.com/b", "https://h.com/c"]),
        ("PUT", 201, ["https://h.com/a", "https://h.com/b", "https://h.com/c"]),
        ("DELETE", 302, ["https://h.com/a", "https://h.com/b", "https://h.com/c"]),
        ("ODD", 204, ["https://h.com/a", "https://h.com/b", "https://h.com/c"]),
        ("POST", 400, []), ("POST", 500, []), ("GET", 200, []), ("HEAD", 200, []), ("OPTIONS", 200, []),
        ("TRACE", 200, []),
    ])
    func `a successful unsafe request invalidates its URL and the same-origin URLs it names`(
        method: String, status: Int, forgotten: [String]
    ) throws {
        let headers: HeaderFields = [
            "Location": "/b", "Content-Location": "https://h.com/c", "Location": "https://evil.com/x",
            "Location": "ftp://h.com/",
        ]
        let found = try CacheRules.invalidated(
            by: CacheSamples.head(status, headers), method: method, at: WebAddress("https://h.com/a"))
        #expect(Set(found.map(\.resource)) == Set(forgotten))
    }

    @Test(
        arguments: [
            ("max-age=10", 10), ("MAX-AGE=10", 10), ("max-age=\"10\"", 10), (" max-age = 10 ", 10),
            ("public, max-age=10", 10),
            ("max-age=10, max-age=5", 5), ("max-age=5, max-age=10", 5), ("max-age=-1", 0), ("max-age=1.5", 0),
            ("max-age=", 0),
            ("max-age", 0), ("max-age=x, max-age=7", 0), ("max-age=99999999999999999999", 2_147_483_647),
            ("max-age=007", 7),
            ("private=\"a, max-age=1\", max-age=10", 10), ("s-maxage=10", nil), ("", nil), ("x\"max-age=1", nil),
            (",,max-age=3,,", 3),
        ] as [(String, Int?)])
    func `an ambiguous max-age is read as the stricter value`(field: String, seconds: Int?) {
        #expect(CacheControl([field]).seconds("max-age") == seconds)
    }

    @Test func `directives of several headers are combined, and Cache-Control overrides Pragma`() {
        let control = CacheControl(["no-cache=\"Set-Cookie\"", "No-Store", "max-stale"])
        #expect(control.has("no-cache") && control.has("no-store") && !control.has("private"))
        #expect(control.maximumStaleness == 2_147_483_647)
        #expect(CacheControl(["max-stale=5"]).maximumStaleness == 5)
        #expect(CacheControl(["max-age=5"]).maximumStaleness == nil)
        #expect(CacheControl(HeaderFields([.init("Pragma", "No-Cache")])).has("no-cache"))
        #expect(!CacheControl(["Pragma": "no-cache", "Cache-Control": "max-age=1"] as HeaderFields).has("no-cache"))
    }

    @Test func `arbitrary text never crashes the parser`() {
        let pieces = ["max-age", "=", ",", "\"", "\\", "1", " ", "no-store", "é", "-"]
        for text in SeededGenerator.texts(20_000, of: pieces, most: 10, seed: 9111) {
            #expect(CacheControl([text]).seconds("max-age") ?? 0 >= 0)
        }
    }

    private func freshness(_ headers: HeaderFields, status: Int = 200, delay: Double = 0, after: Double = 0) throws
        -> CacheFreshness
    {
        CacheFreshness(try CacheSamples.response(status, headers, delay: delay), now: CacheSamples.now + after)
    }

    @Test func `the lifetime is max-age, else Expires minus Date, else a tenth of the time since Last-Modified`()
        throws
    {
        let date = CacheSamples.date
        #expect(try freshness(["Cache-Control": "max-age=60", "Expires": date(900)]).lifetime == 60)
        #expect(try freshness(["Date": date(-10), "Expires": date(50)]).lifetime == 60)
        #expect(try freshness(["Expires": date(50)]).lifetime == 50)
        #expect(try freshness(["Expires": "0", "Last-Modified": date(-1000)]).lifetime == 0)
        #expect(try freshness(["Expires": date(-50)]).lifetime == 0)
        #expect(try freshness(["Last-Modified": date(-1000)]).lifetime == 100)
        #expect(try freshness(["Last-Modified": date(-1e9)]).lifetime == 7 * 86_400)
        #expect(try freshness(["Last-Modified": date(1000)]).lifetime == 0)
        #expect(try freshness(["Last-Modified": date(-1000)], status: 500).lifetime == 0)
        #expect(try freshness(["Last-Modified": date(-1000), "Cache-Control": "public"], status: 500).lifetime == 100)
        #expect(try freshness([:]).lifetime == 0)
        #expect(try freshness(["Cache-Control": "s-maxage=60"]).lifetime == 0)
    }

    @Test func `the age includes Date or Age, the transfer time and the time in the cache`() throws {
        let date = CacheSamples.date
        #expect(try freshness(["Date": date(0)]).age == 0)
        #expect(try freshness(["Date": date(-30)]).age == 30)
        #expect(try freshness(["Date": date(30)]).age == 0)
        #expect(try freshness(["Date": date(0), "Age": "20"], delay: 5).age == 25)
        #expect(try freshness(["Date": date(-30), "Age": "20"], delay: 5).age == 30)
        #expect(try freshness(["Date": date(-30), "Age": "x"], after: 7).age == 37)
        #expect(try freshness(["Age": "-5"], after: 7).age == 7 && freshness(["Age": ""], after: 7).age == 7)
        #expect(try freshness(["Age": "50, 60"]).age == 50)
        #expect(try freshness(["Age": "99999999999999999999"]).age == 2_147_483_647)
        #expect(try freshness([:], after: 1e18).age == 2_147_483_647)
    }

    @Test func `a response is fresh until its lifetime ends, and stale if the clock was set back`() throws {
        let headers: HeaderFields = ["Cache-Control": "max-age=60", "Date": CacheSamples.date(0)]
        #expect(try freshness(headers, after: 59).isFresh)
        #expect(try !freshness(headers, after: 60).isFresh)
        #expect(try freshness(headers, after: 75).staleness == 15)
        #expect(try freshness(headers, after: -30).isFresh)
        #expect(try !freshness(headers, after: -3600).isFresh)
    }
}
