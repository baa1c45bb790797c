// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheDecisionTests {
    private static let tagged: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
    private static let untagged: HeaderFields = ["Cache-Control": "max-age=60"]

    private static func with(_ control: String) -> HeaderFields { ["Cache-Control": control, "ETag": "\"a\""] }

    private func decide(
        _ headers: HeaderFields, _ request: HeaderFields = [:], after: Double, method: String = "GET"
    ) throws -> CacheDecision {
        decide(request, from: [try CacheSamples.response(200, headers)], after: after, method: method)
    }

    private func decide(
        _ request: HeaderFields, from responses: [CachedResponse], after: Double = 0, method: String = "GET"
    ) -> CacheDecision {
        CacheDecision.decide(method: method, request: request, responses: responses, now: CacheSamples.now + after)
    }

    /// The response headers, the request headers, the seconds since the response, and the expected decision.
    @Test(
        arguments: [
            (tagged, [:], 0, .serve(0, age: 0)), (tagged, [:], 59, .serve(0, age: 59)),
            (tagged, [:], 60, .revalidate(0)),
            (untagged, [:], 60, .revalidate(0)), (with("max-age=60, no-cache"), [:], 1, .revalidate(0)),
            (["Cache-Control": "max-age=60, stale-if-error=9"], [:], 69, .revalidate(0)),
            (["Cache-Control": "max-age=60, stale-if-error=9"], [:], 70, .revalidate(0)),
            (["Cache-Control": "max-age=60, stale-if-error=9"], ["Cache-Control": "no-cache"], 61, .revalidate(0)),
            (["Cache-Control": "max-age=60, stale-if-error=9, must-revalidate"], [:], 61, .revalidate(0)),
            (untagged, ["Cache-Control": "stale-if-error=9"], 61, .revalidate(0)),
            (tagged, ["Cache-Control": "no-cache"], 1, .revalidate(0)),
            (tagged, ["Pragma": "no-cache"], 1, .revalidate(0)),
            (untagged, ["Cache-Control": "no-cache"], 1, .revalidate(0)),
            (tagged, ["Cache-Control": "no-store"], 1, .forward),
            (tagged, ["Cache-Control": "max-age=0"], 0, .revalidate(0)),
            (tagged, ["Cache-Control": "max-age=10"], 10, .serve(0, age: 10)),
            (tagged, ["Cache-Control": "max-age=10"], 11, .revalidate(0)),
            (tagged, ["Cache-Control": "min-fresh=10"], 50, .serve(0, age: 50)),
            (tagged, ["Cache-Control": "min-fresh=10"], 51, .revalidate(0)),
            (tagged, ["Cache-Control": "max-stale"], 9999, .serve(0, age: 9999)),
            (tagged, ["Cache-Control": "max-stale=5"], 65, .serve(0, age: 65)),
            (tagged, ["Cache-Control": "max-stale=5"], 66, .revalidate(0)),
            (tagged, ["Cache-Control": "max-stale=99, max-age=62"], 63, .revalidate(0)),
            // Of two directives with the same name, the stricter one counts.
            (tagged, ["Cache-Control": "min-fresh=10, min-fresh=5"], 51, .revalidate(0)),
            (tagged, ["Cache-Control": "max-stale=5, max-stale"], 66, .revalidate(0)),
            (tagged, ["Cache-Control": "max-stale, max-stale=5"], 66, .revalidate(0)),
            (with("max-age=60, must-revalidate"), ["Cache-Control": "max-stale"], 61, .revalidate(0)),
            (with("max-age=60, no-cache"), ["Cache-Control": "max-stale"], 1, .revalidate(0)),
            (tagged, ["Cache-Control": "only-if-cached"], 59, .serve(0, age: 59)),
            (tagged, ["Cache-Control": "only-if-cached"], 60, .unavailable),
            (tagged, ["Cache-Control": "only-if-cached, max-stale"], 60, .serve(0, age: 60)),
            (
                with("max-age=60, stale-while-revalidate=30"), ["Cache-Control": "only-if-cached"], 61,
                .unavailable
            ),
            (with("max-age=60, no-store"), [:], 1, .forward),
            (with("max-age=60, no-store"), ["Cache-Control": "max-stale"], 99, .forward),
            (with("max-age=60, no-store, must-understand"), [:], 1, .serve(0, age: 1)),
            (with("max-age=60, immutable"), ["Cache-Control": "max-age=0"], 10, .serve(0, age: 10)),
            (with("max-age=60, immutable"), ["Cache-Control": "no-cache"], 10, .revalidate(0)),
            (with("max-age=60, immutable"), [:], 60, .revalidate(0)),
            (with("max-age=60, stale-while-revalidate=30"), [:], 60, .serveAndRevalidate(0, age: 60)),
            (with("max-age=60, stale-while-revalidate=30"), [:], 90, .serveAndRevalidate(0, age: 90)),
            (with("max-age=60, stale-while-revalidate=30"), [:], 91, .revalidate(0)),
            (with("max-age=60, stale-while-revalidate=30, must-revalidate"), [:], 61, .revalidate(0)),
            (with("max-age=60, stale-while-revalidate=30"), ["Cache-Control": "max-age=99"], 61, .revalidate(0)),
            (tagged, ["If-None-Match": "\"x\""], 1, .forward), (tagged, ["If-Modified-Since": "x"], 1, .forward),
            (tagged, ["Range": "bytes=0-"], 1, .forward),
            (tagged, ["If-Range": "x"], 1, .forward),
            (tagged, ["Cache-Control": "only-if-cached", "Range": "bytes=0-"], 1, .unavailable),
        ] as [(HeaderFields, HeaderFields, Double, CacheDecision)])
    func `a cached response is served, revalidated or bypassed as RFC 9111 requires`(
        headers: HeaderFields, request: HeaderFields, after: Double, expected: CacheDecision
    ) throws {
        #expect(try decide(headers, request, after: after) == expected)
    }

    @Test func `a fresh GET response serves HEAD, and other methods go to the server`() throws {
        #expect(try decide(Self.tagged, after: 1, method: "HEAD") == .serve(0, age: 1))
        #expect(try decide(Self.tagged, after: 61, method: "HEAD") == .forward)
        #expect(try decide(Self.with("max-age=1, stale-while-revalidate=9"), after: 2, method: "HEAD") == .forward)
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            #expect(try decide(Self.tagged, after: 1, method: method) == .forward)
        }
    }

    @Test func `the newest response that matches the Vary headers is served`() throws {
        let german: HeaderFields = ["Accept-Language": "de"]
        let english: HeaderFields = ["accept-language": "en"]
        let vary: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Language, X-Other"]
        let responses = [
            try CacheSamples.response(200, vary, to: german), try CacheSamples.response(200, vary, to: english),
            try CacheSamples.response(200, vary, to: german, received: 5),
            try CacheSamples.response(200, vary, to: [:]),
        ]
        let cases: [(HeaderFields, CacheDecision)] = [
            (german, .serve(2, age: 0)), (english, .serve(1, age: 5)), ([:], .serve(3, age: 5)),
            (["Accept-Language": "fr"], .forward), (["Accept-Language": "de", "X-Other": ""], .forward),
            (["Accept-Language": " de "], .serve(2, age: 0)),
            (["Accept-Language": "de", "Accept-Language": "en"], .forward),
        ]
        for (request, expected) in cases { #expect(decide(request, from: responses, after: 5) == expected) }
    }

    @Test func `a private response is served only for the cookies of its request`() throws {
        func decision(_ control: String, _ request: HeaderFields) throws -> CacheDecision {
            let response = try CacheSamples.response(200, ["Cache-Control": control], to: ["Cookie": "sid=A"])
            return decide(request, from: [response])
        }
        for control in ["private, max-age=60", "max-age=60, Private", "private=\"x\", max-age=60"] {
            #expect(try decision(control, ["Cookie": "sid=A"]) == .serve(0, age: 0))
            #expect(try decision(control, ["Cookie": "sid=B"]) == .forward)
            #expect(try decision(control, [:]) == .forward)
        }
        #expect(try decision("max-age=60", ["Cookie": "sid=B"]) == .serve(0, age: 0))
    }

    @Test func `a response of one user is never served to another, and no secrets are stored`() throws {
        let anna: HeaderFields = ["Authorization": "Basic anna", "Cookie": "id=secret"]
        let response = try CacheSamples.response(200, ["Cache-Control": "max-age=60", "Vary": "Cookie"], to: anna)
        let others: [HeaderFields] = [
            ["Authorization": "Basic otto", "Cookie": "id=secret"], ["Cookie": "id=secret"],
            ["Authorization": "Basic anna", "Cookie": "id=other"],
        ]
        #expect(decide(anna, from: [response]) == .serve(0, age: 0))
        for other in others { #expect(decide(other, from: [response]) == .forward) }
        let text = String(decoding: try JSONEncoder().encode(response), as: UTF8.self)
        #expect(!text.contains("anna") && !text.contains("secret"))
        #expect(try JSONDecoder().decode(CachedResponse.self, from: Data(text.utf8)) == response)
    }

    @Test(
        arguments: [
            ("max-age=60, stale-if-error=30", "", 90, 90), ("max-age=60, stale-if-error=30", "", 91, nil),
            ("max-age=60", "stale-if-error=30", 90, 90), ("max-age=60, stale-if-error=30", "no-cache", 70, nil),
            ("max-age=60", "", 61, nil), ("max-age=60, stale-if-error=30, must-revalidate", "", 61, nil),
            ("max-age=60, stale-if-error=30", "", 10, 10),
        ] as [(String, String, Double, Int?)])
    func `after an error, a stale response is served within its stale-if-error time`(
        control: String, asked: String, after: Double, age: Int?
    ) throws {
        let response = try CacheSamples.response(200, Self.with(control))
        let found = CacheDecision.staleOnError(
            response, request: ["Cache-Control": asked], now: CacheSamples.now + after)
        #expect(found == age)
    }

    @Test func `a 304 response updates the headers but not the body's own headers`() throws {
        let old = try CacheSamples.response(
            200,
            [
                "Cache-Control": "max-age=1", "ETag": "\"a\"", "Content-Length": "5", "Content-Type": "text/plain",
                "X": "1", "X": "2", "Age": "50", "Y": "y", "Date": "Thu, 01 Jan 2015 00:00:00 GMT",
            ])
        let head = try CacheSamples.head(
            304,
            [
                "Cache-Control": "max-age=100", "x": "3", "Content-Length": "0", "Content-Encoding": "gzip",
                "Connection": "close", "Set-Cookie": "a=b",
            ])
        let new = old.freshened(
            by: head, to: [:], requested: CacheSamples.now + 10, received: CacheSamples.now + 11)
        #expect(
            new.headers["Cache-Control"] == "max-age=100" && new.headers.values("X") == ["3"] && new.headers["Y"] == "y"
        )
        #expect(
            new.headers["Content-Length"] == "5" && new.headers["Content-Type"] == "text/plain"
                && !new.headers.contains("Content-Encoding"))
        #expect(
            !new.headers.contains("Age") && !new.headers.contains("Connection") && !new.headers.contains("Set-Cookie"))
        #expect(CacheFreshness(new, now: CacheSamples.now + 50).isFresh)
        #expect(new.status == 200 && new.selecting == old.selecting)
    }

    @Test func `a revalidation sends all validators, and a 304 for another response is not accepted`()
        throws
    {
        let both = try #require(CacheValidator(["ETag": "W/\"a\"", "Last-Modified": "then"]))
        var request: HeaderFields = [:]
        both.ask(in: &request)
        #expect(request == ["If-None-Match": "W/\"a\"", "If-Modified-Since": "then"])
        #expect(CacheValidator(["ETag": ""]) == nil)
        #expect(both.isMatched(by: try CacheSamples.head(304, ["ETag": "\"a\""])))
        #expect(both.isMatched(by: try CacheSamples.head(304, [:])))
        #expect(!both.isMatched(by: try CacheSamples.head(304, ["ETag": "\"b\""])))
        #expect(!both.isMatched(by: try CacheSamples.head(304, ["Last-Modified": "later"])))
    }

    @Test func `a cached response is served with its Age and the stored body length`() throws {
        let url = try #require(URL(string: "https://h.com/a"))
        let head = try CacheSamples.response(200, ["Age": "5", "Content-Length": "99", "X": "y"]).head(
            url: url, age: 42, bodyLength: 7)
        #expect(head.headers == ["Age": "42", "Content-Length": "7", "X": "y"])
        #expect(head.url == url && head.status == 200)
    }

    @Test func `a 304 response can add a Vary header to the cached response`() throws {
        let german: HeaderFields = ["Accept-Language": "de"]
        let old = try CacheSamples.response(200, Self.tagged, to: german)
        let head = try CacheSamples.head(304, ["Vary": "Accept-Language", "Cache-Control": "max-age=60"])
        let new = old.freshened(by: head, to: german, requested: CacheSamples.now, received: CacheSamples.now)
        #expect(decide(german, from: [new]) == .serve(0, age: 0))
        #expect(decide(["Accept-Language": "fr"], from: [new]) == .forward)
    }

    @Test func `a response stored compressed is not served decompressed, or the other way round`() throws {
        var raw = TransferOptions()
        raw.decodesContent = false
        for (options, other) in [(TransferOptions(), raw), (raw, TransferOptions())] {
            let response = try CacheSamples.response(
                200, ["Cache-Control": "max-age=60", "Content-Encoding": "gzip"],
                to: CacheSelection.selecting([:], options))
            #expect(CacheSelection.fits(response, CacheSelection.selecting([:], options)))
            #expect(!CacheSelection.fits(response, CacheSelection.selecting([:], other)))
            let plain = try CacheSamples.response(200, Self.tagged, to: CacheSelection.selecting([:], options))
            #expect(CacheSelection.fits(plain, CacheSelection.selecting([:], other)))
        }
    }

    @Test func `a private response that an older version stored without its cookies fits no request`() throws {
        for (control, isPrivate) in [("private, max-age=60", true), ("max-age=60", false)] {
            let new = try CacheSamples.response(200, ["Cache-Control": control], to: ["Cookie": "sid=1"])
            var stored = try #require(
                try JSONSerialization.jsonObject(with: JSONEncoder().encode(new)) as? [String: Any])
            var selecting = try #require(stored["selecting"] as? [String: Any])
            #expect((selecting.removeValue(forKey: "cookie") != nil) == isPrivate)
            stored["selecting"] = selecting
            let old = try JSONDecoder().decode(
                CachedResponse.self, from: JSONSerialization.data(withJSONObject: stored))
            for request: HeaderFields in [[:], ["Cookie": "sid=1"], ["Cookie": "sid=2"]] {
                #expect(CacheSelection.fits(old, request) == !isPrivate)
            }
            #expect(CacheSelection.fits(new, ["Cookie": "sid=1"]))
        }
    }

    @Test(arguments: [
        ("X-Api-Key", "one", "two"), ("X-Access-Token", "one", "two"), ("X-Auth-Token", "one", "two"),
        ("X-Session", "Bearer one", "Bearer two"), ("Authorization", "Bearer one", "Bearer two"),
    ])
    func `a response to a request with credentials matches only the same credentials`(
        name: String, one: String, two: String
    ) throws {
        for control in ["max-age=60", "private, max-age=60"] {
            let response = try CacheSamples.response(200, ["Cache-Control": control], to: [name: one])
            #expect(CacheSelection.fits(response, [name: one]))
            #expect(!CacheSelection.fits(response, [name: two]) && !CacheSelection.fits(response, [:]))
            let anonymous = try CacheSamples.response(200, ["Cache-Control": control], to: [:])
            #expect(CacheSelection.fits(anonymous, [:]) && !CacheSelection.fits(anonymous, [name: one]))
        }
    }

    @Test func `a request header without credentials or Vary does not select a response`() throws {
        let response = try CacheSamples.response(
            200, ["Cache-Control": "max-age=60"],
            to: ["Accept": "a", "User-Agent": "App/1", "Referer": "https://h.com/?token=1"])
        #expect(CacheSelection.fits(response, ["Accept": "b", "User-Agent": "App/2", "Cookie": "sid=1"]))
    }

    @Test func `request header values are stored only as keyed hashes`() throws {
        let request: HeaderFields = ["X-Api-Key": "s3cret"]
        func response(_ key: CacheKey) throws -> CachedResponse {
            CachedResponse(
                try CacheSamples.head(200, ["Cache-Control": "max-age=60", "Vary": "X-Api-Key"]), to: request,
                requested: CacheSamples.now, received: CacheSamples.now, key: key)
        }
        let (one, other) = (CacheKey.random(), CacheKey.random())
        let kept = try response(one)
        #expect(!String(decoding: try JSONEncoder().encode(kept), as: UTF8.self).contains("s3cret"))
        #expect(try kept.selecting != response(other).selecting && kept.selecting == response(one).selecting)
        #expect(CacheSelection.fits(kept, request, key: one))
        #expect(!CacheSelection.fits(kept, request, key: other))
    }
}
