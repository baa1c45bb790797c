// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Album: Codable, Sendable, Equatable { let title: String }

private class ElsewhereOperation: EndpointOperation<String>, @unchecked Sendable {
    private let service: NetworkBase
    fileprivate let url: URL

    init(_ service: NetworkBase, _ url: URL) {
        (self.service, self.url) = (service, url)
        super.init()
    }

    override var base: NetworkBase { service }

    override var endpoint: Endpoint<String> { .get("").at(url, allowsOtherOrigin: true) }
}

/// An operation of a base that creates its own request.
private final class OwnRequestOperation: ElsewhereOperation, @unchecked Sendable {
    override func makeRequest() throws -> NetworkRequest { try NetworkRequest(url: url) }
}

/// An operation of a base whose hook sends the request to another URL.
private final class MovedOperation: ElsewhereOperation, @unchecked Sendable {
    override var endpoint: Endpoint<String> { .get("page") }

    override func prepareRequest(_ request: URLRequest) -> URLRequest { with(request) { $0.url = url } }
}

/// A service, and a server of another origin.
///
/// Both respond with the request line.
private struct TwoOrigins {
    let bench: OperationBench
    let other: LoopbackServer
    let base: NetworkBase

    init(origins: ((LoopbackServer, LoopbackServer) -> [URL])? = nil) throws {
        bench = try OperationBench()
        let other = try LoopbackServer()
        self.other = other
        for server in [bench.server, other] { server.route("/*") { .text("\($0.method) \($0.target)") } }
        var options = AuthenticationOptions()
        options.origins = origins?(bench.server, other)
        let authenticator = Authenticator(
            "the credential", options: options, apply: { try $1.with("X-Realm", $0) }, refresh: nil)
        var base = bench.base
        base.headers["X-Api-Key"] = "the key"
        base.headers["Authorization"] = "Bearer the-token"
        base.headers["Cookie"] = "sid=the-session"
        base.headers["X-Customer"] = "the customer"
        base.authenticate(by: authenticator)
        self.base = base
    }

    /// All values that reached the other origin.
    var leaks: [String] {
        other.requests.flatMap { request in request.fields.map { "\($0.name): \($0.value)" } + [request.target] }
            .filter { $0.contains("the") }
    }
}

@Suite("URLs over a base", .timeLimit(.minutes(1)))
struct EndpointURLTests {
    private let world: TwoOrigins

