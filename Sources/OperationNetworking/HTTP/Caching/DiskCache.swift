// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A cache in a folder: cards, bodies, and no more bytes than allowed.
///
/// Several of them, in one process or many, may share a folder. Each file is whole or not there; a card that another one
/// replaced, or a body that another one removed, is simply no longer found.
///
/// Not Sendable on purpose: it stays on the queue of its ``HTTPCache``.
package final class DiskCache {
    private let folder: CacheFolder
    private let limits: CacheLimits
    /// What the fields of requests are hidden with.
    package let key: CacheKey
    /// The bytes in the folder when it was last looked at, and what was added and removed here since.
    private var used: Int64 = 0
    /// What was added since then; others may have added as much.
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

    /// The same for all that share the folder; one that cannot be written down is another each time, and what was kept with
    /// it fits nothing any more.
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

    /// Now, for whoever is about to fetch a response.
    package var moment: CacheChanges.Moment { changes.moment }

    private var changes: CacheChanges { CacheChanges(folder.read(CacheFile.changes) ?? []) }

    /// The folder is claimed.
    private func noteForgotten(_ key: String?) {
        var changes = changes
        changes.forget(key)
        _ = folder.write(changes.encoded, to: CacheFile.changes)
    }

    /// What is kept at an address; what is damaged is removed.
    package func card(_ resource: String, now: Date) -> CacheMetadata? {
        let key = CacheFile.key(of: resource)
        let name = key + CacheFile.cardSuffix
        guard let bytes = folder.read(name) else { return nil }
        guard let card = CacheMetadata(bytes, resource: resource) else {
            folder.remove(name)
            return nil
        }
        if recency[key] == nil { folder.touch(name, at: now) }
        noteUse(key)
        return card
    }

    /// Opens a body for reading; one that is damaged or gone is taken off its card.
    package func openReader(_ body: CacheBody, of resource: String, now: Date) -> Int? {
        guard let reader = CacheBodyReader(body, in: folder) else {
            drop(body, of: resource, now: now)
            return nil
        }
        lastNumber += 1
        readers[lastNumber] = reader
        return lastNumber
    }

    /// How many bodies are open for reading.
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

    /// Begins to write a body, which is not kept if its address is forgotten meanwhile.
    ///
    /// - Parameter moment: When it was asked for; nil for now.
    package func openWriter(since moment: CacheChanges.Moment? = nil) -> Int? {
        guard let writer = CacheBodyWriter(in: folder) else { return nil }
        lastNumber += 1
        writers[lastNumber] = (writer, moment ?? self.moment)
        return lastNumber
    }

    /// Writes on; false if the body is not to be kept after all.
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

    /// The body is complete: from now on the response is kept.
    package func commit(_ number: Int, _ response: CachedResponse, at resource: String, now: Date) {
        guard let (writer, since) = writers.removeValue(forKey: number) else { return }
        let key = CacheFile.key(of: resource)
        guard let body = writer.finish(key: key) else {
            used -= writer.length
            return
        }
        folder.exclusively {
            guard !changes.hasForgotten(key, since: since) else { return remove(body) }
            var card = self.card(resource, now: now) ?? CacheMetadata(resource: resource)
            let removed = card.put(CacheMetadata.Variant(response: response, body: body))
            guard save(card, now: now) else { return remove(body) }
            for body in removed { remove(body) }
        }
    }

    /// A server said that a response still holds.
    package func freshen(_ body: CacheBody, with response: CachedResponse, at resource: String, now: Date) {
        folder.exclusively {
            guard var card = card(resource, now: now), card.freshen(body, with: response) else { return }
            _ = save(card, now: now)
        }
    }

    /// Forgets what is kept at an address.
    package func forget(_ resource: String) {
        let key = CacheFile.key(of: resource)
        let name = key + CacheFile.cardSuffix
        folder.exclusively {
            noteForgotten(key)
            guard let bytes = folder.read(name) else { return }
            folder.remove(name)
            used -= Int64(bytes.count)
            for variant in CacheMetadata(bytes, resource: resource)?.variants ?? [] { remove(variant.body) }
        }
    }

    /// Forgets everything, of other instances, too.
    package func forgetAll() {
        folder.exclusively {
            noteForgotten(nil)
            for file in folder.list() where !file.isPart { folder.remove(file.name) }
        }
        unseen = .max
    }

    /// How many bytes lie in the folder.
    package func size() -> Int64 { folder.list().map(\.size).saturatedSum }

    private func drop(_ body: CacheBody, of resource: String, now: Date) {
        folder.remove(body.name)
        unseen = .max
        withdraw(body, of: resource, now: now)
    }

    /// Takes a response off its card; the body stays for whoever is about to read it, until `remove`.
    package func withdraw(_ body: CacheBody, of resource: String, now: Date) {
        folder.exclusively {
            // Another cache may have put a new card there meanwhile, which does not name the body.
            guard var card = card(resource, now: now), card.remove(body) else { return }
            if card.variants.isEmpty {
                folder.remove(CacheFile.key(of: resource) + CacheFile.cardSuffix)
            } else {
                _ = save(card, now: now)
            }
        }
    }

    package func remove(_ body: CacheBody) {
        folder.remove(body.name)
        used -= body.length
    }

    /// The folder is claimed.
    private func save(_ card: CacheMetadata, now: Date) -> Bool {
        let key = CacheFile.key(of: card.resource)
        noteUse(key)
        guard let bytes = card.encoded(), hasRoom(Int64(bytes.count)) || makeRoom(Int64(bytes.count), now: now),
            folder.write(bytes, to: key + CacheFile.cardSuffix)
        else { return false }
        // The card before it is gone; that it is counted twice only makes the next look come earlier.
        count(Int64(bytes.count))
        return true
    }

    private func count(_ bytes: Int64) {
        used = used.addingSaturated(bytes)
        unseen = unseen.addingSaturated(bytes)
    }

    private func noteUse(_ key: String) {
        lastUse += 1
        recency[key] = lastUse
    }

    /// Whether there is room for so many bytes, as far as that is known without a look.
    private func hasRoom(_ bytes: Int64) -> Bool {
        used.addingSaturated(bytes) <= limits.totalBytes && unseen < max(limits.totalBytes / 8, 1)
    }

    /// Looks at the folder and makes room for so many bytes; false if that cannot be done.
    ///
    /// The folder is claimed, so that no card is taken away that another cache has just put there.
    private func makeRoom(_ bytes: Int64, now: Date) -> Bool {
        guard bytes <= limits.totalBytes else { return false }
        let files = folder.list()
        used = files.map(\.size).saturatedSum
        unseen = 0
        let keys = Set(files.map(\.key))
        recency = recency.filter { keys.contains($0.key) }
        guard used.addingSaturated(bytes) > limits.totalBytes else { return true }
        // Somewhat more than is needed, so that not each addition looks at all files.
        let goal = max(0, min(limits.totalBytes / 10 * 9, limits.totalBytes - bytes))
        for file in CacheTrim.plan(files, limit: goal, recency: recency, now: now) {
            folder.remove(file.name)
            used -= file.size
            recency[file.key] = nil
        }
        return used + bytes <= limits.totalBytes
    }
}

