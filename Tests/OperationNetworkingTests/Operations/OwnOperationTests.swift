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

/// A result type without a default evaluation.
private struct Opaque: Sendable { let count: Int }

/// An abstract base class without a URL.
private class ShopOperation<ResultType: Sendable>: NetworkDataOperation<ResultType>, @unchecked Sendable {
    let madeRequests = Locked(0)

    init(session: any NetworkSession) { super.init(urlSession: session) }

    var path: String { "" }

    override func makeRequest() throws -> NetworkRequest {
        madeRequests.withLock { $0 += 1 }
        return try NetworkRequest(url: address(path))
    }
}

private final class AlbumOperation: ShopOperation<Album>, @unchecked Sendable {
    override var path: String { "/album" }
}

/// Inherits all initializers.
private final class Inheriting<ResultType: Sendable>: NetworkDataOperation<ResultType>, @unchecked Sendable {}

private final class ByHead: NetworkDataOperation<Opaque>, @unchecked Sendable {
    override func evaluate(result: Data, head: ResponseHead) -> Opaque { Opaque(count: head.status) }
}

private final class Cover: NetworkDownloadOperation<URL>, @unchecked Sendable {
    init(of shop: NetworkBase) {
        super.init(url: address("/album"))
        using(shop)
    }
}

/// An operation whose hooks send the request to another host.
private final class Mirrored: NetworkDataOperation<Data>, @unchecked Sendable {
    // These properties are set before the start.
    var preparedHost: String?
    var adaptedHost: String?

    override func prepareRequest(_ request: URLRequest) throws -> URLRequest {
        var request = request
        if let preparedHost { request.url = address("/album", host: preparedHost) }
        request.setValue("the hook's", forHTTPHeaderField: "X-Own")
        return request
    }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        guard let adaptedHost else { return request }
        return try NetworkRequest(url: address("/album", host: adaptedHost), headers: request.headers)
    }
}

/// An endpoint whose hook sends the request to another host.
private final class MirroredEndpoint: EndpointOperation<Album>, @unchecked Sendable {
    override func prepareRequest(_ request: URLRequest) throws -> URLRequest {
        with(request) { $0.url = address("/album", host: "other.test") }
    }
}

private final class Counting: NetworkDataOperation<Int>, @unchecked Sendable {
    private let url: URL

    init(_ url: URL, _ session: any NetworkSession) {
        self.url = url
        super.init(urlSession: session) { response in response.body.count }
    }

    override func makeRequest() throws -> NetworkRequest { try NetworkRequest(url: url) }
}

/// Passes other headers to its superclass.
private final class Latin: NetworkDataOperation<String>, @unchecked Sendable {
    override func evaluate(result: Data, head: ResponseHead) throws -> String {
        let latin = ResponseHead(
            url: head.url, status: head.status, headers: ["Content-Type": "text/plain; charset=iso-8859-1"])
        return try super.evaluate(result: result, head: latin)
    }
}

private func address(_ path: String, host: String = "shop.test") -> URL {
    var parts = URLComponents()
    (parts.scheme, parts.host, parts.path) = ("https", host, path)
    return parts.url ?? URL(fileURLWithPath: path)
}

