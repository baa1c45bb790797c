// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The folder of a cache: reads, writes aside and renames, and never says more than that it did not work.
///
/// A cache that cannot read or write counts as empty, and so does one to whose folder another user could have written.
/// Nothing is brought to the disk on purpose: what a power cut leaves
/// behind shows by its checksum.
package struct CacheFolder {
    package static let chunkSize = 64 << 10

    package let url: URL
    package let files: FileSystem
    /// How many milliseconds who holds the folder is waited for.
    private let claimTries: Int

    package init(url: URL, files: FileSystem = FileSystem(), claimTries: Int = 250) {
        self.url = url
        self.files = files
        self.claimTries = claimTries
    }

    /// Makes the folder if it is missing, for its owner alone, and reports a folder to which other users can write.
    package func prepare() {
        try? FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        guard !isTrusted, case .success = files.status(of: place) else { return }
        OperationDiagnostics.report(
            .untrustedFile, by: "HTTPCache",
            "The folder \(url.path) belongs to another user, or other users can write to it, so the cache stays empty. "
                + "Use a folder of your own with the permissions 0700.")
    }

    /// Whether no other user could have put something into the folder.
    private var isTrusted: Bool { files.isTrustedFolder(place) }

    private var place: FolderEntry { FolderEntry(PathBytes(url.path)) }

    func entry(_ name: String) -> FolderEntry { FolderEntry(PathBytes(url.path + "/" + name)) }

    /// A name that no other file has.
    func newName(_ suffix: String, key: String = "") -> String {
        let random = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        return "\(key)-\(String(random.0, radix: 36))\(String(random.1, radix: 36))\(suffix)"
    }

    /// Changes cards while no other cache of this folder does, in this process or in another.
    ///
    /// Who holds the folder is never waited for long: it may have been stopped. Then, and where the file system has no such
    /// claims, of two changes at once only the later one counts.
    func exclusively<Value>(_ change: () -> Value) -> Value {
        let claim = claimed()
        return withExtendedLifetime(claim) { change() }
    }

    private func claimed() -> OpenFile? {
        guard isTrusted, let folder = try? files.openFolder(place).get() else { return nil }
        for _ in 0..<claimTries {
            guard case .failure(let error) = files.claim(folder), error.number == EWOULDBLOCK else { return folder }
            usleep(1_000)
        }
        return nil
    }

    /// Returns all bytes of a small file, unless another user could have written it.
    package func read(_ name: String, limit: Int = 4 << 20) -> [UInt8]? {
        guard isTrusted else { return nil }
        return try? files.readTrusted(entry(name), limit: limit).get()
    }

    /// Opens a file for reading, unless another user could have written it.
    func open(_ name: String) -> (file: OpenFile, status: FileStatus)? {
        guard isTrusted else { return nil }
        return try? files.openTrusted(entry(name)).get()
    }

    /// Creates a new file, for its owner alone.
    func create(_ name: String) -> OpenFile? {
        guard isTrusted else { return nil }
        return try? files.createFile(entry(name), permissions: 0o600).get()
    }

    /// Puts a small file in its place in one step.
    package func write(_ bytes: [UInt8], to name: String) -> Bool {
        let part = newName(CacheFile.partSuffix)
        guard let file = create(part) else { return false }
        let isWritten = bytes.withUnsafeBytes { write($0, to: file) }
        let isClosed = (try? files.close(file).get()) != nil
        guard isWritten, isClosed, (try? files.rename(entry(part), to: entry(name)).get()) != nil else {
            remove(part)
            return false
        }
        return true
    }

    func write(_ bytes: UnsafeRawBufferPointer, to file: OpenFile) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            guard let count = try? files.write(file, rest).get(), count > 0 else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
        return true
    }

    package func remove(_ name: String) {
        _ = files.remove(entry(name), isDirectory: false)
    }

    /// Notes that a file was used, for whoever opens the cache next.
    func touch(_ name: String, at moment: Date) {
        let path = url.appendingPathComponent(name).path
        try? FileManager.default.setAttributes([.modificationDate: moment], ofItemAtPath: path)
    }

    /// Returns the files of the cache, including the ones that it does not trust enough to read, so that they are
    /// counted and removed, too.
    ///
    /// It ignores files with other names and files of other users.
    package func list() -> [CacheFile] {
        guard isTrusted, let folder = try? files.openFolder(place).get(),
            let names = try? files.names(in: folder).get()
        else { return [] }
        return names.compactMap { name in
            guard let status = try? files.status(of: FolderEntry(name, in: folder)).get(),
                status.kind == .regular, status.isOwnerTrusted
            else { return nil }
            let seconds = Double(status.modified.seconds) + Double(status.modified.nanoseconds) / 1e9
            let file = CacheFile(name: name.description, size: status.size, used: Date(timeIntervalSince1970: seconds))
            return file.isPart || file.isCard || file.isBody ? file : nil
        }
    }
}

/// One file in the folder of a cache, and what its name tells.
package struct CacheFile: Equatable, Sendable {
    package let name: String
    package let size: Int64
    /// When it was last written or used.
    package let used: Date

    package init(name: String, size: Int64, used: Date) {
        self.name = name
        self.size = size
        self.used = used
    }

    static let partSuffix = ".part"
    static let cardSuffix = ".card"
    static let bodySuffix = ".body"
    /// What was forgotten last, and what values are hidden with: both stay whatever is thrown away.
    static let changes = "changes"
    static let secret = "secret"

    /// Whether it is still being written, or was when a program ended.
    package var isPart: Bool { name.hasSuffix(Self.partSuffix) }
    package var isCard: Bool { name.hasSuffix(Self.cardSuffix) }
    package var isBody: Bool { name.hasSuffix(Self.bodySuffix) }
    /// What the files of one address have in common.
    package var key: String { String(name.prefix { $0 != "." && $0 != "-" }) }

    /// The key of an address.
    package static func key(of resource: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: resource.utf8, startingWith: SHA256()).prefix(16))
    }
}

