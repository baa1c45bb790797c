// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The card of a download on the disk.
///
/// All of it is done by whoever has the claim on the part.
struct DownloadCardFile {
    private static let largest = 64 << 10

    private let folder: PreparedFolder
    private let entry: FolderEntry
    /// Of a card that is being written.
    private let passing: FolderEntry

    /// The file under the names of a download; nil if it has none.
    init?(_ names: DownloadNames, in folder: PreparedFolder) {
        guard let name = names.card, let passing = names.passing else { return nil }
        self.folder = folder
        entry = folder.entry(name)
        self.passing = folder.entry(passing)
    }

    private var files: FileSystem { folder.files }

    /// What the card says; nil if there is none, or none that only this program's user can have written.
    func read() -> DownloadCard? {
        guard case .success(let (file, status)) = files.openTrusted(entry), status.size <= Self.largest else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let result = bytes.withUnsafeMutableBytes { files.read(file, into: $0, at: 0) }
        guard case .success(bytes.count) = result else { return nil }
        return DownloadCard(text: bytes)
    }

    /// Puts a card in the place of the last one, in one step.
    func write(_ card: DownloadCard, isDurable: Bool) throws(FileOperationError) {
        guard let text = try? card.text() else { throw folder.error(.ioFailed) }
        try removePassing()
        do throws(FileOperationError) {
            let file = try folder.get(files.createFile(passing, permissions: 0o600))
            let count = try folder.get(text.withUnsafeBytes { files.write(file, $0) })
            guard count == text.count else { throw folder.error(.noSpace) }
            if isDurable { try folder.get(files.synchronize(file)) }
            try folder.get(files.close(file))
            try folder.get(files.rename(passing, to: entry))
        } catch {
            _ = files.remove(passing, isDirectory: false)
            throw error
        }
    }

    /// Takes away whatever bears the card's name, and returns whether something did.
    func remove() throws(FileOperationError) -> Bool {
        // There is one only where a program was killed while it wrote it.
        _ = files.remove(passing, isDirectory: false)
        let result = files.remove(entry, isDirectory: false)
        if case .failure(SystemError(ENOENT)) = result { return false }
        try folder.get(result)
        return true
    }

    /// What becomes of permissions of a new file here: the `umask` is taken off, and where the system does not tell it, a
    /// file must be made to see it.
    func permissions(asked: UInt16) throws(FileOperationError) -> UInt16 {
        if let permissions = files.permissions(asked: asked, in: folder.folder) { return permissions }
        try removePassing()
        let file = try folder.get(files.createFile(passing, permissions: asked))
        defer { _ = files.remove(passing, isDirectory: false) }
        return try folder.get(files.status(of: file)).permissions & 0o777
    }

    private func removePassing() throws(FileOperationError) {
        try folder.get(files.remove(passing, isDirectory: false).ignoringAbsence())
    }
}
