// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationExporters
import OperationNetworking

/// A demonstration in chapters, in which an app uses the service and checks the results.
struct Quickstart: Sendable {
    let server: AlbumServer
    let stage: Stage
    /// The queue that runs all requests and records them.
    let queue: QueueManager
    let trace: NetworkTrace

    func run() async throws {
        let service = try await signIn()
        let albums = try await fetchModels(service)
        try await outliveToken(service, albums)
        try await retry(service)
        try await upload(service)
        try await cancelHalfWay(service)
        try await suspendDownload(service, albums[0])
    }

    /// The configuration of requests before the user signs in.
    private var plain: NetworkBase {
        var base = NetworkBase(server.url)
        base.callbackQueue = stage.queue
        base.retryHandler = { [stage] in stage.say($0) }
        base.observers.append(trace)
        return base
    }

    /// Runs a request in the queue.
    private func run<Result, Failure: Error>(_ operation: TypedOperation<Result, Failure>) async throws -> Result {
        try queue.add(operation)
        return try await operation.value
    }

    private func signIn() async throws -> AlbumService {
        try stage.begin("Sign in")
        let service = try await AlbumService.signIn("ada", "open sesame", at: plain)
        stage.say("signed in as ada; from now on, every request contains the token")
        return service
    }

    private func fetchModels(_ service: AlbumService) async throws -> [Album] {
        try stage.begin("Models, with a class or a value for each request")
        let albums = try await run(AlbumList(from: service))
        let songs = try await run(service.songs(of: albums[0]))
        stage.say("\(albums.count) albums; the first song of \(albums[0].title) is \(songs[0].title)")
        try stage.expect(
            albums.count == AlbumServer.albumCount && songs.count == 5,
            "the decoded models differ from the models of the server")
        return albums
    }

    private func outliveToken(_ service: AlbumService, _ albums: [Album]) async throws {
        try stage.begin("A token that expires during twelve requests")
        server.desk.expireToken(after: 4)
        let before = server.requestCount
        let details = albums.prefix(12).map { AlbumDetails($0.id, from: service) }
        try queue.add(details)
        for operation in details { _ = try await operation.value }
        let (requests, refreshes) = (server.requestCount - before, server.desk.refreshCount)
        stage.say("12 responses, \(refreshes) refresh, \(requests) requests in total; the app did not need to react")
        try stage.expect(refreshes == 1, "the token was renewed \(refreshes) times")
    }

    private func retry(_ service: AlbumService) async throws {
        try stage.begin("A server that fails twice")
        let charts = try await run(service.charts())
        stage.say("then the server responded: \(charts.joined(separator: ", "))")
        let requests = server.requestCount("/charts")
        try stage.expect(charts.count == 3 && requests == 3, "there were \(requests) requests for the charts")
    }

    private func upload(_ service: AlbumService) async throws {
        try stage.begin("An upload of a form with a picture of 5 MB")
        let album = Album(id: 0, title: "A Love Supreme", year: 1965)
        let upload = try service.add(album, cover: Data(repeating: 7, count: 5_000_000))
        let added = try await stage.show("cover.png") { row in
            upload.uploadProgressHandler = { row.advance($0) }
            return try await run(upload)
        }
        stage.say("the service added it as album \(added.id)")
        try stage.expect(added.title == album.title && upload.uploadProgress.fraction == 1, "the upload is incomplete")
    }

    private func cancelHalfWay(_ service: AlbumService) async throws {
        try stage.begin("Everything as a group of groups, canceled halfway")
        let before = server.requestCount
        let everything = service.everything()
        try queue.add(everything)
        await server.requests(atLeast: before + 1 + AlbumServer.albumCount / 2)
        // The group ends early if the user interrupts the program.
        try Task.checkCancellation()
        everything.cancel(because: .requested("the page was closed"))
        await everything.ended()
        // When no response is in progress, the server has received all requests that were sent before.
        await server.isAtRest()
        let (sent, all) = (server.requestCount - before, 1 + AlbumServer.albumCount)
        stage.say("canceled the group and everything in it; \(sent) of \(all) requests had been sent")
        try stage.expect(everything.cancellationCause?.code == .requested && sent < all, "the group continued")
    }

    private func suspendDownload(_ service: AlbumService, _ album: Album) async throws {
        try stage.begin("A download, suspended halfway and resumed")
        let file = stage.folder.appendingPathComponent("recording.flac")
        let download = service.recording(of: album, to: file)
        download.downloadOptions.existingItem = .replace
        let half = Int64(AlbumServer.recordingSize / 2)
        let (isHalf, tellHalf) = AsyncStream.makeStream(of: Void.self)
        let place = try await stage.show("recording.flac") { row in
            download.downloadProgressHandler = { progress in
                row.advance(progress)
                if progress.completedBytes >= half { tellHalf.finish() }
            }
            try queue.add(download)
            let watch = download.observe { _ in tellHalf.finish() }
            defer { watch.cancel() }
            for await _ in isHalf {}
            download.suspend()
            row.pause("suspended")
            let before = download.downloadProgress.completedBytes
            try await Task.sleep(for: .milliseconds(600))
            let late = download.downloadProgress.completedBytes - before
            stage.say("suspended; \(late) bytes arrived in 0.6 seconds, then the download was resumed")
            // Bytes that the session was delivering at that moment can still arrive.
            try stage.expect(late < 500_000, "the download continued while it was suspended")
            download.resume()
            return try await download.value
        }
        let size = try FileManager.default.attributesOfItem(atPath: place.path)[.size] as? Int
        let requests = server.requestCount("/albums/1/recording")
        stage.say("each byte arrived once, with \(requests) request")
        try stage.expect(size == AlbumServer.recordingSize && requests == 1, "the file is incomplete")
        try FileManager.default.removeItem(at: place)
    }
}
