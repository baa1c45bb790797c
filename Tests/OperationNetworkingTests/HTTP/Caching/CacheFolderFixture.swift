// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A cache in its own folder, which is removed when the test releases the fixture.
final class CacheFolderFixture: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("operationkit-cache-\(UUID())")

    deinit { try? FileManager.default.removeItem(at: url) }

    func disk(_ limits: CacheLimits = CacheLimits(), interceptor: FileSystem.Interceptor? = nil) -> DiskCache {
        // No process crashes here, but on a busy machine a thread may be idle for a long time.
        let folder = CacheFolder(url: url, files: FileSystem(interceptor: interceptor), claimTries: 30_000)
        return DiskCache(folder: folder, limits: limits)
    }

    /// The files whose names have the given suffix.
    func files(_ suffix: String) -> [URL] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []
        return names.sorted().filter { $0.hasSuffix(suffix) }.map { url.appendingPathComponent($0) }
    }

    /// Removes everything in the folder.
    func empty() {
        for file in files("") { try? FileManager.default.removeItem(at: file) }
    }
}

extension DiskCache {
    static let fresh: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]

    /// Stores a response and returns whether the cache accepted its body.
    @discardableResult
    func keep(
        _ body: Data, at resource: String, to request: HeaderFields = [:], headers: HeaderFields = fresh,
        chunk: Int = 64 << 10
    ) throws -> Bool {
        guard let writer = openWriter() else { return false }
        var rest = body
        while !rest.isEmpty {
            guard append(rest.prefix(chunk), to: writer, now: CacheSamples.now) else { return false }
            rest = Data(rest.dropFirst(chunk))
        }
        commit(writer, try CacheSamples.response(200, headers, to: request), at: resource, now: CacheSamples.now)
        return true
    }

    /// Returns the body that would be served, or `nil` for a miss.
    func body(_ resource: String, for request: HeaderFields = [:]) -> Data? {
        guard let metadata = metadata(resource, now: CacheSamples.now),
            let variant = metadata.variants.last(where: { CacheSelection.fits($0.response, request) }),
            let reader = openReader(variant.body, of: resource, now: CacheSamples.now)
        else { return nil }
        defer { closeReader(reader) }
        var data = Data()
        while true {
            switch read(reader) {
            case .bytes(let part): data += part
            case .end: return data
            case .failed: return nil
            }
        }
    }
}
