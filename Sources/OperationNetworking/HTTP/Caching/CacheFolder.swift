// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The folder of a cache, whose methods report only that something failed, not why.
///
/// A cache that cannot read or write counts as empty. So does a cache in a folder to which another user could have
/// written, or whose URL is not a file URL. Files are not flushed to the disk, because a checksum detects the damage of
/// a power failure.
package struct CacheFolder {
    package static let chunkSize = 64 << 10

    package let url: URL
    package let files: FileSystem
    /// The maximum number of milliseconds to wait until another cache releases the folder.
    private let claimTries: Int
    /// Whether the URL names a folder on this computer.
    private let isLocal: Bool

    package init(url: URL, files: FileSystem = FileSystem(), claimTries: Int = 250) {
        self.url = url
        self.files = files
        self.claimTries = claimTries
        isLocal = (try? FileAddress(url, for: .reading)) != nil
    }

    /// Creates a missing folder for its owner alone, and reports a folder to which other users can write.
    package func prepare() {
        guard isLocal else {
            return OperationDiagnostics.report(
                .untrustedFile, by: "HTTPCache",
                "The URL of the folder does not name a folder on this computer, so the cache stays empty. Create the "
                    + "URL with URL(fileURLWithPath:).")
        }
        try? FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        guard !isTrusted, case .success = files.status(of: place) else { return }
        OperationDiagnostics.report(
            .untrustedFile, by: "HTTPCache",
            "The folder \(url.path) belongs to another user, or other users can write to it, so the cache stays empty. "
                + "Use your own folder with the permissions 0700.")
    }

    /// Whether no other user could have put a file into the folder.
    private var isTrusted: Bool { isLocal && files.isTrustedFolder(place) }

    private var place: FolderEntry { FolderEntry(PathBytes(url.path)) }

    func entry(_ name: String) -> FolderEntry { FolderEntry(PathBytes(url.path + "/" + name)) }

    /// Returns a name that no other file has.
    func newName(_ suffix: String, key: String = "") -> String {
        let random = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        return "\(key)-\(String(random.0, radix: 36))\(String(random.1, radix: 36))\(suffix)"
    }

    /// Changes metadata while no other cache of this folder does, in this process or in another.
    ///
    /// The wait for another cache is short, because its process may be stopped. After that wait, and on a file system
    /// without locks, only the later one of two concurrent changes counts.
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

    /// Replaces a small file in one step, and returns whether that succeeded.
    package func write(_ bytes: [UInt8], to name: String) -> Bool {
        guard isTrusted else { return false }
        let part = entry(newName(CacheFile.partSuffix))
        return (try? files.replace(entry(name), with: bytes, by: part, isDurable: false).get()) != nil
    }

    package func remove(_ name: String) {
        _ = files.remove(entry(name), isDirectory: false)
    }

    /// Records in the file that it was used, for caches that open the folder later.
    func touch(_ name: String, at moment: Date) {
        let path = url.appendingPathComponent(name).path
        try? FileManager.default.setAttributes([.modificationDate: moment], ofItemAtPath: path)
    }

    /// Returns the files of the cache, including files that are not trusted enough to be read, because they use space,
    /// too.
    ///
    /// The list does not contain files with other names and files of other users.
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
            return file.isPart || file.isMetadata || file.isBody ? file : nil
        }
    }
}

/// A file in the folder of a cache.
package struct CacheFile: Equatable, Sendable {
    package let name: String
    package let size: Int64
    /// The date at which the file was last written or used.
    package let used: Date

    package init(name: String, size: Int64, used: Date) {
        self.name = name
        self.size = size
        self.used = used
    }

    static let partSuffix = ".part"
    static let metadataSuffix = ".metadata"
    static let bodySuffix = ".body"
    /// The files with the latest removals and with the secret key, which stay when other files are removed.
    static let changes = "changes"
    static let secret = "secret"

    /// Whether the file is still being written, or was being written when its program ended.
    package var isPart: Bool { name.hasSuffix(Self.partSuffix) }
    package var isMetadata: Bool { name.hasSuffix(Self.metadataSuffix) }
    package var isBody: Bool { name.hasSuffix(Self.bodySuffix) }
    /// The part of the name that all files of one address share.
    package var key: String { String(name.prefix { $0 != "." && $0 != "-" }) }

    /// Returns the key of an address.
    package static func key(of resource: String) -> String { Hexadecimal.sha256(resource.utf8, byteCount: 16) }
}

