// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The files of one download: the partial file, its metadata file, and the file at the destination.
///
/// The partial file is claimed while it is open (``DownloadClaim``), so that two downloads to one destination cannot
/// both write to it. Other users cannot read it until it is complete.
///
/// The class is not `Sendable` on purpose, because it stays on the queue of its download.
final class DownloadStore {
    private static let chunkSize = 256 << 10
    /// The size from which the metadata of a partial file is written during the download.
    ///
    /// Below this size, writing the metadata takes longer than requesting the bytes again. Most small downloads never
    /// need it.
    static let worthMetadata: Int64 = 64 << 10

    private let place: DownloadPlace
    private let options: DownloadOptions
    private let metadataFile: DownloadMetadataFile?
    private var file: OpenFile?
    private let identity: FileStatus.Identity
    /// The time at which the download began.
    private let start = DispatchTime.now()
    /// The status of the file at its destination, even if a later step failed.
    ///
    /// The value is `nil` before the file is there, and for a temporary file.
    private(set) var published: FileStatus?
    /// Whether there was no partial file before this one.
    private var isNew: Bool
    /// Whether the partial file contains no bytes, not even untrusted ones.
    private var isEmpty: Bool
    /// Whether there was a partial file when the store was opened.
    let hadPart: Bool
    private var metadata: DownloadMetadata?
    /// Whether the current metadata was not written yet.
    private var owesMetadata = false
    /// Whether a metadata file may exist.
    private var mayHaveMetadata = true
    /// Whether the metadata file describes the bytes of the partial file, perhaps with older values.
    private var hasMetadata = false
    /// The number of bytes in the partial file.
    private(set) var length: Int64 = 0
    /// The checksum of all bytes of the partial file, or `nil` if it was not computed for all of them.
    private var checksum: (any ChecksumStream)?

    private var folder: PreparedFolder { place.folder }
    private var files: FileSystem { place.folder.files }
    private var isTemporary: Bool { place.isTemporary }

    /// Opens the directory, and immediately throws the errors that would otherwise occur at the end.
    init(
        _ destination: DownloadDestination, source: String, options: DownloadOptions
    ) throws(FileOperationError) {
        self.options = options
        let (place, claim) = try Self.claim(destination, source, options)
        self.place = place
        metadataFile = DownloadMetadataFile(place.names, in: place.folder)
        (file, identity) = (claim.file, claim.identity)
        isNew = claim.size == nil
        isEmpty = claim.size ?? 0 == 0
        hadPart = claim.size != nil
        guard let size = claim.size else { return }
        metadata = try metadataFile?.read()
        hasMetadata = metadata != nil
        length = metadata?.trusted(of: size, boot: bootIdentity) ?? 0
    }

    deinit {
        if isTemporary { discard() }
    }

    /// Opens the directory and claims the partial file in it.
    ///
    /// Another download that created the directory may fail and remove it in the meantime. The method then repeats both
    /// steps.
    private static func claim(
        _ destination: DownloadDestination, _ source: String, _ options: DownloadOptions
    ) throws(FileOperationError) -> (DownloadPlace, DownloadClaim) {
        var attempt = 1
        while true {
            let place = try DownloadPlace(destination, source: source, options: options)
            do throws(FileOperationError) {
                if place.isNamed { try place.check(for: nil) }
                return (place, try DownloadClaim(place))
            } catch {
                let isGone = options.createsDirectories && !place.isTemporary && place.folder.isGone
                place.folder.discard()
                guard isGone, attempt < DestinationFolder.attempts else { throw error }
                attempt += 1
            }
        }
    }

    /// The trusted part of the partial file.
    var part: DownloadPart? { metadata.map { DownloadPart(metadata: $0, length: length) } }

    /// Returns the number of bytes that can still be written to the volume.
    func freeBytes(wanted: Int64) -> Int64 { (try? files.freeBytes(of: folder.folder, wanted: wanted).get()) ?? .max }

    /// Whether there is a partial file to resume or remove.
    var hasPart: Bool { file != nil }

    /// Throws an error if an item at the destination must not be replaced, or if the volume does not allow the name.
    func checkPlace(for metadata: DownloadMetadata?) throws(FileOperationError) { try place.check(for: metadata) }
}

