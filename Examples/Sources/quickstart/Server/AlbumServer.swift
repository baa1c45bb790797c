// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit

/// The album service in this process, whose tokens expire and which sometimes fails or responds slowly.
final class AlbumServer: Sendable {
    /// The number of albums.
    static let albumCount = 16
    /// The number of bytes in a recording.
    static let recordingSize = 8_000_000

    private let server: LoopbackServer
    /// The object that creates and checks tokens.
    let desk = TokenDesk()

    init() throws {
        var options = LoopbackServer.Options()
        // With small buffers, the system does not accept a whole upload immediately.
        options.receiveBufferSize = 64 << 10
        server = try LoopbackServer(options)
        addSessions()
        addAlbums()
        addCharts()
        addTransfers()
    }

    /// The URL of the service.
    var url: URL { server.url("/") }

    /// The number of received requests.
    var requestCount: Int { server.counts.heads }

    /// Returns the number of received requests to a path.
    func requestCount(_ path: String) -> Int { server.requests.count { $0.path == path } }

    /// Waits until the service has received a number of requests.
    func requests(atLeast count: Int) async { _ = await server.heads(atLeast: count) }

    /// Waits until no request or response is in progress.
    func isAtRest() async { await server.counts { $0.openConnections == $0.idleConnections } }

    func stop() async { await server.stopped() }
}

// Responses.
extension AlbumServer {
    private func addSessions() {
        server.route("POST", "/session") { [desk] in desk.signIn($0) }
        server.route("POST", "/session/refresh") { [desk] _ in desk.refresh() }
    }

    /// Adds a route that requires a valid token and responds after a short delay, as over a network.
    private func guarded(
        _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        let challenge = LoopbackChallenge.bearer(realm: "albums") { [desk] in desk.use($0) }
        server.route("GET", path) { request in
            challenge.answer(to: request, granting: answer(request).after(.milliseconds(60)))
        }
    }

    private func addAlbums() {
        guarded("/albums") { _ in
            .json("[" + (1...Self.albumCount).map { Self.album($0) }.joined(separator: ",") + "]")
        }
        guarded("/albums/*") { request in
            let parts = request.path.split(separator: "/")
            guard parts.count > 1, let id = Int(parts[1]), (1...Self.albumCount).contains(id) else {
                return .status(404)
            }
            guard parts.last == "songs" else { return .json(Self.album(id)) }
            let songs = (1...5).map { #"{"title":"Side \#(id), number \#($0)","seconds":\#(180 + $0)}"# }
            return .json("[" + songs.joined(separator: ",") + "]")
        }
    }

    private static func album(_ id: Int) -> String {
        let titles = ["Kind of Blue", "Blue Train", "Mingus Ah Um", "Time Out"]
        return #"{"id":\#(id),"title":"\#(titles[(id - 1) % 4])","year":\#(1950 + id)}"#
    }

    /// Adds a route that responds with an overload error, then with an incomplete response, and then with the charts.
    private func addCharts() {
        let charts = LoopbackAnswer.json(#"["Take Five","So What","Blue Train"]"#)
        server.route("GET", "/charts", inTurn: .status(503), charts.cut(at: 90), charts)
    }

    /// Adds transfers that are slow, so that their progress is visible.
    private func addTransfers() {
        server.routeEarly("POST", "/albums") { request in
            let answer = #"{"id":17,"title":"A Love Supreme","year":1965}"#
            return LoopbackAnswer(
                .readSlowly(size: 64 << 10, every: .milliseconds(12)), .awaitBody, .readOn,
                .head(201, ["Content-Type": "application/json", "Content-Length": "\(answer.utf8.count)"]),
                .send(answer))
        }
        let pieces = 50
        let block = (0..<256).map { UInt8($0) }
        server.route("GET", "/albums/1/recording") { _ in
            var steps: [LoopbackStep] = [
                .head(
                    200,
                    [
                        "Content-Type": "audio/flac", "Content-Length": "\(Self.recordingSize)", "ETag": "\"take-1\"",
                    ])
            ]
            for _ in 0..<pieces {
                steps += [.send(repeating: block, count: Self.recordingSize / pieces), .pause(.milliseconds(30))]
            }
            return LoopbackAnswer(steps: steps)
        }
    }
}
