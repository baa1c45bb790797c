// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Moves an item by renaming it, or by copying it to another file system and removing the original.
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
            of: destination, makingFolders: options.createsDirectories, at: otherPlace, files: work.files
        ) { rename(entry, status, to: $0.entry) }
        switch result {
        case .success:
            work.advanceByItem()
            guard options.isDurable, let folder = entry.folder else { return }
            // The new name is written first, so a power failure may leave both names but never neither.
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
        // The system would replace a device, such as `/dev/null`, with a file.
        if case .success(let existing) = work.files.status(of: target), !existing.isReplaceable {
            return .failure(SystemError(ENXIO))
        }
        if isSecondName(target, of: status, at: entry) { return work.files.remove(entry, isDirectory: false) }
        return work.files.rename(entry, to: target)
    }

    /// Returns whether the destination is another name of the same file.
    ///
    /// By the POSIX standard, renaming one name to the other has no effect and would leave both.
    private func isSecondName(_ target: FolderEntry, of status: FileStatus, at entry: FolderEntry) -> Bool {
        guard status.linkCount > 1, status.kind != .directory, let folder = entry.folder,
            let targetFolder = target.folder,
            case .success(let other) = work.files.status(of: target), other.identity == status.identity,
            case .success(let here) = work.files.status(of: folder),
            case .success(let there) = work.files.status(of: targetFolder)
        else { return false }
        if here.identity != there.identity { return true }
        if entry.name == target.name { return false }
        guard entry.name.description.lowercased() == target.name.description.lowercased() else { return true }
        // If the file system ignores case, both are the same name, and the directory contains only one of them.
        guard case .success(let names) = work.files.names(in: folder) else { return false }
        return names.contains(entry.name) && names.contains(target.name)
    }

    private func copyAndRemove(_ entry: FolderEntry, _ status: FileStatus) throws(FileInterruption) {
        try work.copy(source, to: destination, options, for: .moving)
        // The copy is complete, so the move is no longer canceled.
        var place = place
        place.action = .removing
        // If the file was saved under the same name in the meantime, the copy does not contain the new version.
        guard try work.files.status(of: entry).get(at: place).hasContent(of: status) else {
            throw .failed(place.error(.changedMeanwhile))
        }
        var remover = TreeRemover(work: work.uncancellable(), root: place)
        try remover.remove(entry)
        if options.isDurable, let folder = entry.folder { try work.files.synchronize(folder).get(at: place) }
    }
}
