// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

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
/// Other users cannot read the cached responses. If another user owns the folder or can write to it, the cache does not
/// use the folder and stores no responses. OperationKit reports this problem with the notice
/// `OperationNotice.Kind.untrustedFile`.
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
    ///   - folder: The folder in which the cache stores responses. Do not store other files in the folder.
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
    func hidden(_ text: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: bytes + Array(text.utf8), startingWith: SHA256()))
    }
}

/// A response as the cache stores it, without its body.
package struct CachedResponse: Hashable, Sendable, Codable {
    package struct Field: Hashable, Sendable, Codable {
        let name: String
        let value: String
    }

    package private(set) var status: Int
    package private(set) var reason: String
    private var fields: [Field]
    private var majorVersion: Int
    private var minorVersion: Int
    package private(set) var isDecoded: Bool
    /// The date at which the request was sent.
    package private(set) var requested: Date
    /// The date at which the response arrived.
    package private(set) var received: Date
    /// The request headers on which the response depends, with an empty array for a header that the request did not
    /// have.
    package private(set) var selecting: [String: [String]]

    /// Creates a stored response.
    ///
    /// - Parameter key: The key that hides the values of request headers.
    package init(
        _ head: ResponseHead, to request: HeaderFields, requested: Date, received: Date, key: CacheKey = .none
    ) {
        status = head.status
        reason = head.reason
        fields = Self.storable(head.headers).map { Field(name: $0.name, value: $0.value) }
        majorVersion = head.version.major
        minorVersion = head.version.minor
        isDecoded = head.isDecoded
        self.requested = requested
        self.received = received
        selecting = CacheSelection.fields(of: request, namedBy: head.headers, isDecoded: head.isDecoded, key: key)
    }

    package var headers: HeaderFields {
        HeaderFields(fields.map { HeaderFields.Field($0.name, $0.value) })
    }

    /// Returns the response headers to serve, with the given age.
    package func head(url: URL, age: Int, bodyLength: Int64) -> ResponseHead {
        var headers = headers
        headers["Age"] = String(age)
        if !isDecoded { headers["Content-Length"] = String(bodyLength) }
        return ResponseHead(
            url: url, status: status, headers: headers, version: HTTPVersion(majorVersion, minorVersion),
            reason: reason, isDecoded: isDecoded)
    }

    /// Returns the response after its server declared it still valid (RFC 9111, section 3.2).
    ///
    /// The response may now depend on other headers, whose values are taken from the given request.
    package func freshened(
        by head: ResponseHead, to request: HeaderFields, requested: Date, received: Date, key: CacheKey = .none
    ) -> CachedResponse {
        var copy = self
        var headers = headers
        let new = Self.storable(head.headers).filter { field in !Self.kept.contains { field.isNamed($0) } }
        for field in new { headers.remove(field.name) }
        for field in new { headers.add(field.name, field.value) }
        // The old age no longer applies.
        if !head.headers.contains("Age") { headers.remove("Age") }
        copy.fields = headers.map { Field(name: $0.name, value: $0.value) }
        if head.headers.contains("Vary") || head.headers.contains("Cache-Control") {
            copy.selecting = CacheSelection.fields(of: request, namedBy: headers, isDecoded: isDecoded, key: key)
        }
        copy.requested = requested
        copy.received = received
        return copy
    }

    /// Returns the headers without those of the connection (section 3.1) and without cookies.
    ///
    /// The jar got the cookies when they arrived, and a response from the cache must not set them again.
    private static func storable(_ headers: HeaderFields) -> [HeaderFields.Field] {
        let named = headers.values("Connection").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks }
        return headers.filter { field in !(unstored + named).contains { field.isNamed($0) } }
    }

    private static let unstored = [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
        "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Set-Cookie", "Set-Cookie2",
    ]

    /// The headers that describe the stored body.
    private static let kept = ["Content-Length", "Content-Encoding", "Content-Range", "Content-Type"]
}
