// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// A server, a session, and a folder of its own to download to, which goes with it.
final class DownloadBench: Sendable {
    let bench: Bench
    let folder: URL
    var server: LoopbackServer { bench.server }

    init(_ kind: SessionKind, _ options: LoopbackServer.Options = .init()) throws {
        bench = try Bench(kind, options)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("downloads-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        bench.closeSession()
        try? FileManager.default.removeItem(at: folder)
    }

    func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

    /// Everything in the folder, hidden files included.
    func names(_ name: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: url(name).path)) ?? []).sorted()
    }

    func bytes(_ name: String) -> [UInt8]? { (try? Data(contentsOf: url(name))).map { Array($0) } }

    func serve(_ resource: LoopbackResource, at path: String = "/file") {
        server.route("GET", path) { resource.answer(to: $0) }
    }

    /// Downloads, with as many requests as the server makes necessary.
    func download(
        _ target: String = "/file", to destination: DownloadDestination, options: DownloadOptions = .init(),
        headers: HeaderFields = [:], files: FileSystem = FileSystem(),
        _ react: @escaping @Sendable (DownloadProgress, DownloadRun?) -> Void = { _, _ in }
    ) async throws -> DownloadConclusion {
        let request = try bench.request("GET", target, headers)
        let download = Download(to: destination, options: options, files: files)
        return await run(request, download, react)
    }

    func run(
        _ request: NetworkRequest, _ download: Download,
        _ react: @escaping @Sendable (DownloadProgress, DownloadRun?) -> Void = { _, _ in }
    ) async -> DownloadConclusion {
        let kept = Locked<DownloadRun?>(nil)
        return await withCheckedContinuation { continuation in
            let run = DownloadRun(
                request, over: bench.session, with: download,
                tellProgress: { progress in react(progress, kept.withLock { $0 }) },
                whenDone: { conclusion in
                    kept.withLock { $0 = nil }
                    continuation.resume(returning: conclusion)
                })
            kept.withLock { $0 = run }
            run.resume()
        }
    }
}

extension DownloadConclusion {
    var file: DownloadedFile? {
        if case .saved(let file, _) = self { file } else { nil }
    }

    var error: NetworkError? {
        if case .failed(let error) = self { error } else { nil }
    }
}