private func makeShop() -> StubSession {
    let session = StubSession()
    session.route("GET", "/album") { _ in .json(#"{"title":"One"}"#) }
    session.route("GET", "/nothing") { _ in .status(204) }
    session.route("POST", "/album") { .text($0.text) }
    return session
}

@Suite("Operation classes of your own", .timeLimit(.minutes(3)))
struct OwnOperationTests {
    private let session = makeShop()

    @Test func `an abstract base class needs no URL and takes any session`() async throws {
        let session: any NetworkSession = makeShop()
        #expect(try await AlbumOperation(session: session).run() == Album(title: "One"))
    }

    @Test func `a request is made again for each attempt`() async throws {
        let session = StubSession()
        session.route("GET", "/album", inTurn: .status(503), .status(503), .json(#"{"title":"One"}"#))
        let operation = AlbumOperation(session: session)
        operation.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
        #expect(try await operation.run() == Album(title: "One"))
        #expect(operation.madeRequests.withLock { $0 } == 3)
    }

    @Test("An operation without a request fails before anything is sent, and names the method to override")
    func noRequest() async throws {
        let error = await failure(of: NetworkDataOperation<Data>(urlSession: session))
        #expect(error?.code == .preparationFailed)
        #expect(error?.phase == .checking)
        #expect(error?.message.contains("makeRequest()") == true)
        #expect(session.requests.isEmpty)
    }

    @Test func `a session can be passed in every form or omitted, also with inherited initializers`() async throws {
        let stub = makeShop()
        let unnamed: any NetworkSession = stub
        let url = address("/album")
        _ = [
            Inheriting<Data>(url: url), Inheriting<Data>(url: url, urlSession: .shared),
            Inheriting<Data>(url: url, urlSession: URLSession.shared),
            Inheriting<Data>(request: URLRequest(url: url), urlSession: .shared),
            Inheriting(url: url, urlSession: .shared) { response in response.body },
            Inheriting(url: url, urlSession: .shared) { data, _ in data },
        ]
        _ = NetworkUploadOperation<Data>(url: url, body: .none, urlSession: .shared)
        _ = NetworkDownloadOperation<URL>(url: url, urlSession: .shared)
        #expect(try await Inheriting<Album>(url: url, urlSession: unnamed).run() == Album(title: "One"))
        #expect(try await Inheriting<Album>(url: url, urlSession: stub).run() == Album(title: "One"))
        let request = try NetworkRequest(url: url)
        #expect(try await Inheriting(request: request, urlSession: unnamed) { $0.status }.run() == 200)
        #expect(try await Inheriting(request: request, urlSession: unnamed) { $1.statusCode }.run() == 200)
    }

    @Test func `without an evaluator, the result type determines the evaluation`() async throws {
        let (url, nothing) = (address("/album"), address("/nothing"))
        let json = #"{"title":"One"}"#
        #expect(try await NetworkDataOperation<Data>(url: url, urlSession: session).run() == Data(json.utf8))
        #expect(try await NetworkDataOperation<String>(url: url, urlSession: session).run() == json)
        #expect(try await NetworkDataOperation<NoContent>(url: nothing, urlSession: session).run() == NoContent())
        #expect(try await NetworkDataOperation<Album?>(url: nothing, urlSession: session).run() == nil)
        #expect(try await NetworkDataOperation<Data?>(url: nothing, urlSession: session).run() == nil)
        #expect(try await NetworkDataOperation<Album?>(url: url, urlSession: session).run() == Album(title: "One"))
        let request = URLRequest(url: url)
        #expect(try await NetworkDataOperation<Album>(request: request, urlSession: session).run().title == "One")
        let checked = try NetworkRequest(url: url)
        #expect(try await NetworkDataOperation<Album>(request: checked, urlSession: session).run().title == "One")
        let upload = NetworkUploadOperation<Data>(url: url, body: .data(Data("new".utf8)), urlSession: session)
        #expect(try await upload.run() == Data("new".utf8))
        let download = NetworkDownloadOperation<URL>(url: url, urlSession: session)
        let file = try await download.run()
        #expect(try Data(contentsOf: file) == Data(json.utf8))
        try FileManager.default.removeItem(at: file)
    }

    @Test("A result type without a default evaluation fails before anything is sent, unless there is an evaluator")
    func noEvaluator() async throws {
        let url = address("/album")
        let errors = [
            await failure(of: NetworkDataOperation<Opaque>(url: url, urlSession: session)),
            await failure(of: NetworkUploadOperation<Opaque>(url: url, body: .none, urlSession: session)),
            await failure(of: NetworkDownloadOperation<Album>(url: url, urlSession: session)),
        ]
        for error in errors {
            #expect(error?.code == .evaluationFailed)
            #expect(error?.phase == .checking)
            #expect(error?.message.contains("evaluate(result:head:)") == true)
        }
        #expect(session.requests.isEmpty)
        // With a subclass, the error is known only when the response has arrived.
        let late = await failure(of: Inheriting<Opaque>(url: url, urlSession: session))
        #expect(late?.code == .evaluationFailed)
        #expect(late?.phase == .evaluating)
    }

    @Test func `a hook, an evaluator and a rule get the response without the type of Foundation`() async throws {
        struct Refused: Error {}
        let url = address("/album")
        #expect(try await ByHead(url: url, urlSession: session).run().count == 200)
        let types = NetworkDataOperation(url: url, urlSession: session) { response in
            "\(response.status) \(response.headers["Content-Type"] ?? "none") \(response.body.count)"
        }
        #expect(try await types.validate { if $0.status != 200 { throw Refused() } }.run().hasSuffix(" 15"))
        let refused = NetworkDataOperation<Data>(url: url, urlSession: session)
            .validate { response in if response.body.count == 15 { throw Refused() } }
        let error = await failure(of: refused)
        #expect(error?.code == .responseRefused)
        #expect(error?.cause is Refused)
    }

    @Test
    func `a base adds its session, missing headers, rules and options to an operation of any class`() async throws {
        let shop = NetworkBase(address("/")) {
            $0.session = session
            $0.headers = ["X-Client": "shop", "X-Own": "the base's"]
            $0.options.timeouts.total = .seconds(7)
            $0.rules.statuses = .only(200)
        }
        let request = try NetworkRequest(url: address("/album"), headers: ["X-Own": "mine"])
        #expect(try await Inheriting<Album>(request: request).using(shop).run() == Album(title: "One"))
        let file = try await Cover(of: shop).run()
        try FileManager.default.removeItem(at: file)
        let upload = NetworkUploadOperation<String>(url: address("/album"), body: .data(Data("new".utf8)))
        #expect(try await upload.using(shop).run() == "new")
        #expect(session.requests.map { $0["X-Client"] } == ["shop", "shop", "shop"])
        #expect(session.requests.map { $0["X-Own"] } == ["mine", "the base's", "the base's"])
        #expect(session.requests.map(\.options.timeouts.total) == [.seconds(7), .seconds(7), .seconds(7)])
        let empty = NetworkDataOperation<Data>(url: address("/nothing")).using(shop)
        #expect(await failure(of: empty)?.code == .unacceptableStatus)
    }

    @Test func `a base sends no headers to another origin, and replaces no session of an operation`() async throws {
        let (session, own) = (makeShop(), makeShop())
        let shop = NetworkBase(address("/")) {
            $0.session = session
            $0.headers = ["Authorization": "secret"]
        }
        let elsewhere = NetworkDataOperation<Data>(url: address("/album", host: "other.test")).using(shop)
        _ = try await elsewhere.run()
        #expect(session.requests.map { $0["Authorization"] } == [nil])
        _ = try await NetworkDataOperation<Data>(url: address("/album"), urlSession: own).using(shop).run()
        #expect(own.requests.map { $0["Authorization"] } == ["secret"])
        #expect(session.requests.count == 1)
    }

    @Test func `a hook that sends a request to another origin does not send the headers of the base`() async throws {
        let shop = NetworkBase(address("/")) {
            $0.session = session
            $0.headers = ["Authorization": "secret ", "X-Own": "the base's"]
            $0.headers.add("X-Api-Key", "first")
            $0.headers.add("X-Api-Key", "second")
        }
        let prepared = Mirrored(url: address("/album")).using(shop)
        prepared.preparedHost = "other.test"
        let adapted = Mirrored(url: address("/album")).using(shop)
        adapted.adaptedHost = "other.test"
        let home = Mirrored(url: address("/album")).using(shop)
        for operation in [prepared, adapted, home] { _ = try await operation.run() }
        #expect(session.requests.map { $0["Authorization"] } == [nil, nil, "secret"])
        #expect(session.requests.map { $0["X-Own"] } == ["the hook's", "the hook's", "the hook's"])
        #expect(session.requests.map { $0.headers.contains("X-Api-Key") } == [false, false, true])
        // The same applies to a subclass of an endpoint operation.
        let endpoint = MirroredEndpoint(.get("album"), at: shop)
        #expect(try await endpoint.run() == Album(title: "One"))
        #expect(session.requests.last?["Authorization"] == nil && session.requests.last?["X-Own"] == nil)
        #expect(session.requests.last?.url.host() == "other.test")
    }

    @Test func `a base sends the credential of a realm without origins to no other origin`() async throws {
        let other = try #require(URL(string: "https://named.test"))
        func base(_ change: (inout AuthenticationOptions) -> Void = { _ in }) -> NetworkBase {
            var options = AuthenticationOptions()
            change(&options)
            let authenticator = Authenticator("token", options: options) { token, request in
                try request.with("Authorization", token)
            } refresh: { _ in
                "token"
            }
            return NetworkBase(address("/")) {
                $0.session = session
                $0.authenticate(by: authenticator)
            }
        }
        for (host, base) in [
            ("shop.test", base()), ("other.test", base()), ("named.test", base { $0.origins = [other] }),
            ("shop.test", base { $0.origins = [other] }),
        ] {
            _ = try await NetworkDataOperation<Data>(url: address("/album", host: host)).using(base).run()
        }
        let prepared = Mirrored(url: address("/album")).using(base())
        prepared.preparedHost = "other.test"
        _ = try await prepared.run()
        #expect(session.requests.map { $0["Authorization"] } == ["token", nil, "token", nil, nil])
    }

    @Test func `the last of several bases is used`() async throws {
        let (first, second) = (makeShop(), makeShop())
        let bases = [first, second].map { session in
            NetworkBase(address("/")) {
                $0.session = session
                $0.headers = ["X-Client": session === first ? "first" : "second"]
            }
        }
        let operation = NetworkDataOperation<Data>(url: address("/album")).using(bases[0]).using(bases[1])
        _ = try await operation.run()
        #expect(first.requests.isEmpty && second.requests.map { $0["X-Client"] } == ["second"])
    }

    @Test func `a base that is applied after the start has no effect and logs a notice`() async throws {
        let session = makeShop(), name = "OwnOperationTests.baseAfterStart"
        let operation = NetworkDataOperation<Data>(url: address("/album"), urlSession: session)
        operation.name = name
        let notices = NoticeTaker.recorder(for: name)
        _ = try await operation.run()
        operation.using(NetworkBase(address("/")) { $0.headers = ["X-Client": "late"] })
        #expect(notices.events.map(\.kind) == [.timing])
        #expect(notices.events.first?.message.hasPrefix("The base was set after the start") == true)
    }

    @Test func `the evaluation of the superclass uses the headers that an override passes to it`() async throws {
        let session = StubSession()
        session.route("GET", "/album") { _ in
            .data(Data([0xE9]), type: "text/plain; charset=utf-8")
        }
        #expect(try await Latin(url: address("/album"), urlSession: session).run() == "\u{E9}")
    }

    @Test
    func `a subclass may pass an evaluator with one parameter to the initializer without a request`() async throws {
        #expect(try await Counting(address("/album"), session).run() == 15)
    }
}
