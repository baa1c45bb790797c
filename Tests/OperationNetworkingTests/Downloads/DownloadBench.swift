// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A server, a session, and a temporary folder for downloads that is deleted with the bench.
final class DownloadBench: Sendable {
    /// The default length of a file.
    static let size = 900_000

    let bench: Bench
    let folder: URL
    var server: LoopbackServer { bench.server }

    init(_ kind: SessionKind, _ options: LoopbackServer.Options = .init()) throws {
        bench = try Bench(kind, options)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("downloads-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    convenience init() throws {
        try self.init(try #require(SessionKind.allCases.first))
    }

    convenience init(serving resource: LoopbackResource) throws {
        try self.init()
        serve(resource)
    }

    deinit {
        bench.closeSession()
        try? FileManager.default.removeItem(at: folder)
    }

    func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// The names of all files in the folder, including hidden files.
    func names(_ name: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: url(name).path)) ?? []).sorted()
    }

    func bytes(_ name: String) -> [UInt8]? { (try? Data(contentsOf: url(name))).map { Array($0) } }

    /// The URL of the metadata file, if there is one.
    var metadataURL: URL? { names().first { $0.hasSuffix(".metadata") }.map { url($0) } }

    /// The URL of the partial file, if there is one.
    var partURL: URL? { names().first { $0.hasSuffix(".part") }.map { url($0) } }

    /// Changes the metadata of a partial file.
    func changeMetadata(in folder: String = "", _ change: (inout DownloadMetadata) -> Void) throws {
        let name = try #require(names(folder).first { $0.hasSuffix(".metadata") })
        let place = url(folder).appendingPathComponent(name)
        var metadata = try #require(DownloadMetadata(text: Array(try Data(contentsOf: place))))
        change(&metadata)
        let file = try FileHandle(forUpdating: place)
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data(metadata.text()))
        try file.close()
    }

    /// The lower bits of the mode of a file.
    func permissions(_ name: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: url(name).path)
        return (attributes?[.posixPermissions] as? NSNumber)?.intValue
    }

    static func resource(
        _ size: Int = size, from start: Int = 0, etag: String? = "\"one\"", date: String? = nil
    ) -> LoopbackResource {
        LoopbackResource(.bytes(TestPattern.bytes(from: start, count: size)), etag: etag, lastModified: date)
    }

    /// Whether the file contains exactly the bytes of such a resource.
    func holds(_ name: String, size: Int = size, from start: Int = 0) -> Bool {
        bytes(name).map { TestPattern.matches($0, from: start) && $0.count == size } == true
    }

    func serve(_ resource: LoopbackResource, at path: String = "/file") {
        server.route("GET", path) { resource.answer(to: $0) }
    }

    /// Downloads the beginning of the file until the connection is cut, and then lets the server send the complete
    /// file.
    func leavePart(
        of resource: LoopbackResource = resource(), to destination: DownloadDestination? = nil,
        options: DownloadOptions = .init()
    ) async throws {
        server.route("GET", "/file") { resource.answer(to: $0).cut(at: 400_000) }
        let cut = try await download(to: destination ?? .file(url("file")), options: options)
        #expect(cut.error?.code == .truncatedBody || cut.error?.code == .connectionLost, "\(cut)")
        serve(resource)
    }

    /// Downloads a file that is cut off, and then downloads from the same URL with other responses.
    func resumed(
        first: LoopbackResource, then second: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer,
        options: DownloadOptions = .init()
    ) async throws -> DownloadConclusion {
        try await leavePart(of: first, options: options)
        server.route("GET", "/file", second)
        return try await download(to: .file(url("file")), options: options)
    }

    /// Downloads with as many requests as necessary.
    func download(
        _ target: String = "/file", to destination: DownloadDestination, options: DownloadOptions = .init(),
        headers: HeaderFields = [:], files: FileSystem = FileSystem(),
        _ react: @escaping @Sendable (DownloadProgress, DownloadTask?) -> Void = { _, _ in }
    ) async throws -> DownloadConclusion {
        let request = try bench.request("GET", target, headers)
        let download = Download(to: destination, options: with(options) { $0.files = files })
        return await run(request, download, react)
    }

    /// Starts a download that the test controls.
    func start(
        to destination: DownloadDestination, options: DownloadOptions = .init(), files: FileSystem = FileSystem(),
        clock: any OperationClock = .system, over session: (any NetworkSession)? = nil,
        _ react: @escaping @Sendable (DownloadProgress) -> Void = { _ in }
    ) throws -> RunningDownload {
        let download = Download(to: destination, options: with(options) { $0.files = files }, clock: clock)
        let running = RunningDownload(
            try bench.request("GET", "/file"), over: session ?? bench.session, download, react)
        running.task.resume()
        return running
    }

    func run(
        _ request: NetworkRequest, _ download: Download,
        _ react: @escaping @Sendable (DownloadProgress, DownloadTask?) -> Void = { _, _ in }
    ) async -> DownloadConclusion {
        let kept = Locked<DownloadTask?>(nil)
        let running = RunningDownload(request, over: bench.session, download) { progress in
            react(progress, kept.withLock { $0 })
        }
        kept.withLock { $0 = running.task }
        running.task.resume()
        let conclusion = await running.conclusion()
        kept.withLock { $0 = nil }
        return conclusion
    }
}

extension DownloadConclusion {
    var file: DownloadedFile? {
        if case .saved(let file, _, _) = self { file } else { nil }
    }

    var error: NetworkError? {
        if case .failed(let error) = self { error } else { nil }
    }
}
