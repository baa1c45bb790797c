// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The part of a download, open and claimed: one that was there, or a new one.
///
/// Whatever stands under its name and is no plain file of one name (a link that somebody laid there, say), or may have been
/// written by another user, is taken away and never written through.
struct DownloadClaim {
    /// Of a part: its owner's alone.
    static let permissions: UInt16 = 0o600
    private static let attempts = 64

    let file: OpenFile
    /// How many bytes it had; nil if there was none.
    let size: Int64?

    /// Opens the part, or makes it.
    init(_ place: DownloadPlace) throws(FileOperationError) {
        let (folder, entry) = (place.folder, place.part)
        let files = folder.files
        for _ in 0..<Self.attempts {
            switch files.openToAppend(entry, makingItWith: nil) {
            case .success(let file):
                guard let status = try Self.take(file, place) else { continue }
                if status.isTrusted(as: .regular) {
                    if status.permissions != Self.permissions {
                        // Who had it before may have been killed when it was about to take its place.
                        try folder.get(files.setPermissions(Self.permissions, of: file))
                    }
                    (self.file, size) = (file, status.size)
                    return
                }
            case .failure(SystemError(ENOENT)):
                let made = files.openToAppend(entry, makingItWith: Self.permissions)
                if case .failure(SystemError(EEXIST)) = made { continue }
                let file = try folder.get(made)
                guard try Self.take(file, place) != nil else { continue }
                (self.file, size) = (file, nil)
                return
            // A link, or a socket.
            case .failure(SystemError(ELOOP)), .failure(SystemError(ENXIO)): break
            // A part to which its owner may not write, because of a kill just before it took its place.
            case .failure(SystemError(EACCES)) where Self.isOurs(entry, files): break
            case .failure(let error): _ = try folder.get(Result<Void, SystemError>.failure(error))
            }
            try folder.get(files.remove(entry, isDirectory: false).ignoringAbsence())
        }
        throw folder.error(.busy)
    }

    /// Claims an open file; nil if it is not that of the part's name any more.
    ///
    /// Who had the claim before may have put it in its place, or thrown it away: even one that was just made.
    private static func take(_ file: OpenFile, _ place: DownloadPlace) throws(FileOperationError) -> FileStatus? {
        let (folder, files) = (place.folder, place.folder.files)
        let result = files.claim(file)
        if case .failure(SystemError(EWOULDBLOCK)) = result { throw folder.error(.busy) }
        try folder.get(result)
        let status = try folder.get(files.status(of: file))
        guard case .success(let named) = files.status(of: place.part), named.identity == status.identity
        else { return nil }
        return status
    }

    private static func isOurs(_ entry: FolderEntry, _ files: FileSystem) -> Bool {
        guard case .success(let status) = files.status(of: entry) else { return false }
        return status.kind == .regular && status.isOwnerTrusted
    }
}
