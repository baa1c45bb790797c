// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Where the file of a download is to appear, and under which names it lies beside that until then.
struct DownloadPlace {
    let names: DownloadNames
    let folder: PreparedFolder
    private let destination: DownloadDestination
    private let existingItem: ExistingItemRule
    /// What would be written to, if it were not written beside it; of a download into a folder the part, for only the
    /// response says the name.
    private let url: URL

    /// Opens the directory.
    init(
        _ destination: DownloadDestination, source: String, options: DownloadOptions, files: FileSystem
    ) throws(FileOperationError) {
        self.destination = destination
        existingItem = options.existingItem
        switch destination.place {
        case .temporary(let folder):
            names = DownloadNames()
            url = (folder ?? FileManager.default.temporaryDirectory).appendingPathComponent(names.part)
        case .file(let file):
            names = DownloadNames(identity: "file \(file.lastPathComponent)")
            url = file
        case .folder(let folder):
            names = DownloadNames(identity: "source \(source)")
            url = folder.appendingPathComponent(names.part)
        }
        let makesFolders = options.createsDirectories && !destination.isTemporary
        folder = try PreparedFolder(of: url, makingFolders: makesFolders, action: .writing, files: files)
    }

    var isTemporary: Bool { names.card == nil }

    /// Whether the name of the file is known before the response is.
    var isNamed: Bool {
        if case .file = destination.place { true } else { false }
    }

    /// The part's name in the directory.
    var part: FolderEntry { folder.entry(names.part) }

    /// Refuses a place that is taken by something that is to stay.
    func check(for card: DownloadMetadata?) throws(FileOperationError) {
        guard !isTemporary, case .success(let status) = folder.files.status(of: folder.entry(name(card)))
        else { return }
        guard existingItem == .replace else { throw folder.error(.alreadyExists) }
        guard status.kind != .directory else { throw folder.error(.isDirectory) }
        guard status.kind == .regular || status.kind == .symbolicLink else { throw folder.error(.unsupportedKind) }
    }

    /// The name under which the file is to appear: one plain name, whatever the card says.
    func name(_ card: DownloadMetadata?) -> String {
        guard case .folder = destination.place else { return folder.name.description }
        let name = DownloadFileName.cleaned(card?.fileName ?? "")
        return name.isEmpty ? "download" : name
    }

    /// Where the file is when it has that name.
    func url(named name: String) -> URL {
        guard case .folder(let folder) = destination.place else { return url }
        return folder.appendingPathComponent(name)
    }

    /// Gives the part its name, in one step.
    func rename(to target: FolderEntry) throws(FileOperationError) {
        guard existingItem == .replace else {
            return try folder.get(folder.files.renameExclusively(part, to: target, isDirectory: false))
        }
        try folder.get(folder.files.rename(part, to: target))
    }

    /// Whether a name is that of an open file: somebody else's is neither moved nor removed.
    func isHere(_ file: OpenFile, _ entry: FolderEntry) -> Bool { status(of: file, at: entry) != nil }

    /// The status of an open file that has the name; nil if another file has it.
    func status(of file: OpenFile, at entry: FolderEntry) -> FileStatus? {
        let files = folder.files
        guard case .success(let status) = files.status(of: file), case .success(let named) = files.status(of: entry),
            named.identity == status.identity
        else { return nil }
        return status
    }
}

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
