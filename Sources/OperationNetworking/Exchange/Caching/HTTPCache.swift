// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Keeps responses on disk and serves them again, as RFC 9111 asks of a private cache.
///
/// ```swift
/// let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
/// let folder = caches.appendingPathComponent("com.example.shop/pages")
/// let cache = HTTPCache(folder: folder, limits: CacheLimits(totalBytes: 64 << 20))
/// print(await cache.diskUsage(), "bytes are kept")
/// await cache.removeAll()
/// ```
///
/// The folder belongs to the cache. Several caches may share it, in one process or many. A crash at any moment, even in
/// the middle of a write, leaves each response whole or gone: what is damaged is never served. Bodies are never held in
/// memory as a whole. The files can be read by their owner alone. A folder that belongs to another user, or to which other
/// users can write, counts as empty and is left alone; OperationKit reports it with the notice
/// `OperationNotice.Kind.untrustedFile`.
public final class HTTPCache: Sendable {
    /// All work on files; one at a time.
    private let queue = DispatchQueue(label: "OperationKit.HTTPCache", qos: .userInitiated)
    // Sendable: made in init, then only used on `queue`.
    private nonisolated(unsafe) let disk: DiskCache
    private let now: @Sendable () -> Date
    /// What the fields of requests are hidden with.
    let key: CacheKey

    /// Makes a cache in a folder, which is made when it is not there.
    ///
    /// - Parameters:
    ///   - folder: The folder, which nothing else should use.
    ///   - limits: How much is kept; what was used last longest ago goes first.
    ///   - now: What time it is.
    public convenience init(
        folder: URL, limits: CacheLimits = CacheLimits(), now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.init(CacheFolder(url: folder), limits: limits, now: now)
    }

    package init(_ folder: CacheFolder, limits: CacheLimits, now: @escaping @Sendable () -> Date) {
        let disk = DiskCache(folder: folder, limits: limits)
        self.disk = disk
        key = disk.key
        self.now = now
    }

    /// Forgets all responses.
    public func removeAll() async {
        await ask { disk, _ in disk.forgetAll() }
    }

    /// Forgets the responses at one address.
    public func remove(_ url: URL) async {
        guard let address = WebAddress(url) else { return }
        await ask { disk, _ in disk.forget(address.resource) }
    }

    /// How many bytes are on disk.
    public func diskUsage() async -> Int64 {
        await ask { disk, _ in disk.size() }
    }

    /// Does work on the cache's queue, later.
    package func perform(_ work: @escaping @Sendable (DiskCache, Date) -> Void) {
        queue.async { [self] in work(disk, now()) }
    }

    private func ask<Answer: Sendable>(_ work: @escaping @Sendable (DiskCache, Date) -> Answer) async -> Answer {
        await withCheckedContinuation { continuation in
            perform { disk, now in continuation.resume(returning: work(disk, now)) }
        }
    }
}
