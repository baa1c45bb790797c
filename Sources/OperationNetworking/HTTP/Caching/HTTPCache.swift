// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A cache that stores responses on disk and reuses them, as RFC 9111 specifies for a private cache.
///
/// ```swift
/// let caches = FileManager.default.urls(
///     for: .cachesDirectory, in: .userDomainMask)[0]
/// let folder = caches.appendingPathComponent("com.example.shop/pages")
/// let cache = HTTPCache(folder: folder, totalBytes: 64 << 20)
/// print(await cache.diskUsage(), "bytes are kept")
/// await cache.removeAll()
/// ```
///
/// Several caches can share a folder, even in different processes. If the process crashes while the cache writes a
/// response, the response is missing afterward, but the cache never returns a damaged response. The cache reads and
/// writes bodies in chunks, so that a large body is never in memory as a whole.
///
/// Other users cannot read the cached responses. If another user owns the folder or can write to it, or if its URL is
/// not a file URL, the cache does not use the folder and stores no responses. OperationKit reports this problem with
/// the notice `OperationNotice.Kind.untrustedFile`.
public final class HTTPCache: Sendable {
    /// The queue for all work on files, one item at a time.
    private let queue = DispatchQueue(label: "OperationKit.HTTPCache", qos: .userInitiated)
    // Sendable: made in init, then only used on `queue`.
    private nonisolated(unsafe) let disk: DiskCache
    private let now: @Sendable () -> Date
    /// The key that hides the values of request headers.
    let key: CacheKey

    /// Creates a cache in a folder and creates the folder if necessary.
    ///
    /// - Parameters:
    ///   - folder: The file URL of the folder in which the cache stores responses. Do not store other files in the
    ///     folder.
    ///   - totalBytes: The maximum number of bytes that the cache uses on disk, including metadata and incomplete
    ///     bodies. If the cache exceeds this limit, it removes the least recently used responses. The default is 256
    ///     MiB.
    ///   - bodyBytes: The maximum size of a response body that the cache stores, in bytes. The default is `nil`, which
    ///     limits bodies to an eighth of `totalBytes`.
    public convenience init(folder: URL, totalBytes: Int64 = 256 << 20, bodyBytes: Int64? = nil) {
        self.init(
            CacheFolder(url: folder), limits: CacheLimits(totalBytes: totalBytes, bodyBytes: bodyBytes),
            now: { Date() })
    }

    package init(_ folder: CacheFolder, limits: CacheLimits, now: @escaping @Sendable () -> Date) {
        let disk = DiskCache(folder: folder, limits: limits)
        self.disk = disk
        key = disk.key
        self.now = now
    }

    /// Removes all responses from the cache.
    public func removeAll() async {
        await ask { disk, _ in disk.forgetAll() }
    }

    /// Removes the cached responses for a URL.
    ///
    /// - Parameter url: The absolute URL of the cached responses, including its query.
    public func remove(_ url: URL) async {
        guard let address = WebAddress(url) else { return }
        await ask { disk, _ in disk.forget(address.resource) }
    }

    /// Returns the number of bytes that the cache uses on disk.
    public func diskUsage() async -> Int64 {
        await ask { disk, _ in disk.size() }
    }

    /// Performs work asynchronously on the queue of the cache.
    package func perform(_ work: @escaping @Sendable (DiskCache, Date) -> Void) {
        queue.async { [self] in work(disk, now()) }
    }

    private func ask<Answer: Sendable>(_ work: @escaping @Sendable (DiskCache, Date) -> Answer) async -> Answer {
        await withCheckedContinuation { continuation in
            perform { disk, now in continuation.resume(returning: work(disk, now)) }
        }
    }
}

/// The limits on the size of an ``HTTPCache``.
package struct CacheLimits: Hashable, Sendable {
    /// The maximum number of bytes that the cache uses on disk, including metadata and incomplete bodies.
    package var totalBytes: Int64
    /// The maximum size of a response body that the cache stores, in bytes.
    package var bodyBytes: Int64

    /// Creates limits on the size of a cache.
    ///
    /// - Parameters:
    ///   - totalBytes: The maximum number of bytes that the cache uses on disk. The default is 256 MiB.
    ///   - bodyBytes: The maximum size of a response body, in bytes. The default is `nil`, which limits bodies to an
    ///     eighth of `totalBytes`.
    package init(totalBytes: Int64 = 256 << 20, bodyBytes: Int64? = nil) {
        self.totalBytes = max(totalBytes, 0)
        self.bodyBytes = bodyBytes ?? max(totalBytes, 0) / 8
    }
}

/// A secret key of a cache folder, which hides the values of request headers.
package struct CacheKey: Hashable, Sendable {
    package static let size = 32

    /// The key for values that are never written to disk.
    package static let none = CacheKey([])

    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package static func random() -> CacheKey {
        CacheKey((0..<size).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// Returns a checksum that shows whether two values are equal but does not reveal them.
    func hidden(_ text: String) -> String { Hexadecimal.sha256(bytes + Array(text.utf8)) }
}
