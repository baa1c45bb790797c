// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Copies a file, a symbolic link, or a directory with all that is in it.
struct TreeCopier {
    private struct Level {
        let name: PathBytes
        let status: FileStatus
        var names: [PathBytes]
    }

    private let work: FileWork
    /// Errors name the source as the path, the destination as the other.
    private let root: FilePlace
    private let isDurable: Bool
    private var source: FolderTrail
    private var target: FolderTrail
    private let entry: FolderEntry
    private let targetEntry: FolderEntry
    private var targetRoot: FileStatus.Identity?
    private var levels: [Level] = []

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
        // Put together once for each file; at the depth of a common tree that costs next to nothing.
        let place = targetPlace(name)
        var input = try FileSource(
            FolderEntry(name, in: source.folder), flags: O_NOFOLLOW, at: sourcePlace(name), work: work)
        guard input.status.identity == known.identity else { throw .failed(sourcePlace(name).error(.changedMeanwhile)) }
        // Nobody else reads it before it has the permissions of the original.
        let new = FolderEntry(newName, in: target.folder)
        let file = try work.files.createFile(new, permissions: 0o600).get(at: place)
        let output = FileSink(work: work, file: file, place: place)
        while let chunk = try input.next() { try output.write(chunk) }
        try work.files.setPermissions(known.permissions & 0o777, of: file).get(at: place)
        try work.files.setTimes(of: file, from: known).get(at: place)
        try output.finish(isDurable: isDurable)
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
        // The copy would be copied too, and the copy of the copy.
        guard status.identity != top else { throw .failed(rootPlace.error(.destinationInsideSource)) }
        let names = try work.files.names(in: source.folder).get(at: sourcePlace(name))
        levels.append(Level(name: name, status: status, names: names))
    }

    private mutating func leave() throws(FileInterruption) {
        guard let level = levels.last else { return }
        _ = try source.leave().get(at: sourcePlace())
        let folder = try target.leave().get(at: targetPlace())
        // Only now: the permissions may be such that nobody could go up from here any more.
        try work.files.setPermissions(level.status.permissions & 0o1777, of: folder).get(at: targetPlace())
        try work.files.setTimes(of: folder, from: level.status).get(at: targetPlace())
        if isDurable { try work.files.synchronize(folder).get(at: targetPlace()) }
        levels.removeLast()
    }

    private var rootPlace: FilePlace { FilePlace(root.action, root.otherPath ?? "", otherPath: root.path) }

    private func sourcePlace(_ name: PathBytes? = nil) -> FilePlace { place(name, in: root) }

    private func targetPlace(_ name: PathBytes? = nil) -> FilePlace { place(name, in: rootPlace) }

    /// The path of a name in the present directory, at the end that failed.
    ///
    /// Put together only for errors.
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
