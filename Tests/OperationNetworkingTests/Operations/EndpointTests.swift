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

private final class Label: Decodable, Sendable { let name: String }

private enum Shop {
    static func albums(page: Int) -> Endpoint<[Album]> { .get("albums", ["page": page, "genre": nil as String?]) }
    static func add(_ album: Album) -> Endpoint<NoContent> { .post("albums", json: album) }
}

private class ShopOperation<ResultType: Sendable>: EndpointOperation<ResultType>, @unchecked Sendable {
    let bench: OperationBench

    init(_ bench: OperationBench) {
        self.bench = bench
        super.init()
    }

    override var base: NetworkBase { bench.base }
}

private final class AlbumList: ShopOperation<[Album]>, @unchecked Sendable {
    let page: Int

    init(_ bench: OperationBench, page: Int) {
        self.page = page
        super.init(bench)
    }

    override var endpoint: Endpoint<[Album]> { .get("albums", ["page": page]) }
}

private final class PageOperation: EndpointOperation<Album>, @unchecked Sendable {
    override func evaluate(result: Data, response: HTTPURLResponse) throws -> Album {
        let album = try super.evaluate(result: result, response: response)
        return Album(title: "\(album.title), \(response.value(forHTTPHeaderField: "X-Page") ?? "none")")
    }
}

private struct Page: Error { let number: String }

extension OperationBench {
    /// A base at `/api` of the server, whose URL contains a key.
    var base: NetworkBase {
        var base = NetworkBase(server.url("/api?key=1"))
        base.session = session
        base.callbackQueue = callbacks
        base.headers["X-Client"] = "test"
        return base
    }
}