    init() throws {
        world = try TwoOrigins()
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test func `an absolute URL of the service gets the headers and credentials of the base`() async throws {
        let url = world.bench.server.url("/elsewhere/7?page=2")
        #expect(try await world.base.get(url, as: String.self).run() == "GET /elsewhere/7?page=2")
        let request = world.bench.server.requests[0]
        #expect(request["X-Api-Key"] == "the key" && request["X-Realm"] == "the credential")
        #expect(request["Authorization"] == "Bearer the-token" && request["X-Client"] == "test")
    }

    @Test func `a path is appended to the base as by URLComponents, with and without special characters`() throws {
        let bases = [
            "http://h.example", "http://h.example/", "https://h.example:8443/v1", "https://h.example/v1/",
            "https://h.example/a%20b/", "http://127.0.0.1:81/x?key=1", "http://[::1]:81/x", "http://h.example?key=1",
            "HTTP://H.example/v1", "https://u:p@h.example/v1",
        ]
        let paths = [
            "", "/", "a", "/a", "//a", "a/", "a//b", "a.json", "a..b", "a/./b", ".a", "a-b_c~d/9", "a b", "a+b",
            "a%2Fb",
            "ä", "a#b", "a@b", "a=c,d", "(a)", "a'b", "a/b/c.tar.gz",
        ]
        for base in bases {
            for path in paths {
                let url = try url(base)
                var parts = try #require(URLComponents(url: url, resolvingAgainstBaseURL: true))
                let names = String(path.drop { $0 == "/" })
                if !names.isEmpty {
                    parts.path += (parts.percentEncodedPath.hasSuffix("/") ? "" : "/") + names
                }
                let request = try Endpoint<String>.get(path).request(at: NetworkBase(url))
                let expected = try NetworkRequest(url: try #require(parts.url)).url
                #expect(request.url == expected, "\(base) and \(path)")
            }
        }
    }

    @Test(arguments: ["..", "../a", "a/..", "a/../b", "/../a"])
    func `a path that leaves the base is refused`(path: String) throws {
        let base = NetworkBase(try url("https://h.example/v1/"))
        #expect(throws: NetworkError.self) { try Endpoint<String>.get(path).request(at: base) }
    }

    @Test(arguments: [
        ("songs/7", "/api/songs/7"), ("?page=2", "/api?page=2"), ("/songs?page=2", "/songs?page=2"),
        ("songs/../7", "/api/7"), ("../admin", "/admin"), ("a%20b%2Fc?d=%26", "/api/a%20b%2Fc?d=%26"),
        ("#top", "/api?key=1"),
    ])
    func `a relative URL is resolved against the base`(reference: String, target: String) async throws {
        #expect(try await world.base.get(url(reference), as: String.self).run() == "GET \(target)")
    }

    @Test func `a URL with its own base URL keeps it`() async throws {
        let relative = try #require(URL(string: "b", relativeTo: world.bench.server.url("/a/")))
        #expect(try await world.base.get(relative, as: String.self).run() == "GET /a/b")
    }

    @Test func `an endpoint keeps its method, headers and body at a URL, but not its query`() async throws {
        let endpoint = Endpoint<String>.post("albums", ["page": 1], json: Album(title: "One")).header("X-Own", "own")
        var moved = endpoint.at(world.bench.server.url("/upload?id=7"))
        moved.query = ["part": 2]
        #expect(try await world.base.operation(for: moved).run() == "POST /upload?id=7&part=2")
        let request = world.bench.server.requests[0]
        #expect(request.text == #"{"title":"One"}"# && request["X-Own"] == "own")
        moved.path = "albums"
        #expect(try await world.base.operation(for: moved).run() == "POST /api/albums?key=1&part=2")
    }

    @Test func `another origin is refused, and the error names the parameter that allows it`() async throws {
        let url = world.other.url("/page?token=the-secret")
        for operation in [world.base.get(url, as: String.self), world.base.get(url, as: String.self)] {
            let error = await failure(of: operation)
            #expect(error?.code == .otherOrigin && error?.isUnsent == true)
            let message = error?.message ?? ""
            #expect(message.contains("allowsOtherOrigin: true") && !message.contains("the-secret"))
            #expect(message.contains("http://127.0.0.1:\(world.other.port)"))
            #expect(message.contains("http://127.0.0.1:\(world.bench.server.port)"))
        }
        #expect(await failure(of: world.base.download(url))?.code == .otherOrigin)
        await #expect(throws: NetworkError.self) {
            _ = try await world.base.stream(Endpoint<Data>.get("").at(url))
        }
        #expect(world.other.requests.isEmpty && world.bench.server.requests.isEmpty)
    }

    @Test(arguments: ["https://127.0.0.1:%/", "http://localhost:%/", "//127.0.0.2:%/", "http://127.0.0.1:1/"])
    func `another scheme, host or port is another origin`(pattern: String) async throws {
        let url = try url(pattern.replacing("%", with: "\(world.bench.server.port)"))
        #expect(await failure(of: world.base.get(url, as: String.self))?.code == .otherOrigin)
    }

    @Test(arguments: [
        ("mailto:a@b.c", NetworkError.Code.unsupportedScheme), ("file:///etc/passwd", .unsupportedScheme),
        ("http://127.0.0.1:0/", .invalidURL), ("http:///path", .invalidURL),
    ])
    func `a URL that cannot be requested fails with a message`(text: String, code: NetworkError.Code) async throws {
        let error = await failure(of: world.base.get(try url(text), allowsOtherOrigin: true, as: String.self))
        #expect(error?.code == code && error?.message.hasSuffix(".") == true)
    }

    @Test func `no header and no credential of the base reaches another origin`() async throws {
        let url = world.other.url("/page")
        let base = world.base
        #expect(try await base.get(url, allowsOtherOrigin: true, as: String.self).run() == "GET /page")
        try FileManager.default.removeItem(at: await base.download(url, allowsOtherOrigin: true).run())
        #expect(try await ElsewhereOperation(base, url).run() == "GET /page")
        let streamed = try await base.stream(Endpoint<Data>.get("").at(url, allowsOtherOrigin: true))
        #expect(try await streamed.lines.reduce(into: []) { $0.append($1) } == ["GET /page"])
        let group = GroupOperation { group in
            try await group.run(base.get(url, allowsOtherOrigin: true, as: String.self))
        }
        group.realms = base.realms
        #expect(try await group.run() == "GET /page")
        #expect(world.other.requests.count == 5)
        #expect(world.leaks.isEmpty)
        #expect(world.other.requests.allSatisfy { $0["X-Client"] == nil && $0["Accept"] == "*/*" })
    }

    @Test func `a change takes no header and no credential of the base to another origin`() async throws {
        let (url, unpaid) = (world.other.url("/page"), PostponedOperations { $0.error.status == 402 })
        world.bench.server.route("GET", "/api/unpaid") { _ in .status(402) }
        let base = with(world.base) { $0.postponed = unpaid }
        let download = base.download("unpaid")
        let own = NetworkDataOperation<String>(url: world.bench.server.url("/api/unpaid")).using(base)
        let operations: [any AnyNetworkOperation] = [base.get("unpaid", as: String.self), download, own]
        for operation in operations { operation.start() }
        await until { unpaid.count == 3 }
        #expect(world.bench.server.requests.allSatisfy { $0["X-Realm"] == "the credential" })
        unpaid.runAll { try NetworkRequest(url: url, headers: $0.headers) }
        for operation in operations { await operation.ended() }
        try FileManager.default.removeItem(at: await download.value)
        #expect(world.other.requests.count == 3)
        #expect(world.leaks.isEmpty)
    }

    @Test func `a change sends the credential of a realm that names the other origin`() async throws {
        let world = try TwoOrigins { [$0.url(), $1.url()] }
        let (url, unpaid) = (world.other.url("/page"), PostponedOperations { $0.error.status == 402 })
        world.bench.server.route("GET", "/api/unpaid") { _ in .status(402) }
        let operation = with(world.base) { $0.postponed = unpaid }.get("unpaid", as: String.self)
        operation.start()
        await until { unpaid.count == 1 }
        unpaid.runAll { try NetworkRequest(url: url, headers: $0.headers) }
        #expect(try await operation.value == "GET /page")
        #expect(world.leaks == ["X-Realm: the credential"])
    }

    @Test func `a class that creates its own request sends the credential of its base only to the base`() async throws {
        let (here, there) = (world.bench.server.url("/page"), world.other.url("/page"))
        for url in [here, there] { _ = try await OwnRequestOperation(world.base, url).run() }
        #expect(world.bench.server.requests[0]["X-Realm"] == "the credential")
        #expect(world.other.requests.count == 1 && world.leaks.isEmpty)
    }

    @Test func `an operation of two bases sends the credential of neither to the other`() async throws {
        let other = with(world.base) { $0.url = world.other.url("/") }
        _ = try await other.get("page", as: String.self).using(with(world.base) { $0.realms = [] }).run()
        _ = try await with(other) { $0.realms = [] }.get("page", as: String.self).using(world.base).run()
        #expect(world.other.requests.count == 2)
        #expect(world.other.requests.allSatisfy { $0["X-Realm"] == nil })
    }

    @Test func `a group gives no credential of a realm without origins to another origin`() async throws {
        var base = world.base
        let realms = base.realms
        base.realms = []
        let (service, url) = (base, world.other.url("/page"))
        let group = GroupOperation { group in
            _ = try await group.run(service.get("here", as: String.self))
            return try await group.run(service.get(url, allowsOtherOrigin: true, as: String.self))
        }
        group.realms = realms
        #expect(try await group.run() == "GET /page")
        #expect(world.leaks.isEmpty && world.bench.server.requests[0]["X-Realm"] == "the credential")
    }

    @Test func `a realm that names another origin sends its credential there`() async throws {
        let world = try TwoOrigins { [$0.url(), $1.url()] }
        _ = try await world.base.get(world.other.url("/"), allowsOtherOrigin: true, as: String.self).run()
        #expect(world.other.requests[0]["X-Realm"] == "the credential")
        #expect(world.other.requests[0]["X-Api-Key"] == nil)
    }

    @Test func `secret headers of an endpoint stay at its base, and headers that are added afterwards do not`()
        async throws
    {
        let endpoint = Endpoint<String>.get("albums").adding([
            "Authorization": "Basic dGhlOmtleQ==", "X-Auth-Token": "the token", "X-Trace": "Bearer the-token",
            "Accept-Language": "de",
        ])
        let moved = endpoint.at(world.other.url("/files"), allowsOtherOrigin: true).adding(["X-Share": "the share"])
        _ = try await world.base.operation(for: moved).run()
        #expect(world.leaks == ["X-Share: the share"])
        #expect(world.other.requests[0]["Authorization"] == nil)
        #expect(world.other.requests[0]["Accept-Language"] == "de")
        _ = try await world.base.get(
            world.other.url("/files"), allowsOtherOrigin: true, headers: ["X-Api-Key": "another key"], as: String.self
        ).run()
        #expect(world.other.requests[1]["X-Api-Key"] == "another key")
    }

    @Test func `a user and a password of the base are sent to its origin only`() async throws {
        let own = world.bench.server.url("/page")
        let base = try with(world.base) {
            $0.headers = [:]
            $0.url = try url("http://me:secret@127.0.0.1:\(world.bench.server.port)/api")
        }
        _ = try await base.get("a", as: String.self).run()
        for place in [own, try url("albums")] { _ = try await base.get(place, as: String.self).run() }
        _ = try await NetworkDataOperation<String>(url: own).using(base).run()
        try FileManager.default.removeItem(at: await base.download(own).run())
        #expect(world.bench.server.requests.count == 5)
        #expect(world.bench.server.requests.allSatisfy { $0["Authorization"] == "Basic bWU6c2VjcmV0" })
        _ = try await base.get(own, headers: ["Authorization": "own"], as: String.self).run()
        #expect(world.bench.server.requests[5].values("Authorization") == ["own"])
        _ = try await base.get(world.other.url("/page"), allowsOtherOrigin: true, as: String.self).run()
        _ = try await MovedOperation(base, world.other.url("/page")).run()
        #expect(world.other.requests.map { $0["Authorization"] } == [nil, nil])
    }

    @Test func `a user and a password in a URL are ignored`() async throws {
        let base = with(world.base) { $0.headers = [:] }
        let url = try url("http://me:secret@127.0.0.1:\(world.bench.server.port)/page")
        #expect(try await base.get(url, as: String.self).run() == "GET /page")
        #expect(world.bench.server.requests[0]["Authorization"] == nil)
    }

    @Test(arguments: [
        "http://example.com/songs", "https://example.com", "/HTTPS://example.com", "copy/http://example.com",
    ])
    func `a path that contains a URL is refused, and the error names the calls for URLs`(path: String) async throws {
        for error in [
            await failure(of: world.base.get(path, as: String.self)), await failure(of: world.base.download(path)),
        ] {
            #expect(error?.code == .invalidURL)
            let message = error?.message ?? ""
            #expect(message.contains("get(url)") && message.contains("download(url)") && message.contains("at(_:)"))
        }
        #expect(world.bench.server.requests.isEmpty)
    }

    @Test func `a question mark in a path logs a notice that names the query parameter`() async throws {
        let notices = NoticeTaker.recorder(for: "NetworkBase")
        _ = try await world.base.get("noticed/7:1?page=2&token=the-secret", as: String.self).run()
        #expect(world.bench.server.requests[0].target.hasPrefix("/api/noticed/7:1%3Fpage=2"))
        let notice = try #require(notices.events.first { $0.message.contains("noticed/7:1") })
        #expect(notice.kind == .queryInPath && notice.kind.isHarmless)
        #expect(notice.message.contains("query parameter") && !notice.message.contains("the-secret"))
        #expect(notices.events.count { $0.message.contains("noticed/7:1") } == 1)
    }

    @Test func `three pages are loaded by their links, relative and absolute`() async throws {
        let server = world.bench.server
        let third = server.url("/api/items?page=3").absoluteString
        server.route("GET", "/api/items") { request in
            switch request.query {
            case "key=1": .json("[1,2]").with("Link", #"<?page=2>; rel="next", <?page=3>; rel="last""#)
            case "page=2": .json("[3]").with("Link", #"</api/items>; rel="first", <\#(third)>; rel="next""#)
            default: .json("[4,5]").with("Link", #"<?page=2>; rel="prev""#)
            }
        }
        let base = world.base
        let group = GroupOperation { group in
            var items: [Int] = []
            var page: EndpointOperation<[Int]>? = base.get("items")
            while let current = page {
                items += try await group.run(current)
                page = current.responseHead?.link("next").map { base.get($0) }
            }
            return items
        }
        #expect(try await group.run() == [1, 2, 3, 4, 5])
        #expect(server.requests.map(\.query) == ["key=1", "page=2", "page=3"])
        #expect(server.requests.allSatisfy { $0["X-Realm"] == "the credential" && $0["X-Api-Key"] == "the key" })
    }

    @Test func `a link to another origin fails with an error`() async throws {
        let link = "<\(world.other.url("/items?page=2"))>; rel=next"
        world.bench.server.route("GET", "/api/items") { _ in .json("[1]").with("Link", link) }
        let first = world.base.get("items", as: [Int].self)
        _ = try await first.run()
        let next = try #require(first.responseHead?.link("next"))
        #expect(await failure(of: world.base.get(next, as: [Int].self))?.code == .otherOrigin)
        #expect(world.other.requests.isEmpty)
    }
}
