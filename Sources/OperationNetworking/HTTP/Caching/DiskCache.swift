// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A cache in a folder, which stores metadata and bodies up to a maximum number of bytes.
///
/// Several caches may share a folder, in one process or in several. Each file is either complete or missing. If another
/// cache replaces metadata or removes a body, this cache no longer finds it.
///
/// The cache is not `Sendable`, because it stays on the queue of its ``HTTPCache``.
package final class DiskCache {
    private let folder: CacheFolder
    private let limits: CacheLimits
    /// The key that hides the values of request headers.
    package let key: CacheKey
    /// The number of bytes in the folder at the last listing, adjusted by what this cache has added and removed since.
    private var used: Int64 = 0
    /// The number of bytes that this cache added since the last listing, although other caches may have added as many.
    private var unseen: Int64 = .max
    private var recency: [String: UInt64] = [:]
    private var lastUse: UInt64 = 0
    private var readers: [Int: CacheBodyReader] = [:]
    private var writers: [Int: (body: CacheBodyWriter, since: CacheChanges.Moment)] = [:]
    private var lastNumber = 0

    package init(folder: CacheFolder, limits: CacheLimits) {
        self.folder = folder
        self.limits = limits
        folder.prepare()
        key = Self.key(in: folder)
    }

    /// Returns the key that all caches of a folder share.
    ///
    /// A key that cannot be saved is used by one cache only, and responses that were stored with it are never found
    /// again.
    private static func key(in folder: CacheFolder) -> CacheKey {
        func known() -> CacheKey? {
            folder.read(CacheFile.secret).flatMap { $0.count == CacheKey.size ? CacheKey($0) : nil }
        }
        return known()
            ?? folder.exclusively {
                if let key = known() { return key }
                let key = CacheKey.random()
                _ = folder.write(key.bytes, to: CacheFile.secret)
                return key
            }
    }

    /// The present moment, which a caller records before it requests a response.
    package var moment: CacheChanges.Moment { changes.moment }

    private var changes: CacheChanges { CacheChanges(folder.read(CacheFile.changes) ?? []) }

    /// Records a removal while the folder is locked.
    private func recordForgotten(_ key: String?) {
        var changes = changes
        changes.forget(key)
        _ = folder.write(changes.encoded, to: CacheFile.changes)
    }

    /// Returns the metadata of an address, and removes damaged metadata.
    package func metadata(_ resource: String, now: Date) -> CacheMetadata? {
        let key = CacheFile.key(of: resource)
        let name = key + CacheFile.metadataSuffix
        guard let bytes = folder.read(name) else { return nil }
        guard let metadata = CacheMetadata(bytes, resource: resource) else {
            folder.remove(name)
            return nil
        }
        if recency[key] == nil { folder.touch(name, at: now) }
        recordUse(key)
        return metadata
    }

    /// Opens a body for reading, or removes it from its metadata if it is damaged or missing.
    package func openReader(_ body: CacheBody, of resource: String, now: Date) -> Int? {
        guard let reader = CacheBodyReader(body, in: folder) else {
            drop(body, of: resource, now: now)
            return nil
        }
        lastNumber += 1
        readers[lastNumber] = reader
        return lastNumber
    }

    /// The number of bodies that are open for reading.
    package var readerCount: Int { readers.count }

    package enum Portion {
        case bytes(Data)
        case end
        /// The file can no longer be read.
        case failed
    }

    package func read(_ number: Int) -> Portion {
        guard let reader = readers[number] else { return .failed }
        if let data = reader.next() { return .bytes(data) }
        return reader.isAtEnd ? .end : .failed
    }

    package func closeReader(_ number: Int) {
        readers[number] = nil
    }

    /// Begins to write a body, which is not stored if its address is removed in the meantime.
    ///
    /// - Parameter moment: The moment at which the response was requested. The default is `nil`, which uses the present
    ///   one.
    package func openWriter(since moment: CacheChanges.Moment? = nil) -> Int? {
        guard let writer = CacheBodyWriter(in: folder) else { return nil }
        lastNumber += 1
        writers[lastNumber] = (writer, moment ?? self.moment)
        return lastNumber
    }

    /// Appends data to a body, or returns `false` if the body is no longer to be stored.
    package func append(_ data: Data, to number: Int, now: Date) -> Bool {
        guard let writer = writers[number]?.body else { return false }
        guard writer.length + Int64(data.count) <= limits.bodyBytes,
            hasRoom(Int64(data.count)) || folder.exclusively({ makeRoom(Int64(data.count), now: now) }),
            data.withUnsafeBytes({ writer.append($0) })
        else {
            discardWriter(number)
            return false
        }
        count(Int64(data.count))
        return true
    }

    package func discardWriter(_ number: Int) {
        guard let writer = writers.removeValue(forKey: number)?.body else { return }
        used -= writer.length
    }

    /// Stores a response whose body is complete, and returns whether it was stored.
    @discardableResult
    package func commit(_ number: Int, _ response: CachedResponse, at resource: String, now: Date) -> Bool {
        guard let (writer, since) = writers.removeValue(forKey: number) else { return false }
        let key = CacheFile.key(of: resource)
        guard let body = writer.finish(key: key) else {
            used -= writer.length
            return false
        }
        return folder.exclusively { () -> Bool in
            var metadata = self.metadata(resource, now: now) ?? CacheMetadata(resource: resource)
            let removed = metadata.put(CacheMetadata.Variant(response: response, body: body))
            let isStored = !changes.hasForgotten(key, since: since) && save(metadata, now: now)
            for body in isStored ? removed : [body] { remove(body) }
            return isStored
        }
    }

    /// Updates a response that is still valid according to its server.
    package func freshen(_ body: CacheBody, with response: CachedResponse, at resource: String, now: Date) {
        folder.exclusively {
            guard var metadata = metadata(resource, now: now), metadata.freshen(body, with: response) else { return }
            _ = save(metadata, now: now)
        }
    }

    /// Removes the responses at an address.
    package func forget(_ resource: String) {
        let key = CacheFile.key(of: resource)
        let name = key + CacheFile.metadataSuffix
        folder.exclusively {
            recordForgotten(key)
            guard let bytes = folder.read(name) else { return }
            folder.remove(name)
            used -= Int64(bytes.count)
            for variant in CacheMetadata(bytes, resource: resource)?.variants ?? [] { remove(variant.body) }
        }
    }

    /// Removes all responses, including those of other caches in the folder.
    package func forgetAll() {
        folder.exclusively {
            recordForgotten(nil)
            for file in folder.list() where !file.isPart { folder.remove(file.name) }
        }
        unseen = .max
    }

    /// Returns the number of bytes in the folder.
    package func size() -> Int64 { folder.list().map(\.size).saturatedSum }

    /// Removes a response, whose body an open reader can still read.
    package func drop(_ body: CacheBody, of resource: String, now: Date) {
        folder.remove(body.name)
        unseen = .max
        withdraw(body, of: resource, now: now)
    }

    /// Removes a response from its metadata, and leaves the body to its reader until `remove` is called.
    package func withdraw(_ body: CacheBody, of resource: String, now: Date) {
        folder.exclusively {
            // Another cache may have written new metadata without this body.
            guard var metadata = metadata(resource, now: now), metadata.remove(body) else { return }
            if metadata.variants.isEmpty {
                folder.remove(CacheFile.key(of: resource) + CacheFile.metadataSuffix)
            } else {
                _ = save(metadata, now: now)
            }
        }
    }

    package func remove(_ body: CacheBody) {
        folder.remove(body.name)
        used -= body.length
    }

    /// Saves metadata while the folder is locked.
    private func save(_ metadata: CacheMetadata, now: Date) -> Bool {
        let key = CacheFile.key(of: metadata.resource)
        recordUse(key)
        guard let bytes = metadata.encoded(), hasRoom(Int64(bytes.count)) || makeRoom(Int64(bytes.count), now: now),
            folder.write(bytes, to: key + CacheFile.metadataSuffix)
        else { return false }
        // The old metadata is gone, but counting it as well only makes the next listing come earlier.
        count(Int64(bytes.count))
        return true
    }

    private func count(_ bytes: Int64) {
        used = used.addingSaturated(bytes)
        unseen = unseen.addingSaturated(bytes)
    }

    private func recordUse(_ key: String) {
        lastUse += 1
        recency[key] = lastUse
    }

    /// Returns whether there is room for a number of bytes, without a new listing.
    private func hasRoom(_ bytes: Int64) -> Bool {
        used.addingSaturated(bytes) <= limits.totalBytes && unseen < max(limits.totalBytes / 8, 1)
    }

    /// Lists the folder and makes room for a number of bytes, or returns `false` if that is not possible.
    ///
    /// The folder is locked, so that metadata that another cache has just written is not removed.
    private func makeRoom(_ bytes: Int64, now: Date) -> Bool {
        guard bytes <= limits.totalBytes else { return false }
        let files = folder.list()
        used = files.map(\.size).saturatedSum
        unseen = 0
        let keys = Set(files.map(\.key))
        recency = recency.filter { keys.contains($0.key) }
        guard used.addingSaturated(bytes) > limits.totalBytes else { return true }
        // Removing more than necessary avoids a listing at each addition.
        let goal = max(0, min(limits.totalBytes / 10 * 9, limits.totalBytes - bytes))
        for file in Self.filesToRemove(files, limit: goal, recency: recency, now: now) {
            folder.remove(file.name)
            used -= file.size
            recency[file.key] = nil
        }
        return used + bytes <= limits.totalBytes
    }
}

