// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests the sessions of operations that name no session, and the meaning of `.shared`.
///
/// Two of the tests change the session of the whole process.
@Suite("Default session", .serialized, .timeLimit(.minutes(1)))
struct DefaultSessionTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
        bench.server.route("GET", "/sign-in") { _ in .text("welcome").with("Set-Cookie", "default-session=7") }
        bench.server.route("GET", "/") { .text($0["Cookie"] ?? "no cookie") }
    }

    private func text(_ target: String, _ session: any NetworkSession) async throws -> String {
        let operation = NetworkDataOperation<String>(url: bench.server.url(target), urlSession: session)
        return try await operation.run()
    }

    @Test func `a jar over a URLSession keeps each of several cookies with its own attributes`() async throws {
        bench.server.route("GET", "/two") { _ in
            LoopbackAnswer(
                .head(
                    200,
                    [
                        "Content-Length": "0", "Set-Cookie": "sid=1; Path=/; HttpOnly",
                        "Set-Cookie": "theme=dark; Max-Age=60",
                    ]))
        }
        var configuration = ExchangeConfiguration()
        let jar = CookieJar()
        configuration.cookies = jar
        let session = ExchangeSession(over: URLSession(configuration: .ephemeral), configuration: configuration)
        _ = try await text("/two", session)
        #expect(jar.cookies.map(\.name).sorted() == ["sid", "theme"])
        #expect(jar.cookies.filter(\.isHTTPOnly).map(\.value) == ["1"])
    }

    @Test func `cookies are kept for requests of .shared, but not for requests that name no session`() async throws {
        let isOfTest: @Sendable (Cookie) -> Bool = { $0.name == "default-session" }
        defer { DefaultNetworkSession.sharedCookies.remove(where: isOfTest) }
        func unnamed(_ target: String) async throws -> String {
            let operation = NetworkDataOperation<String>(url: bench.server.url(target))
            return try await operation.run()
        }
        _ = try await unnamed("/sign-in")
        #expect(try await unnamed("/") == "no cookie")
        #expect(try await text("/", .shared) == "no cookie")
        _ = try await text("/sign-in", .shared)
        #expect(try await text("/", .shared) == "default-session=7")
        #expect(try await unnamed("/") == "no cookie")
        let base = NetworkBase(bench.server.url("/"))
        #expect(try await base.get("", as: Data.self).run() == Data("no cookie".utf8))
        DefaultNetworkSession.sharedCookies.remove(where: isOfTest)
        #expect(try await text("/", .shared) == "no cookie")
    }

    @Test func `an operation that names .shared keeps it, whatever the session of its base`() async throws {
        let stub = StubSession()
        stub.route("GET", "/") { _ in .text("stub") }
        let base = NetworkBase(bench.server.url("/")) { $0.session = stub }
        let named = NetworkDataOperation(url: bench.server.url("/"), urlSession: .shared) { $0.count + $1.statusCode }
        #expect(try await named.using(base).run() > 200)
        #expect(stub.requests.isEmpty)
        let unnamed = NetworkDataOperation(url: bench.server.url("/")) { $0.count + $1.statusCode }
        #expect(try await unnamed.using(base).run() == 204)
    }

    @Test func `the default session can be replaced`() async throws {
        bench.server.route("GET", "/") { _ in .text("Hello") }
        let (made, session) = (Tally(), bench.session)
        DefaultNetworkSession.standard.session = ClosureSession { request, receiver in
            made.add()
            return session.makeTask(with: request, receiver: receiver)
        }
        defer { DefaultNetworkSession.standard.session = nil }
        let operation = NetworkDataOperation(url: bench.server.url("/")) { data, _ in data.count }
        #expect(try await operation.run() == 5)
        let named = NetworkDataOperation(url: bench.server.url("/"), urlSession: .shared) { data, _ in data.count }
        #expect(try await named.run() == 5)
        #expect(made.count >= 2, "the new session replaces both")
    }

    @Test func `a default session that wraps itself uses the session of the platform instead`() {
        let standard = DefaultNetworkSession.standard
        defer { standard.session = nil }
        let configuration = with(ExchangeConfiguration()) { $0.cookies = CookieJar() }
        standard.session = ExchangeSession(over: standard, configuration: configuration)
        let chosen = standard.session as? ExchangeSession
        #expect(chosen?.transport is DefaultNetworkSession == false)
        #expect(chosen?.configuration.cookies === configuration.cookies)
        standard.session = ExchangeSession(over: ExchangeSession(over: standard))
        let inner = (standard.session as? ExchangeSession)?.transport as? ExchangeSession
        #expect(inner?.transport is DefaultNetworkSession == false)
        standard.session = standard
        #expect(standard.session is ExchangeSession)
    }

    #if canImport(FoundationNetworking)
        @Test func `on Linux, a URLSession with its own cookies logs once that they are not used`() async throws {
            let configuration = URLSessionConfiguration.ephemeral
            for (name, change) in [
                ("DefaultSessionTests.lost", { _ in }),
                ("DefaultSessionTests.none", { $0.httpCookieStorage = nil }),
            ] as [(String, (URLSessionConfiguration) -> Void)] {
                change(configuration)
                let session = URLSession(configuration: configuration)
                session.sessionDescription = name
                let notices = NoticeTaker.recorder(for: name)
                #expect(try await text("/", session) == "no cookie")
                #expect(notices.events.isEmpty)
                for _ in 0..<2 { _ = try await text("/sign-in", session) }
                guard name.hasSuffix("lost") else {
                    #expect(notices.events.isEmpty)
                    continue
                }
                let notice = try #require(await notices.events(atLeast: 1).first)
                #expect(notice.kind == .sessionStorage && notice.message.contains("CookieJar"))
                #expect(try await text("/", session) == "no cookie")
                #expect(notices.events.count == 1)
                let kept = ExchangeSession.over(session) { $0.cookies = CookieJar() }
                _ = try await text("/sign-in", kept)
                #expect(try await text("/", kept) == "default-session=7")
            }
        }

        @Test func `on Linux, a URLSession with its own credentials logs that they are not used`() async throws {
            let configuration = URLSessionConfiguration.ephemeral
            let storage = try #require(configuration.urlCredentialStorage)
            let space = URLProtectionSpace(
                host: "127.0.0.1", port: 80, protocol: "http", realm: "shop",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            storage.set(URLCredential(user: "anna", password: "secret", persistence: .forSession), for: space)
            let session = URLSession(configuration: configuration)
            session.sessionDescription = "DefaultSessionTests.credentials"
            let notices = NoticeTaker.recorder(for: "DefaultSessionTests.credentials")
            _ = try await text("/", session)
            let notice = try #require(await notices.events(atLeast: 1).first)
            #expect(notice.kind == .sessionStorage && notice.message.contains("challenges"))
            #expect(!notice.message.contains("anna"))
        }
    #endif
}
