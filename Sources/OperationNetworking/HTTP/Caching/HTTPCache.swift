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

/// How much a cache keeps.
public struct CacheLimits: Hashable, Sendable {
    /// The bytes on disk, cards and bodies that are being written included; 256 MiB unless changed.
    public var totalBytes: Int64
    /// The bytes of one body; an eighth of the total unless changed, and what is longer is not kept.
    public var bodyBytes: Int64

    /// Makes limits.
    public init(totalBytes: Int64 = 256 << 20, bodyBytes: Int64? = nil) {
        self.totalBytes = max(totalBytes, 0)
        self.bodyBytes = bodyBytes ?? max(totalBytes, 0) / 8
    }
}

/// What a folder of a cache hides the values of requests with: bytes that nobody else has.
package struct CacheKey: Hashable, Sendable {
    package static let size = 32

    /// For what is never written.
    package static let none = CacheKey([])

    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package static func random() -> CacheKey {
        CacheKey((0..<size).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// A checksum that tells whether two values are the same, and nothing of what they are.
    func hidden(_ text: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: bytes + Array(text.utf8), startingWith: SHA256()))
    }
}

/// A response as the cache keeps it, but for its body.
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
    /// When the request was sent.
    package private(set) var requested: Date
    /// When the response came.
    package private(set) var received: Date
    /// The request's fields that the response depends on; nothing for those that it did not have.
    package private(set) var selecting: [String: [String]]

    /// - Parameter key: What the values of the request's fields are hidden with.
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

    /// The head that is served, as old as it is.
    package func head(url: URL, age: Int, bodyLength: Int64) -> ResponseHead {
        var headers = headers
        headers["Age"] = String(age)
        if !isDecoded { headers["Content-Length"] = String(bodyLength) }
        return ResponseHead(
            url: url, status: status, headers: headers, version: HTTPVersion(majorVersion, minorVersion),
            reason: reason, isDecoded: isDecoded)
    }

    /// The same response after the server said that it still holds (RFC 9111, section 3.2), to a request for which it is
    /// selected anew: the fields that it depends on may be others now.
    package func freshened(
        by head: ResponseHead, to request: HeaderFields, requested: Date, received: Date, key: CacheKey = .none
    ) -> CachedResponse {
        var copy = self
        var headers = headers
        let new = Self.storable(head.headers).filter { field in !Self.kept.contains { field.isNamed($0) } }
        for field in new { headers.remove(field.name) }
        for field in new { headers.add(field.name, field.value) }
        // How old it was then says nothing any more.
        if !head.headers.contains("Age") { headers.remove("Age") }
        copy.fields = headers.map { Field(name: $0.name, value: $0.value) }
        if head.headers.contains("Vary") || head.headers.contains("Cache-Control") {
            copy.selecting = CacheSelection.fields(of: request, namedBy: headers, isDecoded: isDecoded, key: key)
        }
        copy.requested = requested
        copy.received = received
        return copy
    }

    /// Without what concerns the connection (section 3.1), and without cookies: those were given to the jar when they
    /// came, and are not set again by each hit.
    private static func storable(_ headers: HeaderFields) -> [HeaderFields.Field] {
        let named = headers.values("Connection").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks }
        return headers.filter { field in !(unstored + named).contains { field.isNamed($0) } }
    }

    private static let unstored = [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
        "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Set-Cookie", "Set-Cookie2",
    ]

    /// What describes the body that is kept.
    private static let kept = ["Content-Length", "Content-Encoding", "Content-Range", "Content-Type"]
}