/// The latest removals in a folder, which prevent that a response requested earlier is stored after its removal.
///
/// On disk, the first line contains the number of the last removal. Each further line contains one of the latest keys.
package struct CacheChanges: Equatable, Sendable {
    /// A point in time between two removals.
    package typealias Moment = UInt64

    private static let limit = 64
    private static let everything = "*"

    /// The number of all removals so far.
    package private(set) var moment: Moment = 0
    /// The keys of the latest removals.
    private var keys: [String] = []

    package init() {}

    /// Decodes the removals, or creates an empty value if they are damaged.
    package init(_ bytes: [UInt8]) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        guard let first = lines.first, let number = Moment(first), UInt64(lines.count) - 1 <= number else { return }
        moment = number
        keys = Array(lines.dropFirst())
    }

    package var encoded: [UInt8] { Array(([String(moment)] + keys).joined(separator: "\n").utf8) }

    /// Records that a key was removed, or that all keys were removed if the key is `nil`.
    package mutating func forget(_ key: String?) {
        moment &+= 1
        keys.append(key ?? Self.everything)
        if keys.count > Self.limit { keys.removeFirst() }
    }

    /// Returns whether a key may have been removed since a moment.
    package func hasForgotten(_ key: String, since past: Moment) -> Bool {
        if past == moment { return false }
        // The removals were started from scratch, or there were more of them than are stored.
        guard past < moment, moment - past <= UInt64(keys.count) else { return true }
        return keys.suffix(Int(moment - past)).contains { $0 == key || $0 == Self.everything }
    }
}