@Suite("Endpoints", .timeLimit(.minutes(3)))
struct EndpointTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
    }

    @Test func `an endpoint describes the request, and the base adds its URL and headers`() async throws {
        bench.server.route("GET", "/api/albums") { _ in .json(#"[{"title":"One"}]"#) }
        bench.server.route("POST", "/api/albums") { _ in .status(201) }
        #expect(try await bench.base.operation(for: Shop.albums(page: 2)).run() == [Album(title: "One")])
        #expect(try await bench.base.operation(for: Shop.add(Album(title: "Two"))).run() == NoContent())
        let requests = bench.server.requests
        #expect(requests[0].target == "/api/albums?key=1&page=2")
        #expect(requests[0]["Accept"] == "application/json")
        #expect(requests[0]["X-Client"] == "test")
        #expect(requests[1].text == #"{"title":"Two"}"#)
        #expect(requests[1]["Content-Type"] == "application/json")
    }

    @Test
    func `a base that is configured in its initializer is a constant for closures on other threads`() async throws {
        bench.server.route("GET", "/one") { .text($0["X-Client"] ?? "") }
        let base = NetworkBase(bench.server.url("/")) { base in
            base.session = bench.session
            base.headers["X-Client"] = "set up"
        }
        let group = GroupOperation.map([1, 2], width: 2) { _ in base.get("one", as: String.self) }
        #expect(try await group.run() == ["set up", "set up"])
    }

    @Test func `a subclass for a service and an endpoint behaves like an endpoint value`() async throws {
        bench.server.route("GET", "/api/albums") { _ in .json(#"[{"title":"One"}]"#) }
        #expect(try await AlbumList(bench, page: 3).run() == [Album(title: "One")])
        #expect(bench.server.requests[0].query == "key=1&page=3")
    }

    @Test func `one-line calls support models, dictionaries, data, text and empty results`() async throws {
        let base = bench.base
        bench.server.route("/api/*") { request in
            switch request.path {
            case "/api/map": .json(#"{"a":{"title":"One"}}"#)
            case "/api/label": .json(#"{"name":"Blue"}"#)
            case "/api/empty": .status(204)
            default: .json("\"\(request.method) \(request.path) \(request.text.replacing("\"", with: "'"))\"")
            }
        }
        #expect(try await base.get("map", as: [String: Album].self).run() == ["a": Album(title: "One")])
        #expect(try await base.get("label", as: Label.self).run().name == "Blue")
        #expect(try await base.get("label", as: Data.self).run() == Data(#"{"name":"Blue"}"#.utf8))
        #expect(try await base.get("label", as: String.self).run() == #"{"name":"Blue"}"#)
        #expect(try await base.get("empty", as: NoContent.self).run() == NoContent())
        #expect(await failure(of: base.get("empty", as: Album.self))?.code == .emptyResponse)
        #expect(
            try await base.send([1, 2], to: "x", by: "PUT", as: String.self).run() == "\"PUT /api/x [1,2]\"")
        #expect(try await base.delete("x/7", as: String.self).run() == "\"DELETE /api/x/7 \"")
        let form = Endpoint<String>.post("form", body: try .form(["a": 1, "b": "x y", "c": nil]))
        #expect(try await base.operation(for: form).run() == "\"POST /api/form a=1&b=x+y\"")
    }

    @Test func `a download over a base uses its URL and headers, and saves to the destination`() async throws {
        bench.server.route("GET", "/api/albums/7/cover") {
            LoopbackResource(.pattern(count: 300_000), etag: "\"one\"").answer(to: $0)
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("endpoints-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            let operation = bench.watched(bench.base.download("albums/7/cover", ["size": 2], to: .folder(folder)))
            let told = EventRecorder<TransferProgress>()
            operation.downloadProgressHandler = { told.record($0) }
            let file = try await operation.run()
            #expect(file.deletingLastPathComponent().path == folder.path)
            #expect(TestPattern.matches(Array(try Data(contentsOf: file))))
            await bench.settled()
            #expect(told.events.last?.completedBytes == 300_000)
            let temporary = try await bench.base.download("albums/7/cover").run()
            #expect(try Data(contentsOf: temporary).count == 300_000)
            try FileManager.default.removeItem(at: temporary)
            #expect(await failure(of: bench.base.download("../secrets"))?.code == .invalidURL)
        }
        #expect(bench.server.requests[0].query == "key=1&size=2")
        #expect(bench.server.requests[0]["X-Client"] == "test")
        #expect(bench.server.requests[0]["Accept"] == "*/*")
        try await bench.checkNothingIsLeft()
    }

    @Test func `a path is encoded and cannot leave the base`() async throws {
        bench.server.route("/api/*") { .json("\"\($0.target)\"") }
        #expect(try await bench.base.get("a b?c#d/é", as: String.self).run() == "\"/api/a%20b%3Fc%23d/%C3%A9?key=1\"")
        #expect(await failure(of: bench.base.get("../admin", as: String.self))?.code == .invalidURL)
        #expect(bench.server.requests.count == 1)
    }

    @Test func `if JSON is expected, another response is rejected, and the error contains its body`() async throws {
        bench.server.route("GET", "/api/page") { _ in .text("<html>captive portal</html>") }
        let error = await failure(of: bench.base.get("page", as: Album.self))
        #expect(error?.code == .unacceptableContentType)
        #expect(error?.bodyPrefix == Data("<html>captive portal</html>".utf8))
    }

    @Test func `data, text and empty results accept any content type, unless a header restricts it`() async throws {
        let image = Data([0x89, 0x50, 0x4E, 0x47])
        bench.server.route("GET", "/api/cover") { _ in .bytes(Array(image)).with("Content-Type", "image/png") }
        bench.server.route("GET", "/api/page") { _ in .text("Hello") }
        bench.server.route("DELETE", "/api/page") { _ in .text("OK") }
        #expect(try await bench.base.get("cover", as: Data.self).run() == image)
        #expect(try await bench.base.get("page", as: String.self).run() == "Hello")
        #expect(try await bench.base.delete("page", as: NoContent.self).run() == NoContent())
        #expect(bench.server.requests.map { $0.values("Accept") } == [["*/*"], ["*/*"], ["*/*"]])
        let strict = with(bench.base) { $0.headers["Accept"] = "image/*" }
        #expect(try await strict.get("cover", as: Data.self).run() == image)
        #expect(await failure(of: strict.get("page", as: String.self))?.code == .unacceptableContentType)
        let plain = Endpoint<String>.get("page").header("Accept", "text/plain")
        #expect(try await strict.operation(for: plain).run() == "Hello")
    }

    @Test func `an optional model is nil without a body, and an endpoint can provide an empty result`() async throws {
        bench.server.route("GET", "/api/none") { _ in .status(204) }
        bench.server.route("GET", "/api/one") { _ in .json(#"{"title":"One"}"#) }
        #expect(try await bench.base.get("none", as: Album?.self).run() == nil)
        #expect(try await bench.base.get("one", as: Album?.self).run() == Album(title: "One"))
        var endpoint = Endpoint<Album>.get("none")
        endpoint.emptyResult = { Album(title: "None") }
        #expect(try await bench.base.operation(for: endpoint).run() == Album(title: "None"))
        endpoint.path = "one"
        #expect(try await bench.base.operation(for: endpoint).run() == Album(title: "One"))
    }

    @Test(arguments: [LoopbackAnswer.bytes([]), .chunks([])])
    func `an empty body has no wrong content type`(answer: LoopbackAnswer) async throws {
        bench.server.route("/api/a") { _ in answer.with("Content-Type", "text/html") }
        #expect(try await bench.base.send([1], to: "a", by: "PUT", as: Album?.self).run() == nil)
        let operation = bench.base.get("a", as: Album.self)
        operation.emptyResult = { Album(title: "None") }
        #expect(try await operation.run() == Album(title: "None"))
        let endpoint = with(Endpoint<Album>.get("a")) { $0.emptyResult = { Album(title: "None") } }
        #expect(try await bench.base.operation(for: endpoint).run() == Album(title: "None"))
        #expect(await failure(of: bench.base.get("a", as: Album.self))?.code == .emptyResponse)
    }

    @Test func `custom decoding gets the response, and the operation keeps it after the end`() async throws {
        bench.server.route("GET", "/api/one") { _ in LoopbackAnswer.json(#"{"title":"One"}"#).with("X-Page", "7") }
        var endpoint = Endpoint<Album>.get("one")
        endpoint.decode = { _, response, base in
            Album(title: "\(response.value(forHTTPHeaderField: "X-Page") ?? "none") \(base.url.path)")
        }
        #expect(try await bench.base.operation(for: endpoint).run() == Album(title: "7 /api"))
        #expect(try await PageOperation(.get("one"), at: bench.base).run() == Album(title: "One, 7"))
        let checked = bench.base.get("one", as: Album.self)
        checked.validate { _, response in
            #expect(response.value(forHTTPHeaderField: "X-Page") == "7")
        }
        #expect(try await checked.run() == Album(title: "One"))
        let plain = bench.base.get("one", as: Album.self)
        #expect(try await plain.run() == Album(title: "One"))
        #expect(plain.response?.statusCode == 200 && plain.response === plain.response)
        #expect(plain.response?.value(forHTTPHeaderField: "X-Page") == "7")
        var rules = ResponseRules()
        rules.decodeError = { _, response in Page(number: response.value(forHTTPHeaderField: "X-Page") ?? "") }
        bench.server.route("GET", "/api/gone") { _ in LoopbackAnswer.status(410).with("X-Page", "7") }
        let gone = bench.base.get("gone", as: Album.self)
        gone.responseRules = rules
        await #expect(throws: OperationFailure<NetworkError>.self) { try await gone.run() }
        #expect((gone.outcome?.error?.apiError as? Page)?.number == "7")
    }

    @Test func `optional data and text accept any content type, and are nil without a body`() async throws {
        bench.server.route("GET", "/api/none") { _ in .status(204) }
        bench.server.route("GET", "/api/page") { _ in .text("Hello") }
        #expect(try await bench.base.get("page", as: Data?.self).run() == Data("Hello".utf8))
        #expect(try await bench.base.get("page", as: String?.self).run() == "Hello")
        #expect(try await bench.base.get("none", as: Data?.self).run() == nil)
        #expect(try await bench.base.get("none", as: String?.self).run() == nil)
        #expect(try await bench.base.get("none", as: Data.self).run() == Data())
        #expect(try await bench.base.get("none", as: NoContent?.self).run() == nil)
        #expect(bench.server.requests.allSatisfy { $0["Accept"] == "*/*" })
    }

    @Test func `one-line calls accept headers and a query with every method`() async throws {
        bench.server.route("/api/*") { .text("\($0.method) \($0.target) \($0["X-Client"] ?? "") \($0["X-One"] ?? "")") }
        let base = bench.base
        let fields: HeaderFields = ["X-One": "1", "X-Client": "other"]
        #expect(
            try await base.get("a", ["b": 2], headers: fields, as: String.self).run() == "GET /api/a?key=1&b=2 other 1")
        #expect(
            try await base.delete("a", ["b": 2], headers: fields, as: String.self).run()
                == "DELETE /api/a?key=1&b=2 other 1")
        #expect(
            try await base.send([1], to: "a", ["b": 2], headers: fields, as: String.self).run()
                == "POST /api/a?key=1&b=2 other 1")
        #expect(
            try await base.send(body: .data(Data()), to: "a", ["b": 2], by: "PUT", as: String.self).run()
                == "PUT /api/a?key=1&b=2 test ")
        let endpoints: [Endpoint<String>] = [
            .post("a", ["b": 2], json: [1]), .post("a", ["b": 2], body: .none), .put("a", ["b": 2], json: [1]),
            .sending("PUT", "a", ["b": 2], body: .data(Data())), .patch("a", ["b": 2], json: [1]),
        ]
        for endpoint in endpoints {
            #expect(try await base.operation(for: endpoint).run().contains("/api/a?key=1&b=2 test"))
        }
    }

    @Test func `the content type comes from the endpoint, the body or the base, in this order`() async throws {
        bench.server.route("POST", "/api/a") { .text("\($0["Content-Type"] ?? "none")") }
        var base = bench.base
        base.headers["content-type"] = "text/x-base"
        var form = MultipartForm(boundary: "limit")
        form.add("title", "One")
        #expect(
            try await base.send(body: .multipart(form), to: "a", as: String.self).run()
                == "multipart/form-data; boundary=limit")
        #expect(try await base.send([1], to: "a", as: String.self).run() == "application/json")
        #expect(try await base.send(body: .data(Data([1])), to: "a", as: String.self).run() == "text/x-base")
        let own: HeaderFields = ["Content-Type": "text/x-own"]
        #expect(try await base.send([1], to: "a", headers: own, as: String.self).run() == "text/x-own")
    }

    @Test func `the content type of the base is not sent without a body`() async throws {
        bench.server.route("/api/*") { .text("\($0["Content-Type"] ?? "none")") }
        let base = with(bench.base) { $0.headers["content-type"] = "text/x-base" }
        #expect(try await base.get("a", as: String.self).run() == "none")
        #expect(try await base.delete("a", as: String.self).run() == "none")
        #expect(try await base.send(body: .none, to: "a", as: String.self).run() == "none")
        let own: HeaderFields = ["Content-Type": "text/x-own"]
        #expect(try await base.delete("a", headers: own, as: String.self).run() == "text/x-own")
        let url = bench.server.url("/api/a")
        #expect(try await NetworkDataOperation<String>(url: url).using(base).run() == "none")
        let sent = try NetworkRequest("POST", url: url, body: .data(Data([1])))
        #expect(try await NetworkDataOperation<String>(request: sent).using(base).run() == "text/x-base")
    }

    @Test func `a query that contains only nil values is empty`() async throws {
        bench.server.route("/api/*") { .text($0.target) }
        var base = bench.base
        #expect(try await base.get("a", ["b": nil as Int?], as: String.self).run() == "/api/a?key=1")
        base.url = bench.server.url("/api")
        #expect(try await base.get("a", ["b": nil as Int?], as: String.self).run() == "/api/a")
    }

    @Test func `copies of a base and of an endpoint change separately`() async throws {
        bench.server.route("/*") { .text("\($0.target) \($0["X-Client"] ?? "")") }
        let (base, endpoint) = (bench.base, Endpoint<String>.get("a"))
        var (otherBase, otherEndpoint) = (base, endpoint)
        otherBase.url = bench.server.url("/other")
        otherBase.url = bench.server.url("/new?x=1")
        otherBase.headers["X-Client"] = "other"
        otherEndpoint.path = "b"
        #expect(try await otherBase.operation(for: otherEndpoint).run() == "/new/b?x=1 other")
        #expect(try await base.operation(for: endpoint).run() == "/api/a?key=1 test")
    }

    @Test func `an endpoint can be downloaded with its headers, its method and its body`() async throws {
        bench.server.route("POST", "/api/export") { .text("\($0.text) \($0["X-One"] ?? "") \($0["X-Client"] ?? "")") }
        let endpoint = Endpoint<Data>.post("export", json: ["a": 1]).header("X-One", "1")
        let file = try await bench.base.download(endpoint).run()
        #expect(try String(contentsOf: file, encoding: .utf8) == #"{"a":1} 1 test"#)
        try FileManager.default.removeItem(at: file)
    }

    @Test func `a text is decoded with the character set of its content type`() async throws {
        let bodies: [(type: String, bytes: [UInt8])] = [
            ("text/plain", [0xEF, 0xBB, 0xBF, 0xC3, 0xA9]), ("text/plain; charset=ISO-8859-1", [0xE9]),
            ("text/plain; charset=\"utf-8\"", [0xC3, 0xA9]), ("text/plain; x=y; charset=utf-16le", [0xE9, 0]),
            ("text/plain", [0xE9]), ("text/plain; charset=klingon", [0xE9]),
        ]
        bench.server.route("GET", "/api/*") { request in
            let body = bodies[Int(request.path.suffix(1)) ?? 0]
            return .bytes(body.bytes).with("Content-Type", body.type)
        }
        for number in 0..<4 {
            #expect(try await bench.base.get("\(number)", as: String.self).run() == "é", "\(bodies[number])")
        }
        for number in 4..<6 {
            #expect(await failure(of: bench.base.get("\(number)", as: String.self))?.code == .undecodableResult)
        }
    }

    @Test func `time limits of an operation override those of its base`() async throws {
        bench.server.route("GET", "/api/slow") { _ in .silence }
        let base = with(bench.base) { $0.options.timeouts.idle = .seconds(30) }
        let operation = base.get("slow", as: Album.self)
        #expect(operation.transferOptions.timeouts.idle == .seconds(30))
        operation.transferOptions.timeouts.firstByte = .milliseconds(50)
        #expect(operation.transferOptions.timeouts.idle == .seconds(30))
        #expect(await failure(of: operation)?.code == .timedOut)
        #expect(operation.request?.options.timeouts.firstByte == .milliseconds(50))
    }
}
