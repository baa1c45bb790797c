// Part of OperationKit, released under the MIT licence.
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

extension OperationBench {
    /// A base at `/api` of the server.
    fileprivate var base: NetworkBase {
        var base = NetworkBase(server.url("/api?key=1"))
        base.session = session
        base.callbackQueue = callbacks
        base.headers["X-Client"] = "test"
        return base
    }
}

@Suite("Endpoints", .timeLimit(.minutes(1)))
struct EndpointTests {
    @Test("A value says what is asked for, and the base where and how")
    func byValue() async throws {
        let bench = try OperationBench()
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

    @Test("A subclass for the service and one for the endpoint do the same")
    func bySubclass() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/api/albums") { _ in .json(#"[{"title":"One"}]"#) }
        #expect(try await AlbumList(bench, page: 3).run() == [Album(title: "One")])
        #expect(bench.server.requests[0].query == "key=1&page=3")
    }

    @Test("In one line: models, dictionaries and classes of models, data, text, nothing, by every method")
    func oneLine() async throws {
        let bench = try OperationBench()
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
        let form = Endpoint<String>.post("form", form: ["a": 1, "b": "x y", "c": nil as Int?])
        #expect(try await base.operation(for: form).run() == "\"POST /api/form a=1&b=x+y\"")
    }

    @Test("A path is encoded, and leads nowhere else")
    func paths() async throws {
        let bench = try OperationBench()
        bench.server.route("/api/*") { .json("\"\($0.target)\"") }
        #expect(try await bench.base.get("a b?c#d/é", as: String.self).run() == "\"/api/a%20b%3Fc%23d/%C3%A9?key=1\"")
        #expect(await failure(of: bench.base.get("../admin", as: String.self))?.code == .invalidURL)
        #expect(bench.server.requests.count == 1)
    }

    @Test("What is not JSON is refused where JSON is asked for")
    func contentType() async throws {
        let bench = try OperationBench()
        bench.server.route("GET", "/api/page") { _ in .text("<html>captive portal</html>") }
        #expect(await failure(of: bench.base.get("page", as: Album.self))?.code == .unacceptableContentType)
    }
}

@Suite("The log of network operations", .timeLimit(.minutes(1)))
struct NetworkLogTests {
    @Test("It shows requests and answers, and no secret unless it is asked to")
    func redaction() async throws {
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
            for plain in ["→ POST", "← 200", "anna", "X-Client: test", "✓"] {
                #expect(text.contains(plain), "\(plain) in \(text)")
            }
        }
    }

    @Test("A failure is written down with its reason, and nothing else at the lowest level")
    func failures() async throws {
        let bench = try OperationBench()
        let entries = EventRecorder<String>()
        let operation = bench.text("/nowhere?q=hidden")
        operation.addLog(NetworkLog { entries.record($0) })
        _ = await failure(of: operation)
        #expect(entries.events.count == 3)
        #expect(entries.events.last?.contains("unacceptableStatus") == true)
        #expect(!entries.events.joined().contains("hidden"))
    }
}