/// What was forgotten last in a folder: whoever began to fetch a response before that must not bring it back.
///
/// On disk it is a line with the number of the last change, and one for each of the last keys.
package struct CacheChanges: Equatable, Sendable {
    /// A moment between two changes.
    package typealias Moment = UInt64

    private static let limit = 64
    private static let everything = "*"

    /// How many changes there were, ever.
    package private(set) var moment: Moment = 0
    /// The keys of the last of them.
    private var keys: [String] = []

    package init() {}

    /// Reads them; what cannot be read tells of no change.
    package init(_ bytes: [UInt8]) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        guard let first = lines.first, let number = Moment(first), UInt64(lines.count) - 1 <= number else { return }
        moment = number
        keys = Array(lines.dropFirst())
    }

    package var encoded: [UInt8] { Array(([String(moment)] + keys).joined(separator: "\n").utf8) }

    /// Notes that a key was forgotten; nil for all of them.
    package mutating func forget(_ key: String?) {
        moment &+= 1
        keys.append(key ?? Self.everything)
        if keys.count > Self.limit { keys.removeFirst() }
    }

    /// Whether a key may have been forgotten since a moment.
    package func hasForgotten(_ key: String, since past: Moment) -> Bool {
        if past == moment { return false }
        // They were begun anew, or more of them came than are known.
        guard past < moment, moment - past <= UInt64(keys.count) else { return true }
        return keys.suffix(Int(moment - past)).contains { $0 == key || $0 == Self.everything }
    }
}

/// Which files of a cache go when it has become too large: a value, so that it can be tried without a disk.
package enum CacheTrim {
    /// How old a file without a card must be before it counts as left behind by a program that ended.
    static let grace: TimeInterval = 3600

    /// The files to be removed.
    ///
    /// - Parameters:
    ///   - files: All files in the folder.
    ///   - limit: How many bytes may stay.
    ///   - recency: Which addresses this program used, the higher the later; the others were used before.
    ///   - now: What time it is.
    package static func plan(
        _ files: [CacheFile], limit: Int64, recency: [String: UInt64], now: Date
    ) -> [CacheFile] {
        let leftBehind = files.filter { $0.isPart && now.timeIntervalSince($0.used) > grace }
        let parts = files.filter { $0.isPart && now.timeIntervalSince($0.used) <= grace }
        let groups = Dictionary(grouping: files.filter { $0.isCard || $0.isBody }, by: \.key)
        var removed = leftBehind
        var kept: [(key: String, files: [CacheFile])] = []
        for (key, group) in groups {
            let newest = group.map(\.used).max() ?? .distantPast
            // Bodies come before their card: those without one may be waiting for it.
            if group.contains(where: \.isCard) || now.timeIntervalSince(newest) <= grace {
                kept.append((key, group))
            } else {
                removed += group
            }
        }
        kept.sort { one, other in
            let (left, right) = (recency[one.key] ?? 0, recency[other.key] ?? 0)
            return left == right ? used(one.files) < used(other.files) : left < right
        }
        var total = size(parts).addingSaturated(kept.map { size($0.files) }.saturatedSum)
        for group in kept {
            guard total > limit else { break }
            removed += group.files
            total -= size(group.files)
        }
        return removed
    }

    private static func size(_ files: [CacheFile]) -> Int64 { files.map(\.size).saturatedSum }

    private static func used(_ files: [CacheFile]) -> Date {
        files.first(where: \.isCard)?.used ?? files.map(\.used).max() ?? .distantPast
    }
}

/// Where the body of a response that is kept lies, and what it is.
package struct CacheBody: Hashable, Sendable, Codable {
    /// The name of the file; no two bodies ever have the same.
    package let name: String
    package let length: Int64
    /// The CRC-32 of all bytes, in hexadecimal digits.
    package let checksum: String
}
