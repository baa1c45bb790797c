// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if SWIFT_5_MODE
    import CatalogEndpointsSwift5
    import CatalogScreenSwift5
    import CatalogServiceSwift5
#else
    import CatalogEndpoints
    import CatalogScreen
    import CatalogService
#endif

/// A service without a network, which accepts only the token "new".
///
/// The response to any other token has status 200, and its body says that the token has expired.
private struct CatalogBench {
    let session = StubSession()
    let refreshes = EventRecorder<String>()
    let blueTrain = Album(id: 1, title: "Blue Train")

    func catalog(token: String = "new") throws -> Catalog {
        let url = try #require(URL(string: "http://catalog.example/v1"))
        return Catalog(at: url, session: session, token: token) { [refreshes] in
            refreshes.record("new")
            return "new"
        }
    }

    func route(_ method: String, _ path: String, _ answer: StubAnswer) {
        session.route(method, "/v1/" + path) {
            $0["Authorization"] == "Bearer new" ? answer : .json(#"{"error": "token expired"}"#)
        }
    }

    /// The requests that were sent, each as one line.
    var sent: [String] {
        session.requests.map { request in
            [request.method, request.url.path(), request.url.query(), request.text].compactMap(\.self)
                .filter { !$0.isEmpty }.joined(separator: " ")
        }
    }

    /// Returns a destination for a cover, in a folder that the test removes.
    func makePlace() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "catalog-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder.appending(path: "cover.png")
    }
}

/// Tests the endpoint classes: the requests that they send, and the results that they return.
@Suite(.timeLimit(.minutes(1)))
struct CatalogEndpointTests {
    private let bench = CatalogBench()

    @Test func `the list has the albums of the body and the count of a header`() async throws {
        bench.route("GET", "albums", .json(encoding: [bench.blueTrain]).with("X-Total-Count", "7"))
        let list = try await ListAlbums(bench.catalog()).run()
        #expect(list.albums == [bench.blueTrain] && list.total == 7)
        #expect(bench.sent == ["GET /v1/albums"])
        #expect(bench.session.requests.map { $0["X-Client"] } == ["catalog/1"])
    }

    @Test func `one album is decoded`() async throws {
        bench.route("GET", "albums/1", .json(encoding: bench.blueTrain))
        #expect(try await GetAlbum(1, in: bench.catalog()).run() == bench.blueTrain)
    }

    @Test func `an album is created by a POST of JSON`() async throws {
        bench.route("POST", "albums", .json(encoding: bench.blueTrain, status: 201))
        #expect(try await CreateAlbum("Blue Train", in: bench.catalog()).run() == bench.blueTrain)
        #expect(bench.sent == [#"POST /v1/albums {"title":"Blue Train"}"#])
        #expect(bench.session.requests.map { $0["Content-Type"] } == ["application/json"])
    }

    @Test func `a deletion has no result`() async throws {
        bench.route("DELETE", "albums/1", .status(204))
        try await DeleteAlbum(1, in: bench.catalog()).run()
        #expect(bench.sent == ["DELETE /v1/albums/1"])
    }

    @Test func `the text of a search is encoded`() async throws {
        bench.route("GET", "search", .json(encoding: [bench.blueTrain]))
        #expect(try await SearchAlbums("C++ & more", in: bench.catalog()).run() == [bench.blueTrain])
        #expect(bench.sent == ["GET /v1/search limit=20&q=C%2B%2B%20%26%20more"])
    }

    @Test func `a cover is uploaded from its file`() async throws {
        bench.route("PUT", "albums/1/cover", .json(encoding: bench.blueTrain))
        let file = try bench.makePlace()
        defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
        try Data("a picture".utf8).write(to: file)
        #expect(try await UploadCover(file, of: 1, in: bench.catalog()).run() == bench.blueTrain)
        #expect(bench.sent == ["PUT /v1/albums/1/cover a picture"])
        #expect(bench.session.requests.map { $0["Content-Type"] } == ["image/png"])
    }

    @Test func `a cover is downloaded to its destination, even if the token has expired`() async throws {
        bench.route("GET", "albums/1/cover", .data(Data("a picture".utf8), type: "image/png"))
        let place = try bench.makePlace()
        defer { try? FileManager.default.removeItem(at: place.deletingLastPathComponent()) }
        let file = try await DownloadCover(of: 1, to: place, in: bench.catalog(token: "old")).run()
        #expect(file.path() == place.path())
        #expect(try String(contentsOf: place, encoding: .utf8) == "a picture")
        #expect(bench.sent.count == 2 && bench.refreshes.events.count == 1)
    }

