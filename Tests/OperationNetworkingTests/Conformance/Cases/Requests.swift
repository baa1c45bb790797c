// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

extension ConformanceCase {
    private static func method(_ method: String) -> ConformanceCase {
        withNoContent("the method \(method) is sent") { bench async throws in
            #expect(try await bench.run(bench.request(method)).status == 204)
            let request = try #require(bench.server.requests.first)
            #expect(request.method == method)
            #expect(request.bodyCount == 0)
            #expect(bench.server.violations == [])
        }
    }

    private static func target(_ target: String) -> ConformanceCase {
        ConformanceCase("the target \(target.prefix(30)) is sent unchanged") { bench async throws in
            bench.server.route("/*") { _ in .status(204) }
            #expect(try await bench.get(target).status == 204)
            #expect(bench.server.requests.map(\.target) == [target])
            #expect(bench.server.violations == [])
        }
    }

    static var requests: [ConformanceCase] {
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "M-SEARCH"].map { method($0) }
            + [
                "/", "/a", "/?q", "/?", "/a%2Fb", "/a%20b?x=%20&y=/?", "/a//b", "/a/./b/../c", "/%00", "/a;b=c,d",
                "/\(String(repeating: "long", count: 2_000))",
            ].map { target($0) }
            + [
                withNoContent("headers are sent in order, including repeated headers") {
                    bench async throws in
                    let headers: HeaderFields = ["X-B": "1", "X-A": "a, b", "x-b": "2", "X-Empty": "", "X-B": "3"]
                    #expect(try await bench.run(bench.request("GET", "/", headers)).status == 204)
                    let request = try #require(bench.server.requests.first)
                    let sent = request.fields.filter { $0.name.lowercased().hasPrefix("x-") }
                    #expect(sent.map(\.name) == ["X-B", "X-A", "x-b", "X-Empty", "X-B"])
                    #expect(sent.map(\.value) == ["1", "a, b", "2", "", "3"])
                },
                withNoContent("a header value may contain non-ASCII characters") { bench async throws in
                    _ = await bench.run(try bench.request("GET", "/", ["X-Name": "Zoë \u{1F600}"]))
                    #expect(bench.server.requests.first?["X-Name"] == "Zoë \u{1F600}")
                },
                withNoContent("a session adds no unexpected headers") { bench async throws in
                    _ = await bench.run(try bench.request("POST", body: .data(Data("{}".utf8))))
                    let names = Set(try #require(bench.server.requests.first).fields.map { $0.name.lowercased() })
                    let allowed: Set = [
                        "host", "content-length", "accept-encoding", "accept", "user-agent", "connection",
                    ]
                    #expect(names.subtracting(allowed).isEmpty, "\(names)")
                },
                withNoContent("User-Agent and Accept headers of a request replace the defaults") {
                    bench async throws in
                    _ = await bench.run(try bench.request("GET", "/", ["User-Agent": "me", "Accept": "image/png"]))
                    #expect(bench.server.requests.first?.values("User-Agent") == ["me"])
                    #expect(bench.server.requests.first?.values("Accept") == ["image/png"])
                },
                withNoContent("the Host header contains the host and port of the URL") { bench async throws in
                    _ = try await bench.get()
                    #expect(bench.server.requests.first?.values("Host") == ["127.0.0.1:\(bench.server.port)"])
                },
                withNoContent("a host name is resolved and sent in the Host header") { bench async throws in
                    let url = try #require(URL(string: "http://localhost:\(bench.server.port)/"))
                    let record = await bench.run(try NetworkRequest(url: url))
                    #expect(record.status == 204)
                    #expect(bench.server.requests.first?["Host"] == "localhost:\(bench.server.port)")
                },
                withNoContent("an IPv6 address is sent in the Host header", options: { $0.addresses = [.ipv6] }) {
                    bench async throws in
                    #expect(try await bench.get().status == 204)
                    #expect(bench.server.requests.first?["Host"] == "[::1]:\(bench.server.port)")
                },
                withNoContent("the user and password of a URL are sent in the Authorization header") {
                    bench async throws in
                    let url = try #require(URL(string: "http://us%40er:pa%3Ass@127.0.0.1:\(bench.server.port)/"))
                    _ = await bench.run(try NetworkRequest(url: url))
                    let wanted = "Basic " + Data("us@er:pa:ss".utf8).base64EncodedString()
                    #expect(bench.server.requests.first?.values("Authorization") == [wanted])
                    #expect(bench.server.requests.first?.target == "/")
                },
                ConformanceCase("each of a hundred concurrent requests receives its own response") {
                    bench async throws in
                    bench.server.route("/*") { .text("answer to \($0.path)") }
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for number in 0..<100 {
                            group.addTask {
                                let record = try await bench.get("/\(number)")
                                #expect(record.text == "answer to /\(number)")
                            }
                        }
                        try await group.waitForAll()
                    }
                    #expect(bench.server.counts.requests == 100)
                    #expect(bench.server.violations == [])
                },
                ConformanceCase("a request to a closed port fails with cannotConnect and sends nothing") {
                    bench async throws in
                    let request = try bench.request("POST", body: .data(Data("x".utf8)))
                    await bench.server.stopped()
                    let error = try #require(await bench.run(request).error)
                    #expect(error.code == .cannotConnect)
                    #expect(error.isUnsent)
                },
                ConformanceCase("a request to a host that does not exist fails and sends nothing") {
                    bench async throws in
                    let url = try #require(URL(string: "http://no-such-host.invalid/"))
                    let error = try #require(await bench.run(try NetworkRequest(url: url)).error)
                    #expect([.cannotFindHost, .notConnected].contains(error.code))
                    #expect(error.isUnsent)
                },
                ConformanceCase("an https request to a server without TLS fails with secureConnectionFailed") {
                    bench async throws in
                    bench.server.greet { _ in .raw("HTTP/1.1 400 Bad Request\r\n\r\n") }
                    let url = try #require(URL(string: "https://127.0.0.1:\(bench.server.port)/"))
                    let record = await bench.run(try NetworkRequest(url: url))
                    #expect(record.error?.code == .secureConnectionFailed)
                    #expect(record.head == nil)
                },
                ConformanceCase("errors describe the request without its secrets") { bench async throws in
                    bench.server.route("/*") { _ in .reset }
                    let request = try bench.request("GET", "/a?token=secret", ["Authorization": "Bearer secret"])
                    let error = try #require(await bench.run(request).error)
                    #expect(!"\(error)".contains("secret"))
                    #expect("\(error)".contains("/a?token=***"), "\(error)")
                },
            ]
    }
}
