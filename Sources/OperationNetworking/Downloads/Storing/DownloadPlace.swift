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
    func check(for card: DownloadCard?) throws(FileOperationError) {
        guard !isTemporary, case .success(let status) = folder.files.status(of: folder.entry(name(card)))
        else { return }
        guard existingItem == .replace else { throw folder.error(.alreadyExists) }
        guard status.kind != .directory else { throw folder.error(.isDirectory) }
        guard status.kind == .regular || status.kind == .symbolicLink else { throw folder.error(.unsupportedKind) }
    }

    /// The name under which the file is to appear: one plain name, whatever the card says.
    func name(_ card: DownloadCard?) -> String {
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
