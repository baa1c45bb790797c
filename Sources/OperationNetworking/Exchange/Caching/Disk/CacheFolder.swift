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