/// The stored responses at one address, which differ in the headers of their requests, with the files of their bodies.
///
/// On disk, the metadata consists of an eight-byte mark, the SHA-256 of the rest, and the rest. Metadata with a missing
/// or changed byte is ignored.
package struct CacheMetadata: Equatable, Sendable, Codable {
    package struct Variant: Equatable, Sendable, Codable {
        package var response: CachedResponse
        package let body: CacheBody
    }

    package let resource: String
    package private(set) var variants: [Variant]

    private static let mark = Array("OKCACHE1".utf8)
    private static let variantLimit = 8

    package init(resource: String) {
        self.resource = resource
        variants = []
    }

    /// Decodes metadata, or returns `nil` if it is damaged or belongs to another address.
    package init?(_ bytes: [UInt8], resource: String) {
        let start = Self.mark.count + 32
        guard bytes.count > start, bytes.starts(with: Self.mark),
            bytes[Self.mark.count..<start].elementsEqual(SHA256.checksum(of: bytes[start...], startingWith: SHA256())),
            let metadata = try? JSONDecoder().decode(CacheMetadata.self, from: Data(bytes[start...])),
            metadata.resource == resource
        else { return nil }
        self = metadata
    }

    package func encoded() -> [UInt8]? {
        guard let contents = try? JSONEncoder().encode(self) else { return nil }
        return Self.mark + SHA256.checksum(of: contents, startingWith: SHA256()) + contents
    }

    package var responses: [CachedResponse] { variants.map(\.response) }

    /// Stores a response in place of one to the same request headers, and returns the bodies that are no longer needed.
    package mutating func put(_ variant: Variant) -> [CacheBody] {
        var removed = variants.filter { $0.response.selecting == variant.response.selecting }
        variants.removeAll { $0.response.selecting == variant.response.selecting }
        variants.append(variant)
        while variants.count > Self.variantLimit { removed.append(variants.removeFirst()) }
        return removed.map(\.body)
    }

    /// Replaces a response by its updated form, and returns whether it was stored.
    package mutating func freshen(_ body: CacheBody, with response: CachedResponse) -> Bool {
        guard let index = variants.firstIndex(where: { $0.body == body }) else { return false }
        variants[index].response = response
        return true
    }

    /// Removes a response, and returns whether it was stored.
    package mutating func remove(_ body: CacheBody) -> Bool {
        let count = variants.count
        variants.removeAll { $0.body == body }
        return variants.count < count
    }
}

/// A reader that verifies a whole body before it returns the first byte.
///
/// The reader is not `Sendable`, because it stays on the queue of its cache.
final class CacheBodyReader {
    private let folder: CacheFolder
    private let file: OpenFile
    private let length: Int64
    private var offset: Int64 = 0
    /// The whole body if it fits into one chunk, so that it is read only once.
    private var whole: Data?

    /// Opens a body, or returns `nil` if the body does not match its metadata.
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

    /// Returns the next bytes, or `nil` at the end or if the file can no longer be read.
    func next() -> Data? {
        guard offset < length else { return nil }
        if let whole {
            offset = length
            return whole
        }
        return readChunk()
    }

    /// Whether all bytes were returned.
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

/// A writer that writes a body to a temporary file as it arrives.
///
/// The writer is not `Sendable`, because it stays on the queue of its cache.
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
        return (try? folder.files.writeAll(file, bytes).get()) != nil
    }

    /// Gives the file its final name, after which only the metadata is missing.
    func finish(key: String) -> CacheBody? {
        let name = folder.newName(CacheFile.bodySuffix, key: key)
        guard (try? folder.files.close(file).get()) != nil,
            (try? folder.files.rename(folder.entry(part), to: folder.entry(name)).get()) != nil
        else { return nil }
        isDone = true
        return CacheBody(name: name, length: length, checksum: Hexadecimal.lower(checksum.finish()))
    }
}