// Methods that write the partial file.
extension DownloadStore {
    /// Empties the partial file for the first version or another version of the file.
    func begin(_ metadata: DownloadMetadata) throws(FileOperationError) {
        let file = try opened()
        // Metadata must never describe other bytes, not even after a power failure. So it is removed first, and durably
        // if it could come back. Beside a new partial file it cannot come back, because that file would be missing,
        // too.
        let mayComeBack = !isNew && !isTemporary
        if try removeMetadata() || mayComeBack { try folder.synchronize() }
        isNew = false
        if !isEmpty { try folder.get(files.truncate(file, to: 0)) }
        length = 0
        checksum = options.checksum?.algorithm.makeStream()
        record(metadata)
    }

    /// Truncates the partial file to the offset at which the server continues.
    ///
    /// If the method throws an error, the remaining bytes and their metadata are valid.
    func resume(from offset: Int64, _ metadata: DownloadMetadata) throws(FileOperationError) {
        if checksum == nil || offset != length {
            checksum = nil
            try folder.get(files.truncate(try opened(), to: offset))
        }
        length = offset
        var metadata = metadata
        let flushed = metadata.synchronized
        metadata.synchronized = min(flushed, offset)
        metadata.boot = bootIdentity
        // Usually, a further part of the same file changes nothing in the metadata on disk.
        if hasMetadata, !owesMetadata, metadata == self.metadata { return }
        record(metadata)
        do throws(FileOperationError) {
            try writeMetadata()
        } catch {
            // The metadata on disk must not count a byte as flushed that the response replaces.
            if flushed > offset { throw error }
        }
    }

    /// Appends bytes to the partial file.
    func write(_ bytes: UnsafeRawBufferPointer) throws(FileOperationError) {
        let file = try opened()
        isEmpty = false
        var rest = bytes
        while !rest.isEmpty {
            let count = try folder.get(files.write(file, rest))
            // A file that accepts no bytes without an error would cause an infinite loop.
            guard count > 0 else { throw folder.error(.ioFailed) }
            length += Int64(count)
            checksum?.update(UnsafeRawBufferPointer(rebasing: rest[..<count]))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
        // Without new metadata, the bytes are still valid. The next call tries again.
        if length >= Self.worthMetadata { try? writeMetadata() }
    }

    /// Flushes the partial file to disk, and then records this in the metadata.
    ///
    /// If the metadata cannot be written, the older metadata remains, which counts fewer bytes as flushed.
    func checkpoint() throws(FileOperationError) {
        guard var metadata, length > 0, !isTemporary else { return }
        if metadata.synchronized < length {
            try folder.get(files.synchronize(try opened()))
            metadata.synchronized = length
            record(metadata)
        }
        try? writeMetadata()
    }

    /// Stores the metadata, to be written when the download could be resumed with it.
    private func record(_ metadata: DownloadMetadata) {
        var metadata = metadata
        metadata.boot = bootIdentity
        self.metadata = metadata
        owesMetadata = metadata.validator != nil && options.keepsPart && metadataFile != nil
    }

    /// Writes the metadata if it changed.
    private func writeMetadata() throws(FileOperationError) {
        guard owesMetadata, let metadata else { return }
        mayHaveMetadata = true
        // Metadata that counts flushed bytes may replace metadata that is on the disk. A power failure must not leave
        // an empty file in its place.
        try metadataFile?.write(metadata, isDurable: metadata.synchronized > 0)
        (owesMetadata, hasMetadata) = (false, true)
    }

    private func opened() throws(FileOperationError) -> OpenFile {
        guard let file else { throw folder.error(.notFound) }
        return file
    }

    /// Removes the metadata file, and returns whether one existed, even one of another download.
    private func removeMetadata() throws(FileOperationError) -> Bool {
        (metadata, owesMetadata, hasMetadata) = (nil, false, false)
        let wasThere = try metadataFile?.remove(afterCrash: !isNew) ?? false
        mayHaveMetadata = false
        return wasThere
    }
}

// Methods that complete or discard the partial file.
extension DownloadStore {
    /// Returns the checksum of the whole partial file, or `nil` if the download was canceled in the meantime.
    ///
    /// The method reads the bytes again if the running checksum does not cover all of them.
    func takeChecksum(
        _ algorithm: ChecksumAlgorithm, unless cancellation: OneWayFlag
    ) throws(FileOperationError) -> [UInt8]? {
        if var checksum { return checksum.finish() }
        let file = try opened()
        var stream = algorithm.makeStream()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 64)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            if cancellation.isSet { return nil }
            let count = try folder.get(files.read(file, into: buffer, at: offset))
            guard count > 0 else { throw folder.error(.changedMeanwhile) }
            stream.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return stream.finish()
    }

