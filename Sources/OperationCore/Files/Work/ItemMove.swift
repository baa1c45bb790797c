// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Moves something by renaming it, or, to another file system, by a copy and the removal of the original.
struct ItemMove {
    let source: FileAddress
    let destination: FileAddress
    let options: FileTransferOptions
    let work: FileWork

    private var place: FilePlace { FilePlace(.moving, source.description, otherPath: destination.description) }
    private var otherPlace: FilePlace { FilePlace(.moving, destination.description, otherPath: source.description) }

    func make() throws(FileInterruption) {
        try work.checkCancellation()
        let entry = try source.openEntry(at: place, files: work.files)
        let status = try work.files.status(of: entry).get(at: place)
        let (target, result) = try DestinationFolder.enter(
            of: destination, makingFolders: options.createsDirectories, at: otherPlace, work: work
        ) { rename(entry, status, to: $0.entry) }
        switch result {
        case .success:
            work.advanceByItem()
            guard options.isDurable, let folder = entry.folder else { return }
            // The new name first: a power cut may then leave both, but never neither.
            try target.synchronize()
            try work.files.synchronize(folder).get(at: place)
        case .failure(SystemError(EXDEV)):
            target.discard()
            try copyAndRemove(entry, status)
        case .failure(let error):
            target.discard()
            let isInside = error.number == EINVAL && status.kind == .directory
            throw .failed(otherPlace.error(for: error, code: isInside ? .destinationInsideSource : nil))
        }
    }

    private func rename(
        _ entry: FolderEntry, _ status: FileStatus, to target: FolderEntry
    ) -> Result<Void, SystemError> {
        guard options.existingItem == .replace else {
            return work.files.renameExclusively(entry, to: target, isDirectory: status.kind == .directory)
        }
        // The system would do it: a null device would be a file from then on.
        if case .success(let existing) = work.files.status(of: target), !existing.isReplaceable {
            return .failure(SystemError(ENXIO))
        }
        if isSecondName(target, of: status, at: entry) { return work.files.remove(entry, isDirectory: false) }
        return work.files.rename(entry, to: target)
    }

    /// Whether the destination is another name of the very file: renaming one to the other does nothing, says POSIX, and
    /// would leave both.
    private func isSecondName(_ target: FolderEntry, of status: FileStatus, at entry: FolderEntry) -> Bool {
        guard status.linkCount > 1, status.kind != .directory, let folder = entry.folder,
            let targetFolder = target.folder,
            case .success(let other) = work.files.status(of: target), other.identity == status.identity,
            case .success(let here) = work.files.status(of: folder),
            case .success(let there) = work.files.status(of: targetFolder)
        else { return false }
        // The same name in the same directory is the same name, also where upper and lower case are the same.
        let isSameName = entry.name.description.lowercased() == target.name.description.lowercased()
        return here.identity != there.identity || !isSameName
    }

    private func copyAndRemove(_ entry: FolderEntry, _ status: FileStatus) throws(FileInterruption) {
        let copy = StagedCopy(
            source: source, destination: destination, options: options, action: .moving, work: work)
        try copy.make()
        // The copy stands: from here there is no way back, only one to the end.
        var place = place
        place.action = .removing
        // What somebody saved under the same name meanwhile is in no copy.
        guard try work.files.status(of: entry).get(at: place).hasContent(of: status) else {
            throw .failed(place.error(.changedMeanwhile))
        }
        var remover = TreeRemover(work: work.uncancellable(), root: place)
        try remover.remove(entry)
        if options.isDurable, let folder = entry.folder { try work.files.synchronize(folder).get(at: place) }
    }
}
