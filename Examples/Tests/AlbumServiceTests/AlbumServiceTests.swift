// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@testable import quickstart

/// Tests the client of the quickstart as an app would, without a network and without delays.
@Suite(.timeLimit(.minutes(2)))
struct AlbumServiceTests {
    private let session = StubSession()
    private let clock = ManualClock()

    /// Returns a service after signing in.
    private func service() async throws -> AlbumService {
        session.route("POST", "/session") { _ in .json(#"{"access":"one","refresh":"r"}"#) }
        session.route("POST", "/session/refresh") { _ in .json(#"{"access":"two","refresh":"r"}"#) }
        var base = NetworkBase(try #require(URL(string: "https://albums.example")))
        base.session = session
        var service = try await AlbumService.signIn("ada", "open sesame", at: base)
        service.base.retry?.budget = nil
        service.base.retry?.chance = { 1 }
        return service
    }

    @Test func `after signing in, every request contains the token`() async throws {
        session.route("GET", "/albums") { _ in .json(encoding: [Album(id: 1, title: "Kind of Blue", year: 1959)]) }
        let list = AlbumList(from: try await service())
        list.start()
        try await list.expectSuccess([Album(id: 1, title: "Kind of Blue", year: 1959)])
        #expect(session.requests.last?["Authorization"] == "Bearer one")
        #expect(session.requests.first?.text.contains("open sesame") == true)
    }

    @Test func `an expired token is refreshed once for all requests`() async throws {
        session.route("GET", "/albums/*") { request in
            guard request["Authorization"] == "Bearer two" else { return .status(401) }
            return .json(encoding: Album(id: 1, title: "Blue Train", year: 1958))
        }
        let service = try await service()
        let albums = (1...5).map { AlbumDetails($0, from: service) }
        for album in albums { album.start() }
        for album in albums { #expect(try await album.expectSuccess().title == "Blue Train") }
        #expect(session.requests.count { $0.url.path == "/session/refresh" } == 1)
        #expect(albums[0].failedAttempts.map(\.status) == [401])
    }

    @Test func `failed requests are repeated with growing pauses`() async throws {
        session.route("GET", "/charts", inTurn: .status(502), .failure(.connectionLost), .json(#"["So What"]"#))
        let charts = try await service().charts()
        charts.clock = clock
        charts.start()
        for _ in 0..<2 {
            await clock.pending(atLeast: 1)
            clock.advanceToNext()
        }
        try await charts.expectSuccess(["So What"])
        #expect(charts.story == "502 → 500 ms → connectionLost → 1 s → success")
        #expect(clock.pendingCount == 0)
    }

    @Test func `without a network an operation waits, and resumes when there is one`() async throws {
        let network = ManualConnectivity(.unsatisfied)
        let offlineWaiting = OfflineWaiting(monitor: network, clock: clock, chance: { 0 })
        session.route("GET", "/charts") { _ in .json("[]") }
        var service = try await service()
        service.base.offline = OfflinePolicy(waiting: offlineWaiting)
        let charts = service.charts()
        charts.clock = clock
        charts.start()
        try await waitUntil("it waits for the network") { charts.waitReason?.kind == .network }
        #expect(session.requests.count { $0.url.path == "/charts" } == 0)
        network.write(.satisfied)
        await clock.pending(atLeast: 1)
        clock.advance(by: .seconds(60))
        try await charts.expectSuccess([])
    }

    @Test func `an interrupted recording resumes where it stopped`() async throws {
        let server = try LoopbackServer()
        let recording = LoopbackResource(.pattern(count: 200_000), etag: "\"one\"")
        server.route("GET", "/albums/1/recording") { request in
            let answer = recording.answer(to: request)
            return request["Range"] == nil ? answer.cut(at: 100_000) : answer
        }
        server.route("POST", "/session") { _ in .json(#"{"access":"one","refresh":"r"}"#) }
        var service = try await AlbumService.signIn("ada", "open sesame", at: NetworkBase(server.url()))
        service.base.retry?.backoff = .exponential(from: .milliseconds(1))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("recording-\(UUID())")
        defer { try? FileManager.default.removeItem(at: file) }
        let download = service.recording(of: Album(id: 1, title: "", year: 0), to: file)
        download.start()
        try await download.expectSuccess(file)
        #expect(download.failedAttempts.map(\.code) == [.truncatedBody])
        #expect(try Data(contentsOf: file).elementsEqual(TestPattern.bytes(count: 200_000)))
    }

    @Test func `all requests are recorded once, and played back without a server`() async throws {
        session.route("GET", "/charts") { _ in .json(#"["So What"]"#) }
        _ = try await service()
        let recorder = RecordingSession(over: session)
        func course(_ session: any NetworkSession) async throws -> [String] {
            var base = NetworkBase(try #require(URL(string: "https://albums.example")))
            base.session = session
            return try await AlbumService.signIn("ada", "open sesame", at: base).charts().run()
        }
        let live = try await course(recorder)
        let data = try recorder.recording.data()
        #expect(!String(decoding: data, as: UTF8.self).contains("open sesame"))
        let player = PlaybackSession(try SessionRecording(data))
        #expect(try await course(player) == live)
        try player.expectAllUsed()
    }
}