    /// Flushes the partial file to disk if the options require it.
    ///
    /// After a failure, the system may already have dropped the unwritten bytes. The flush is not repeated, and the
    /// partial file is lost.
    func secure() throws(FileOperationError) {
        if options.isDurable, !isTemporary { try folder.get(files.synchronize(try opened())) }
    }

    /// Moves the partial file to its destination in one step, and returns its URL.
    ///
    /// A temporary file is already at its destination. From now on, it belongs to the caller.
    func publish() throws(FileOperationError) -> URL {
        let file = try opened()
        let name = place.name(metadata)
        guard !isTemporary else {
            try folder.get(files.close(file))
            self.file = nil
            return place.url(named: name)
        }
        guard place.status(of: identity, at: place.part)?.size == length else { throw folder.error(.changedMeanwhile) }
        let permissions = try metadataFile?.permissions(asked: options.permissions & 0o777, since: start)
        do throws(FileOperationError) {
            // Set the permissions at the last moment, because they could prevent resuming the download.
            try folder.get(files.setPermissions(permissions ?? DownloadClaim.permissions, of: file))
            try place.rename(to: folder.entry(name), for: metadata)
        } catch {
            _ = files.setPermissions(DownloadClaim.permissions, of: file)
            throw error
        }
        self.file = nil
        published = place.status(of: identity, at: folder.entry(name))
        if published == nil { throw folder.error(.changedMeanwhile) }
        forgetMetadata()
        if options.isDurable {
            // Flush the permissions. The bytes were flushed before.
            try folder.get(files.synchronize(file))
            try folder.synchronize()
        }
        try folder.get(files.close(file))
        return place.url(named: name)
    }

    /// Removes the metadata of a partial file that was moved to its destination.
    ///
    /// The claim moved with the file, so a new download may already have its own metadata. The metadata may be removed
    /// only with a claim on a file with the name of the partial file. If it remains, the next download removes it
    /// before it writes anything.
    private func forgetMetadata() {
        (metadata, owesMetadata) = (nil, false)
        guard mayHaveMetadata,
            case .success(let mark) = files.openToAppend(place.part, makingItWith: DownloadClaim.permissions),
            (try? DownloadClaim.take(mark, place, isNew: true)) != nil
        else { return }
        _ = try? removeMetadata()
        _ = files.remove(place.part, isDirectory: false)
    }

    /// Whether only the owner of this object can resume the download.
    var isKeptHere: Bool { isTemporary && isWorthKeeping }

    private var isWorthKeeping: Bool { options.keepsPart && metadata?.validator != nil && length > 0 }

    /// Keeps the partial file for a later download, flushed to disk if requested, or removes it if no download could
    /// resume it.
    func leave(isSynchronized: Bool) {
        guard !isTemporary, isWorthKeeping else { return discard() }
        do throws(FileOperationError) {
            if isSynchronized { try checkpoint() }
        } catch {
            return discard()
        }
        try? writeMetadata()
        guard hasMetadata else { return discard() }
        file = nil
    }

    /// Removes all files, and the directories that were created for them, or throws an error if a file remains.
    func remove() throws(FileOperationError) {
        guard let file = exchange(&file, with: nil) else { return }
        defer {
            _ = files.close(file)
            folder.discard()
        }
        // Remove the files while they are still claimed, so that they belong to this download. When the partial file is
        // gone, another download can use both names, so the metadata file is removed first.
        let removal = Result { () throws(FileOperationError) in _ = try removeMetadata() }
        if place.status(of: identity, at: place.part) != nil {
            try folder.get(files.remove(place.part, isDirectory: false))
        }
        try removal.get()
    }

    /// Removes all files, and the directories that were created for them, as far as possible.
    func discard() { try? remove() }
}

/// The metadata file of a download.
///
/// Only the owner of the claim on the partial file uses it.
struct DownloadMetadataFile {
    private static let largest = 64 << 10

    private let folder: PreparedFolder
    private let entry: FolderEntry
    /// A file that exists only for a moment, such as new metadata before it replaces the old metadata.
    ///
    /// If a terminated process left such a file, the next download removes it.
    private let passing: FolderEntry