/// What is kept at one address: responses that differ by the request's fields, each with the place of its body.
///
/// On disk it is eight bytes that say what it is, the SHA-256 of the rest, and the rest. A card of which a byte is
/// missing or changed is none.
package struct CacheMetadata: Equatable, Sendable {
    package struct Variant: Equatable, Sendable, Codable {
        package var response: CachedResponse
        package let body: CacheBody
    }

    private struct Contents: Codable {
        let resource: String
        let variants: [Variant]
    }

    package let resource: String
    package private(set) var variants: [Variant]

    private static let mark = Array("OKCACHE1".utf8)
    private static let variantLimit = 8

    package init(resource: String) {
        self.resource = resource
        variants = []
    }

    /// Reads a card; nil if it is damaged, or about another address.
    package init?(_ bytes: [UInt8], resource: String) {
        let start = Self.mark.count + 32
        guard bytes.count > start, bytes.starts(with: Self.mark),
            bytes[Self.mark.count..<start].elementsEqual(SHA256.checksum(of: bytes[start...], startingWith: SHA256())),
            let contents = try? JSONDecoder().decode(Contents.self, from: Data(bytes[start...])),
            contents.resource == resource
        else { return nil }
        self.resource = resource
        variants = contents.variants
    }

    package func encoded() -> [UInt8]? {
        guard let contents = try? JSONEncoder().encode(Contents(resource: resource, variants: variants)) else {
            return nil
        }
        return Self.mark + SHA256.checksum(of: contents, startingWith: SHA256()) + contents
    }

    package var responses: [CachedResponse] { variants.map(\.response) }

    /// Puts a response in the place of the one to the same fields, and returns the bodies that are no longer needed.
    package mutating func put(_ variant: Variant) -> [CacheBody] {
        var removed = variants.filter { $0.response.selecting == variant.response.selecting }
        variants.removeAll { $0.response.selecting == variant.response.selecting }
        variants.append(variant)
        while variants.count > Self.variantLimit { removed.append(variants.removeFirst()) }
        return removed.map(\.body)
    }

    /// Puts a response in the place of an older form of itself; returns whether it was there.
    package mutating func freshen(_ body: CacheBody, with response: CachedResponse) -> Bool {
        guard let index = variants.firstIndex(where: { $0.body == body }) else { return false }
        variants[index].response = response
        return true
    }

    /// Takes a response out; returns whether it was there.
    package mutating func remove(_ body: CacheBody) -> Bool {
        let count = variants.count
        variants.removeAll { $0.body == body }
        return variants.count < count
    }
}

/// Reads a body of which every byte was looked at before the first is handed out.
///
/// Not Sendable on purpose: it stays on the queue of its cache.
final class CacheBodyReader {
    private let folder: CacheFolder
    private let file: OpenFile
    private let length: Int64
    private var offset: Int64 = 0
    /// The whole body, where it is no longer than a chunk: then it is read once only.
    private var whole: Data?

    /// Opens a body; nil if it is not what its card says.
    init?(_ body: CacheBody, in folder: CacheFolder) {
        guard let (file, status) = folder.open(body.name), status.size == body.length else { return nil }
        self.folder = folder
        self.file = file
        length = body.length
        var checksum = CRC32()
        while offset < length {
            guard let chunk = readChunk() else { return nil }
            chunk.withUnsafeBytes { checksum.update($0) }
            if offset == length, Int64(chunk.count) == length { whole = chunk }
        }
        guard Hexadecimal.lower(checksum.finish()) == body.checksum else { return nil }
        offset = 0
    }

    /// The next bytes; nil at the end, or where the file can no longer be read.
    func next() -> Data? {
        guard offset < length else { return nil }
        if let whole {
            offset = length
            return whole
        }
        return readChunk()
    }

    /// Whether all bytes were handed out.
    var isAtEnd: Bool { offset == length }

    private func readChunk() -> Data? {
        let count = Int(min(Int64(CacheFolder.chunkSize), length - offset))
        var data = Data(count: count)
        var filled = 0
        while filled < count {
            let result = data.withUnsafeMutableBytes { buffer in
                folder.files.read(
                    file, into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]), at: offset + Int64(filled))
            }
            guard let read = try? result.get(), read > 0 else { return nil }
            filled += read
        }
        offset += Int64(count)
        return data
    }
}

/// Writes a body aside, as it comes.
///
/// Not Sendable on purpose: it stays on the queue of its cache.
final class CacheBodyWriter {
    private let folder: CacheFolder
    private let part: String
    private let file: OpenFile
    private var checksum = CRC32()
    private(set) var length: Int64 = 0
    private var isDone = false

    init?(in folder: CacheFolder) {
        part = folder.newName(CacheFile.partSuffix)
        guard let file = folder.create(part) else { return nil }
        self.folder = folder
        self.file = file
    }

    deinit {
        if !isDone { folder.remove(part) }
    }

    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        checksum.update(bytes)
        length += Int64(bytes.count)
        return folder.write(bytes, to: file)
    }

    /// Gives the body its name; from then on it lacks nothing but a card that speaks of it.
    func finish(key: String) -> CacheBody? {
        let name = folder.newName(CacheFile.bodySuffix, key: key)
        guard (try? folder.files.close(file).get()) != nil,
            (try? folder.files.rename(folder.entry(part), to: folder.entry(name)).get()) != nil
        else { return nil }
        isDone = true
        return CacheBody(name: name, length: length, checksum: Hexadecimal.lower(checksum.finish()))
    }
}