    @Test func `an expired token is refreshed once for all requests`() async throws {
        bench.route("GET", "albums", .json("[]"))
        bench.route("GET", "albums/1", .json(encoding: bench.blueTrain))
        bench.route("POST", "albums", .json(encoding: bench.blueTrain))
        bench.route("DELETE", "albums/1", .status(204))
        let catalog = try bench.catalog(token: "old")
        async let list = ListAlbums(catalog).run()
        async let album = GetAlbum(1, in: catalog).run()
        async let created = CreateAlbum("Blue Train", in: catalog).run()
        async let deleted = DeleteAlbum(1, in: catalog).run()
        #expect(try await (list.albums, album, created) == ([], bench.blueTrain, bench.blueTrain))
        _ = try await deleted
        #expect(bench.refreshes.events == ["new"])
    }

    @Test(arguments: [200, 404]) func `an error of the service is read with any status`(status: Int) async throws {
        bench.route("GET", "albums/2", .json(#"{"error": "There is no such album."}"#, status: status))
        let operation = GetAlbum(2, in: try bench.catalog())
        await #expect(throws: OperationFailure<NetworkError>.self) { try await operation.run() }
        #expect(operation.networkError?.catalogProblem == CatalogProblem(error: "There is no such album."))
        #expect(operation.networkError?.status == status)
    }

    @Test func `a subclass without a path fails before it sends anything`() async throws {
        final class Incomplete: CatalogOperation<Album>, @unchecked Sendable {}
        let operation = Incomplete(try bench.catalog())
        await #expect(throws: OperationFailure<NetworkError>.self) { try await operation.run() }
        #expect(operation.networkError?.code == .preparationFailed)
        #expect(operation.networkError?.catalogProblem?.error == "Incomplete must override path.")
        #expect(bench.session.requests.isEmpty)
    }
}

/// Tests the screen without a window.
@MainActor
@Suite(.timeLimit(.minutes(1)))
struct CatalogScreenTests {
    private let bench = CatalogBench()
    private let screen: CatalogScreen

    init() throws { screen = CatalogScreen(try bench.catalog()) }

    /// Waits until the screen has a certain state, and returns all states until then.
    @discardableResult
    private func states(until last: CatalogScreen.State) async -> [CatalogScreen.State] {
        var states = [screen.state]
        guard screen.state != last else { return states }
        await withCheckedContinuation { continuation in
            screen.onChange = { [weak screen] state in
                states.append(state)
                guard state == last else { return }
                screen?.onChange = nil
                continuation.resume()
            }
        }
        return states
    }

    @Test func `the screen shows, adds, changes and deletes albums`() async throws {
        let giantSteps = Album(id: 2, title: "Giant Steps")
        let changed = Album(id: 2, title: "Giant Steps, with a cover")
        bench.route("GET", "albums", .json(encoding: [bench.blueTrain]))
        bench.route("POST", "albums", .json(encoding: giantSteps))
        bench.route("PUT", "albums/2/cover", .json(encoding: changed))
        bench.route("DELETE", "albums/1", .status(204))
        screen.showAll()
        #expect(screen.state == .loading)
        await states(until: .loaded([bench.blueTrain]))
        screen.add("Giant Steps")
        await states(until: .loaded([bench.blueTrain, giantSteps]))
        let file = try bench.makePlace()
        defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
        try Data("a picture".utf8).write(to: file)
        screen.sendCover(file, of: giantSteps)
        await states(until: .loaded([bench.blueTrain, changed]))
        screen.delete(bench.blueTrain)
        await states(until: .loaded([changed]))
    }

    @Test func `the screen shows the error message of the service`() async {
        bench.route("GET", "albums", .json(#"{"error": "Closed on Sundays."}"#, status: 503))
        screen.showAll()
        await states(until: .failed("Closed on Sundays."))
    }

    @Test func `only the result of the last search is shown`() async throws {
        let (first, second) = (Gate(), Gate())
        bench.route("GET", "albums/1", .json(encoding: bench.blueTrain))
        bench.session.route("GET", "/v1/search") { [bench] request in
            request.url.query()?.contains("q=old") == true
                ? .json("[]").after(first) : .json(encoding: [bench.blueTrain]).after(second)
        }
        var states: [CatalogScreen.State] = []
        screen.onChange = { states.append($0) }
        screen.search(for: "old")
        screen.search(for: "blue")
        first.open()
        // Another request returns its result after the first search would have returned.
        _ = try await GetAlbum(1, in: bench.catalog()).run()
        second.open()
        states += await self.states(until: .loaded([bench.blueTrain]))
        #expect(!states.contains(.loaded([])))
    }

    @Test func `nothing changes after the screen was closed`() async {
        let gate = Gate()
        bench.route("GET", "albums", .json(encoding: [bench.blueTrain]).after(gate))
        screen.showAll()
        screen.close()
        gate.open()
        bench.route("GET", "search", .json("[]"))
        screen.search(for: "later")
        let states = await states(until: .loaded([]))
        #expect(!states.contains(.loaded([bench.blueTrain])))
    }
}
