// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Copies a file, a symbolic link, or a directory with its contents.
struct TreeCopier {
    private let work: FileWork
    /// The source, with the destination as the other path, for errors.
    private let root: FilePlace
    private let isDurable: Bool
    private var source: FolderTrail
    private var target: FolderTrail
    private let entry: FolderEntry
    private let targetEntry: FolderEntry
    private var targetRoot: FileStatus.Identity?
    /// The directories that are open, each with its name, its status, and the names of the items in it that remain to
    /// be copied.
    private var levels: [(name: PathBytes, status: FileStatus, names: [PathBytes])] = []

    init?(
        _ entry: FolderEntry, to targetEntry: FolderEntry, isDurable: Bool, at root: FilePlace, work: FileWork
    ) {
        guard let folder = entry.folder, let targetFolder = targetEntry.folder else { return nil }
        self.work = work
        self.root = root
        self.isDurable = isDurable
        self.entry = entry
        self.targetEntry = targetEntry
        source = FolderTrail(from: folder, files: work.files)
        target = FolderTrail(from: targetFolder, files: work.files)
    }

    mutating func copy() throws(FileInterruption) {
        try copy(entry.name, as: targetEntry.name)
        while let last = levels.indices.last {
            if let name = levels[last].names.popLast() {
                try copy(name, as: name)
            } else {
                try leave()
            }
        }
    }

    private mutating func copy(_ name: PathBytes, as newName: PathBytes) throws(FileInterruption) {
        try work.checkCancellation()
        let status = try work.files.status(of: FolderEntry(name, in: source.folder)).get(at: sourcePlace(name))
        switch status.kind {
        case .regular: try copyFile(name, as: newName, status)
        case .symbolicLink: try copyLink(name, as: newName)
        case .directory: try enter(name, as: newName)
        case .device, .other: throw .failed(sourcePlace(name).error(.unsupportedKind))
        }
        work.advanceByItem()
    }

    private func copyFile(
        _ name: PathBytes, as newName: PathBytes, _ known: FileStatus
    ) throws(FileInterruption) {
        // The paths are built once for each file, which costs little at the usual depth.
        try work.copyFile(
            FolderEntry(name, in: source.folder), known, to: FolderEntry(newName, in: target.folder),
            isDurable: isDurable, at: sourcePlace(name), targetPlace(name))
    }

    private func copyLink(_ name: PathBytes, as newName: PathBytes) throws(FileInterruption) {
        let link = FolderEntry(name, in: source.folder)
        let content = try work.files.readSymbolicLink(link).get(at: sourcePlace(name))
        let new = FolderEntry(newName, in: target.folder)
        try work.files.makeSymbolicLink(new, to: content).get(at: targetPlace(name))
    }

    private mutating func enter(_ name: PathBytes, as newName: PathBytes) throws(FileInterruption) {
        let new = FolderEntry(newName, in: target.folder)
        try work.files.makeDirectory(new, permissions: 0o700).get(at: targetPlace(name))
        let status = try source.enter(name).get(at: sourcePlace(name))
        let made = try target.enter(newName).get(at: targetPlace(name))
        let top = targetRoot ?? made.identity
        targetRoot = top
        // Otherwise, the copy would be copied too, and then the copy of the copy.
        guard status.identity != top else { throw .failed(rootPlace.error(.destinationInsideSource)) }
        let names = try work.files.names(in: source.folder).get(at: sourcePlace(name))
        levels.append((name, status, names))
    }

    private mutating func leave() throws(FileInterruption) {
        guard let level = levels.last else { return }
        _ = try source.leave().get(at: sourcePlace())
        let folder = try target.leave().get(at: targetPlace())
        // The permissions are set last, because they may not allow leaving the directory.
        try work.files.setPermissions(level.status.permissions & 0o1777, of: folder).get(at: targetPlace())
        try work.files.setTimes(of: folder, from: level.status).get(at: targetPlace())
        if isDurable { try work.files.synchronize(folder).get(at: targetPlace()) }
        levels.removeLast()
    }

    private var rootPlace: FilePlace { FilePlace(root.action, root.otherPath ?? "", otherPath: root.path) }

    private func sourcePlace(_ name: PathBytes? = nil) -> FilePlace { place(name, in: root) }

    private func targetPlace(_ name: PathBytes? = nil) -> FilePlace { place(name, in: rootPlace) }

    /// Returns the path of a name in the current directory of the source or the destination.
    ///
    /// The path is built only for errors.
    private func place(_ name: PathBytes?, in root: FilePlace) -> FilePlace {
        let names = (levels.map(\.name) + [name].compactMap { $0 }).dropFirst()
        var place = root
        for name in names {
            place.path += "/\(name)"
            place.otherPath? += "/\(name)"
        }
        return place
    }
}

extension FileWork {
    /// Copies the content, the permissions and the times of one file.
    fileprivate func copyFile(
        _ source: FolderEntry, _ known: FileStatus, to target: FolderEntry, isDurable: Bool,
        at sourcePlace: FilePlace, _ targetPlace: FilePlace
    ) throws(FileInterruption) {
        var input = try FileSource(source, flags: O_NOFOLLOW, at: sourcePlace, work: self)
        guard input.status.identity == known.identity else { throw .failed(sourcePlace.error(.changedMeanwhile)) }
        // No other user can read the file before it has the permissions of the original.
        let file = try files.createFile(target, permissions: 0o600).get(at: targetPlace)
        let output = FileSink(work: self, file: file, place: targetPlace)
        while let chunk = try input.next() { try output.write(chunk) }
        try files.setPermissions(known.permissions & 0o777, of: file).get(at: targetPlace)
        try files.setTimes(of: file, from: known).get(at: targetPlace)
        try output.finish(isDurable: isDurable)
    }

    /// Makes a copy that appears at its destination in one step.
    func copy(
        _ source: FileAddress, to destination: FileAddress, _ options: FileTransferOptions,
        for action: FileOperationError.Action
    ) throws(FileInterruption) {
        let place = FilePlace(action, source.description, otherPath: destination.description)
        let entry = try source.openEntryToRead(at: place, files: files)
        let status = try files.status(of: entry).get(at: place)
        if entry.folder == nil {
            guard status.kind == .regular else { throw .failed(place.error(.permissionDenied)) }
            // If the file cannot be read, the error names the file and not its destination.
            _ = try FileSource(entry, flags: O_NOFOLLOW, at: place, work: self)
        }
        expect(bytes: status.kind == .regular ? status.size : nil)
        let plan = StagedItem.Plan(
            address: destination, isDirectory: status.kind == .directory, replaces: options.existingItem == .replace,
            makesFolders: options.createsDirectories, isDurable: options.isDurable,
            place: FilePlace(action, destination.description, otherPath: source.description))
        try StagedItem.make(plan, work: self) { (item: StagedItem) throws(FileInterruption) in
            guard var copier = TreeCopier(entry, to: item.entry, isDurable: options.isDurable, at: place, work: self)
            else {
                try copyFile(
                    entry, status, to: item.entry, isDurable: options.isDurable, at: place, plan.place)
                return advanceByItem()
            }
            try copier.copy()
        }
    }
}
