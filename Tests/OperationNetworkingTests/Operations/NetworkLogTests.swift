// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Log of network operations", .timeLimit(.minutes(3)))
struct NetworkLogTests {
    private let entries = EventRecorder<String>()

    @Test func `requests and responses are logged without secrets, unless redaction is turned off`() async throws {
        let bench = try OperationBench()
        bench.server.route("POST", "/api/sign-in") { _ in
            .json(#"{"token":"t0psecret","name":"Anna"}"#).with("Set-Cookie", "sid=c0okie")
        }
        for redaction in [LogRedaction.secrets, .none] {
            let entries = EventRecorder<String>()
            var base = bench.base
            base.headers["Authorization"] = "Bearer h3ader"
            base.log = NetworkLog(level: .bodies, redaction: redaction) { entries.record($0) }
            let operation = base.send(["password": "b0dy", "user": "anna"], to: "sign-in", as: [String: String].self)
            #expect(try await operation.run()["name"] == "Anna")
            let text = entries.events.joined(separator: "\n")
            for secret in ["t0psecret", "c0okie", "h3ader", "b0dy", "key=1"] {
                #expect(text.contains(secret) == (redaction == .none), "\(secret) in \(text)")
            }
            for plain in ["→ #", " POST ", "← #", " 200 ", "anna", "X-Client: test", "✓"] {
                #expect(text.contains(plain), "\(plain) in \(text)")
            }
        }
    }

    @Test func `the log shows the configured number of bytes of a body, and only whole characters`() async throws {
        let bench = try OperationBench()
        bench.server.route("POST", "/api/a") { _ in .json(#"["éé"]"#) }
        for redaction in [LogRedaction.secrets, .none] {
            for count in -1...9 {
                let entries = EventRecorder<String>()
                var base = bench.base
                var log = NetworkLog(level: .bodies, redaction: redaction) { entries.record($0) }
                log.bodyBytes = count
                base.log = log
                _ = try await base.send([1], to: "a", as: [String].self).run()
                let shown = entries.events.last?.split(separator: "\n").last.map { $0.dropFirst(2) } ?? ""
                let texts = ["", "", "[", "[\"", "[\"", "[\"é", "[\"é", "[\"éé", "[\"éé\"", "[\"éé\"]", "[\"éé\"]"]
                let isWhole = count >= 8
                #expect(shown == texts[count + 1] + (isWhole ? "" : "… (8 bytes)"), "\(count)")
            }
        }
        var base = bench.base
        base.log = NetworkLog(level: .bodies, redaction: .none) { entries.record($0) }
        _ = try await base.send(body: .data(Data([0xFF, 0xD8, 0xFF])), to: "a", as: [String].self).run()
        #expect(entries.events.first?.hasSuffix("(3 bytes)") == true)
    }

    @Test func `names of secrets are recognized in all forms, and URLs are shown without their secrets`() {
        let redaction = LogRedaction.secrets
        for name in [
            "X-Auth-Key", "Ocp-Apim-Subscription-Key", "DD-APPLICATION-KEY", "X-Auth", "accessKey", "private_key",
            "api-key", "X-API-Key", "refreshToken", "db_pwd", "code",
        ] {
            #expect(redaction.hides(name), "\(name)")
        }
        for name in ["keyboard", "author", "Monkey", "statusCode", "Content-Type", "opinion"] {
            #expect(!redaction.hides(name), "\(name)")
        }
        let fields: HeaderFields = [
            "Location": "https://u:p@h.com/up?upload_id=S3CRET#S3CRET", "Link": "<https://h.com/p?c=S3CRET>; rel=next",
            "Refresh": "0; url=/a?S3CRET", "Server": "a/b (c)",
        ]
        let text = "\(fields)"
        #expect(!text.contains("S3CRET") && !text.contains("u:p"), "\(text)")
        for shown in ["https://***@h.com/up?***", "<https://h.com/p?***>; rel=next", "0; url=/a?***", "a/b (c)"] {
            #expect(text.contains(shown), "\(shown) in \(text)")
        }
    }

    @Test func `a query is redacted to its end, whatever it contains and wherever it occurs`() async throws {
        let addresses = [
            "/app#access_token=S3CRET", "?code=S3CRET", "login?token=S3CRET", "/a?a=1;token=S3CRET", "?sig=ab,S3CRET",
            "?x='S3CRET'", "?x=\"a\"S3CRET", "?x=<a>S3CRET", "//user:S3CRET@host/", "?a=b S3CRET",
        ]
        for address in addresses {
            for name in ["Location", "Content-Location", "Referer"] {
                let fields: HeaderFields = [name: address]
                #expect(!"\(fields)".contains("S3CRET"), "\(fields)")
            }
            let fields: HeaderFields = ["X-Next": address.filter { $0 != " " }]
            #expect(!"\(fields)".contains("S3CRET"), "\(fields)")
        }
        let lists: HeaderFields = [
            "Refresh": "0; url=next?t=S3CRET", "Link": "<a?c=b,S3CRET;S3CRET>; rel=next, <b#S3CRET>; rel=prev",
            "Alt": "\"a?S3CRET\" shown",
        ]
        let text = "\(lists)"
        #expect(!text.contains("S3CRET"), "\(text)")
        for shown in ["<a?***>; rel=next, <b#***>; rel=prev", "0; url=next?***", "\"a?***\" shown"] {
            #expect(text.contains(shown), "\(shown) in \(text)")
        }
        let bench = try OperationBench()
        bench.server.route("GET", "/api/list") { _ in
            .json(#"{"next":"/list?cursor=S3CRET","all":["https://u:S3CRET@h/x#S3CRET"],"name":"Anna"}"#)
        }
        var base = bench.base
        base.log = NetworkLog(level: .bodies) { entries.record($0) }
        _ = try await base.get("list", as: Data.self).run()
        let log = entries.events.joined(separator: "\n")
        #expect(!log.contains("S3CRET") && log.contains("Anna") && log.contains("list?***"), "\(log)")
    }

    @Test func `a response that is a single text is not logged, because it may be a token`() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/api/token") { _ in .json(#""t0psecret""#) }
        var base = bench.base
        base.log = NetworkLog(level: .bodies) { entries.record($0) }
        #expect(try await base.get("token", as: String.self).run() == #""t0psecret""#)
        #expect(!entries.events.joined().contains("t0psecret"))
    }

    @Test func `at the lowest level, a failure is logged with its reason and without the query`() async throws {
        let bench = try OperationBench()
        let operation = bench.text("/nowhere?q=hidden")
        operation.addNetworkObserver(NetworkLog { entries.record($0) })
        _ = await failure(of: operation)
        #expect(entries.events.count == 3)
        #expect(entries.events.last?.contains("unacceptableStatus") == true)
        #expect(!entries.events.joined().contains("hidden"))
    }
}
