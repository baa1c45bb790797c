// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Responses that the layers above a session handle. The session delivers them unchanged.
extension ConformanceCase {
    private static func redirect(_ status: Int, _ method: String = "GET") -> ConformanceCase {
        ConformanceCase("redirect \(status) of a \(method) is delivered and not followed") { bench async throws in
            bench.server.route("/") { _ in .redirect(to: "/next", status: status) }
            let record = await bench.run(
                try bench.request(method, body: method == "GET" ? .none : .data(.init([1, 2, 3]))))
            #expect(record.status == status)
            #expect(record.head?.headers["Location"] == "/next")
            try await bench.checkHealth()
            #expect(bench.server.requests.map(\.path) == ["/", "/health"])
        }
    }

    private static func location(_ location: String) -> ConformanceCase {
        ConformanceCase("the location \(location.debugDescription) is delivered unchanged") { bench async throws in
            bench.server.route("/") { _ in .redirect(to: location) }
            let record = try await bench.get()
            #expect(record.status == 302)
            #expect(record.head?.headers["Location"] == location)
            try await bench.checkHealth()
        }
    }

    private static func status(_ status: Int) -> ConformanceCase {
        ConformanceCase("status \(status) is delivered without an error") { bench async throws in
            bench.server.route("/") { _ in .text("why", status: status) }
            let record = try await bench.get()
            #expect(record.error == nil)
            #expect(record.status == status)
            #expect(record.text == "why")
            try await bench.checkHealth()
        }
    }

    private static func challenge(_ name: String, _ answer: LoopbackAnswer, _ status: Int) -> ConformanceCase {
        ConformanceCase("\(name) is delivered without an error or a second request") { bench async throws in
            bench.server.route("/") { _ in answer }
            let record = try await bench.get()
            #expect(record.status == status)
            #expect(record.error == nil)
            #expect(bench.server.counts.requests == 1)
            try await bench.checkHealth()
        }
    }

    static var givenAsTheyAre: [ConformanceCase] {
        [300, 301, 302, 303, 304, 305, 307, 308].map { redirect($0) }
            + [301, 302, 303, 307, 308].map { redirect($0, "POST") }
            + [
                "//[::1]/", "//a%20b/", "//%00/", "//a%2Fb/x", "//[::1%25eth0]/", "", "mailto:a@b",
                "file:///etc/passwd",
                "http://u:p@h/", "?q", "../x", "http://", "http://[", "\u{FFFD}", "ftp://h/", "javascript:1",
            ].map { location($0) }
            + [201, 206, 299, 400, 403, 404, 408, 413, 418, 421, 429, 500, 502, 503, 504, 599, 999].map { status($0) }
            + [
                challenge("a Basic challenge", .status(401).with("WWW-Authenticate", "Basic realm=\"r\""), 401),
                challenge(
                    "a Digest challenge",
                    .status(401).with("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""), 401),
                challenge("a Negotiate challenge", .status(401).with("WWW-Authenticate", "Negotiate"), 401),
                challenge("a Bearer challenge", .status(401).with("WWW-Authenticate", "Bearer"), 401),
                challenge("a 401 without a challenge", .status(401), 401),
                challenge("a malformed challenge", .status(401).with("WWW-Authenticate", ",,=\"\\"), 401),
                challenge("a proxy's challenge", .status(407).with("Proxy-Authenticate", "Basic realm=\"r\""), 407),
                ConformanceCase("a session does not send cookies back") { bench async throws in
                    bench.server.route("/") { _ in .text("x").with("Set-Cookie", "a=b; Path=/") }
                    for _ in 0..<3 { #expect(try await bench.get().head?.headers["Set-Cookie"] == "a=b; Path=/") }
                    #expect(bench.server.requests.allSatisfy { $0["Cookie"] == nil })
                },
                ConformanceCase("a session caches no response, even if the server permits it") { bench async throws in
                    bench.server.route("/") { _ in
                        .text("x").with("Cache-Control", "max-age=1000").with("ETag", "\"a\"")
                    }
                    for _ in 0..<3 { _ = try await bench.get() }
                    #expect(bench.server.counts.requests == 3)
                    #expect(bench.server.requests.allSatisfy { $0["If-None-Match"] == nil })
                },
                ConformanceCase("Retry-After, Refresh and Alt-Svc headers have no effect") { bench async throws in
                    bench.server.route("/") { _ in
                        .status(503).with("Retry-After", "0").with("Refresh", "0;url=/x").with("Alt-Svc", "h3=\":1\"")
                    }
                    #expect(try await bench.get().status == 503)
                    try await bench.checkHealth()
                    #expect(bench.server.counts.requests == 2)
                },
            ]
    }
}
