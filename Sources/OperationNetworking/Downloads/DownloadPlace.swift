// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The destination of a download, and the names of its files in that directory until it is complete.
struct DownloadPlace {
    let names: DownloadNames
    let folder: PreparedFolder
    /// The partial file in the directory.
    let part: FolderEntry
    private let destination: DownloadDestination
    private let existingItem: ExistingItemRule
    /// The URL of the file if its name is known, or of its directory.
    private let url: URL

    /// Opens the directory.
    init(
        _ destination: DownloadDestination, source: String, options: DownloadOptions
    ) throws(FileOperationError) {
        self.destination = destination
        existingItem = options.existingItem
        let name: String?
        switch destination.place {
        case .temporary(let folder):
            names = DownloadNames()
            (url, name) = (folder ?? FileManager.default.temporaryDirectory, names.part)
        case .file(let file):
            names = DownloadNames(identity: Hexadecimal.sha256("file \(file.lastPathComponent)".utf8))
            (url, name) = (file, nil)
        case .folder(let folder):
            names = DownloadNames(identity: source)
            (url, name) = (folder, names.part)
        }
        let makesFolders = options.createsDirectories && !destination.isTemporary
        folder = try PreparedFolder(
            of: url, named: name, makingFolders: makesFolders, action: .writing, files: options.files)
        part = folder.entry(names.part)
    }

    var isTemporary: Bool { names.metadata == nil }

    /// Whether the name of the file is known before the response.
    var isNamed: Bool {
        if case .file = destination.place { true } else { false }
    }

    /// Throws an error if an item at the destination must not be replaced, or if the volume does not allow the name.
    func check(for metadata: DownloadMetadata?) throws(FileOperationError) {
        guard !isTemporary else { return }
        let result = folder.files.status(of: folder.entry(name(metadata)))
        if case .failure(SystemError(ENAMETOOLONG)) = result { _ = try folder.get(result) }
        guard case .success(let status) = result else { return }
        guard existingItem == .replace else { throw folder.error(.alreadyExists) }
        guard status.kind != .directory else { throw folder.error(.isDirectory) }
        guard status.kind == .regular || status.kind == .symbolicLink else { throw folder.error(.unsupportedKind) }
    }

    /// Returns the name of the file, which is always one plain name, regardless of the metadata.
    func name(_ metadata: DownloadMetadata?) -> String {
        guard case .folder = destination.place else { return folder.name.description }
        // The name in the metadata was cleaned when the metadata was created or read.
        guard let name = metadata?.fileName, !name.isEmpty else { return "download" }
        return name
    }

    /// Returns the URL of the file with a given name.
    func url(named name: String) -> URL { isNamed ? url : url.appendingPathComponent(name, isDirectory: false) }

    /// Moves the partial file to its destination in one step.
    func rename(to target: FolderEntry, for metadata: DownloadMetadata?) throws(FileOperationError) {
        guard existingItem == .replace else {
            return try folder.get(folder.files.renameExclusively(part, to: target, isDirectory: false))
        }
        try check(for: metadata)
        try folder.get(folder.files.rename(part, to: target))
    }

    /// Returns the status of a file if it has the given name, or `nil` if another file has it.
    ///
    /// A file whose name refers to another file is neither moved nor removed.
    func status(of file: FileStatus.Identity, at entry: FolderEntry) -> FileStatus? {
        guard case .success(let named) = folder.files.status(of: entry), named.identity == file else { return nil }
        return named
    }
}

/// The existing or new partial file of a download, open and claimed.
///
/// Another item with its name is removed and never written to. Such an item is not a regular file, has a second name (a
/// hard link), or could have been written by another user.
struct DownloadClaim {
    /// The permissions of a partial file, which only its owner can access.
    static let permissions: UInt16 = 0o600
    private static let attempts = 64

    let file: OpenFile
    let identity: FileStatus.Identity
    /// The number of bytes in the existing partial file, or `nil` if the file is new.
    let size: Int64?

    /// Creates the partial file, or opens it.
    init(_ place: DownloadPlace) throws(FileOperationError) {
        let (folder, entry) = (place.folder, place.part)
        let files = folder.files
        for _ in 0..<Self.attempts {
            // Usually there is no file, so the call that creates it comes first.
            var opened = files.openToAppend(entry, makingItWith: Self.permissions)
            var isNew = true
            if case .failure(SystemError(EEXIST)) = opened {
                (opened, isNew) = (files.openToAppend(entry, makingItWith: nil), false)
            }
            switch opened {
            case .success(let file):
                guard let status = try Self.take(file, place, isNew: isNew) else { continue }
                if isNew || status.isTrusted(as: .regular) {
                    if !isNew, status.permissions != Self.permissions {
                        // The previous process may have been terminated when it was about to move the file to its
                        // destination.
                        try folder.get(files.setPermissions(Self.permissions, of: file))
                    }
                    (self.file, identity, size) = (file, status.identity, isNew ? nil : status.size)
                    return
                }
            case .failure(SystemError(ENOENT)) where !isNew: continue
            // The item is a symbolic link or a socket.
            case .failure(SystemError(ELOOP)), .failure(SystemError(ENXIO)): break
            // Its owner cannot write to the file, because a process was terminated immediately before it moved the
            // file.
            case .failure(SystemError(EACCES)) where Self.isOurs(entry, files): break
            case .failure(let error): _ = try folder.get(Result<Void, SystemError>.failure(error))
            }
            try folder.get(files.remove(entry, isDirectory: false).ignoring { $0.number == ENOENT })
        }
        throw folder.error(.busy)
    }

    /// Claims an open file, and returns `nil` if the name of the partial file no longer refers to it.
    ///
    /// The previous owner of the claim may have moved or removed the file, even one that was just created.
    ///
    /// - Parameter isNew: Whether the caller created the file. If it cannot be claimed, the method removes it, unless
    ///   another download has claimed it.
    static func take(_ file: OpenFile, _ place: DownloadPlace, isNew: Bool) throws(FileOperationError) -> FileStatus? {
        let (folder, files) = (place.folder, place.folder.files)
        let result = files.claim(file).flatMap { files.status(of: file) }
        if case .failure(let error) = result {
            guard error.number != EWOULDBLOCK else { throw folder.error(.busy) }
            if isNew { _ = files.remove(place.part, isDirectory: false) }
        }
        return place.status(of: try folder.get(result).identity, at: place.part)
    }

    private static func isOurs(_ entry: FolderEntry, _ files: FileSystem) -> Bool {
        guard case .success(let status) = files.status(of: entry) else { return false }
        return status.kind == .regular && status.isOwnerTrusted
    }
}
