// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
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
}