    /// Creates the file for the names of a download, or returns `nil` if the download has no metadata file.
    init?(_ names: DownloadNames, in folder: PreparedFolder) {
        guard let name = names.metadata else { return nil }
        self.folder = folder
        entry = folder.entry(name)
        passing = folder.entry(name + ".new")
    }

    private var files: FileSystem { folder.files }

    /// Reads the metadata, or returns `nil` if there is none or if another user could have written it.
    ///
    /// If too many files are open, the method throws an error, because the metadata may be valid.
    func read() throws(FileOperationError) -> DownloadMetadata? {
        let opened = files.openTrusted(entry)
        if case .failure(let error) = opened, [EMFILE, ENFILE].contains(error.number) { _ = try folder.get(opened) }
        guard case .success(let (file, status)) = opened, status.size <= Self.largest else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let result = bytes.withUnsafeMutableBytes { files.read(file, into: $0, at: 0) }
        guard case .success(bytes.count) = result else { return nil }
        return DownloadMetadata(text: bytes)
    }

    /// Replaces the metadata in one step.
    func write(_ metadata: DownloadMetadata, isDurable: Bool) throws(FileOperationError) {
        guard let text = try? metadata.text() else { throw folder.error(.ioFailed) }
        try removePassing()
        try folder.get(files.replace(entry, with: text, by: passing, isDurable: isDurable))
    }

    /// Removes the metadata file, and returns whether one existed.
    ///
    /// - Parameter afterCrash: Whether the process that wrote the partial file may have been terminated while it wrote
    ///   metadata.
    func remove(afterCrash: Bool) throws(FileOperationError) -> Bool {
        let result = files.remove(entry, isDirectory: false)
        let isMissing = if case .failure(SystemError(ENOENT)) = result { true } else { false }
        if afterCrash || !isMissing { _ = files.remove(passing, isDirectory: false) }
        if !isMissing { try folder.get(result) }
        return !isMissing
    }

    /// Returns the permissions that a new file gets here, reduced by the `umask`.
    ///
    /// If the system does not report the `umask`, the method creates a file to find out.
    ///
    /// - Parameter start: The time at which the download began. A change of the `umask` after this time may have no
    ///   effect.
    func permissions(asked: UInt16, since start: DispatchTime) throws(FileOperationError) -> UInt16 {
        if let permissions = files.permissions(asked: asked, in: folder.folder, since: start) { return permissions }
        try removePassing()
        let file = try folder.get(files.createFile(passing, permissions: asked))
        defer { _ = files.remove(passing, isDirectory: false) }
        return try folder.get(files.status(of: file)).permissions & 0o777
    }

    private func removePassing() throws(FileOperationError) {
        try folder.get(files.remove(passing, isDirectory: false).ignoring { $0.number == ENOENT })
    }
}

/// The file names of a download.
struct DownloadNames {
    /// The name of the partial file.
    let part: String
    /// The name of the metadata file, or `nil` for a temporary file, which no other download resumes.
    let metadata: String?

    /// Creates names that the next download to the same destination finds again.
    ///
    /// - Parameter identity: A hash of the destination, or a random text. Its first 32 characters form the names, which
    ///   do not contain the name of the file, because that name may already have the maximum length.
    init(identity: String) {
        let name = ".operationkit-" + String(Substring(identity.utf8.prefix(32)))
        (part, metadata) = (name + ".part", name + ".metadata")
    }

    /// Creates the name of a file that no other download finds.
    init() {
        let random = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        part = "operationkit-\(String(random.0, radix: 36))\(String(random.1, radix: 36)).download"
        metadata = nil
    }

    /// Returns the identity of the downloaded resource, which is its URL or the key from the options.
    static func source(of request: NetworkRequest, _ options: DownloadOptions) -> String {
        // The URL and the key must not be stored on disk, so they are hashed.
        Hexadecimal.sha256((options.resumeKey.map { "key \($0)" } ?? "url \(request.url.absoluteString)").utf8)
    }
}

/// A string that changes with each boot of the system, or `nil` if the system does not provide one.
///
/// If the system has not been restarted, all bytes that a process wrote are in the file, even if the process crashed.
private let bootIdentity: String? = {
    #if canImport(Darwin)
        var bytes = [CChar](repeating: 0, count: 64)
        var count = bytes.count
        guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    #else
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        let trimmed = text.map { $0.filter { !$0.isWhitespace } }
        return trimmed?.isEmpty == false ? trimmed : nil
    #endif
}()