// An algorithm that selects the files to remove from a cache that is too large.
extension DiskCache {
    /// The age in seconds at which a file without metadata counts as left behind by a program that ended.
    private static let grace: TimeInterval = 3600

    /// Returns the files to remove.
    ///
    /// - Parameters:
    ///   - files: All files in the folder.
    ///   - limit: The maximum number of bytes that may stay.
    ///   - recency: The addresses that this program used, with higher numbers for later uses. Other addresses count as
    ///     older.
    ///   - now: The current date.
    package static func filesToRemove(
        _ files: [CacheFile], limit: Int64, recency: [String: UInt64], now: Date
    ) -> [CacheFile] {
        let leftBehind = files.filter { $0.isPart && now.timeIntervalSince($0.used) > grace }
        let parts = files.filter { $0.isPart && now.timeIntervalSince($0.used) <= grace }
        let groups = Dictionary(grouping: files.filter { $0.isMetadata || $0.isBody }, by: \.key)
        var removed = leftBehind
        var kept: [(key: String, files: [CacheFile])] = []
        for (key, group) in groups {
            let newest = group.map(\.used).max() ?? .distantPast
            // A body is written before its metadata, so a new body may be waiting for its metadata.
            if group.contains(where: \.isMetadata) || now.timeIntervalSince(newest) <= grace {
                kept.append((key, group))
            } else {
                removed += group
            }
        }
        kept.sort { one, other in
            let (left, right) = (recency[one.key] ?? 0, recency[other.key] ?? 0)
            return left == right ? latestUse(one.files) < latestUse(other.files) : left < right
        }
        var total = sum(parts).addingSaturated(kept.map { sum($0.files) }.saturatedSum)
        for group in kept {
            guard total > limit else { break }
            removed += group.files
            total -= sum(group.files)
        }
        return removed
    }

    private static func sum(_ files: [CacheFile]) -> Int64 { files.map(\.size).saturatedSum }

    private static func latestUse(_ files: [CacheFile]) -> Date {
        files.first(where: \.isMetadata)?.used ?? files.map(\.used).max() ?? .distantPast
    }
}

/// The file that contains the body of a stored response.
package struct CacheBody: Hashable, Sendable, Codable {
    /// The name of the file, which is never used for another body.
    package let name: String
    package let length: Int64
    /// The CRC-32 of all bytes, in hexadecimal digits.
    package let checksum: String
}
