// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension FileWork {
    /// Moves an item by renaming it, or by copying it to another file system and removing the original.
    func move(
        _ source: FileAddress, to destination: FileAddress, _ options: FileTransferOptions
    ) throws(FileInterruption) {
        let place = FilePlace(.moving, source.description, otherPath: destination.description)
        let otherPlace = FilePlace(.moving, destination.description, otherPath: source.description)
        try checkCancellation()
        let entry = try source.openEntry(at: place, files: files)
        let status = try files.status(of: entry).get(at: place)
        let replaces = options.existingItem == .replace
        let (target, result) = try DestinationFolder.enter(
            of: destination, makingFolders: options.createsDirectories, at: otherPlace, files: files
        ) { rename(entry, status, to: $0.entry, replaces: replaces) }
        switch result {
        case .success:
            advanceByItem()
            guard options.isDurable, let folder = entry.folder else { return }
            // The new name is written first, so a power failure may leave both names but never neither.
            try target.synchronize()
            try files.synchronize(folder).get(at: place)
        case .failure(SystemError(EXDEV)):
            target.discard()
            try copy(source, to: destination, options, for: .moving)
            // The copy is complete, so the move is no longer canceled.
            var place = place
            place.action = .removing
            try removeCopied(entry, status, isDurable: options.isDurable, at: place)
        case .failure(let error):
            target.discard()
            let isInside = error.number == EINVAL && status.kind == .directory
            throw .failed(otherPlace.error(for: error, code: isInside ? .destinationInsideSource : nil))
        }
    }

    private func rename(
        _ entry: FolderEntry, _ status: FileStatus, to target: FolderEntry, replaces: Bool
    ) -> Result<Void, SystemError> {
        guard replaces else {
            return files.renameExclusively(entry, to: target, isDirectory: status.kind == .directory)
        }
        // The system would replace a device, such as `/dev/null`, with a file.
        if case .success(let existing) = files.status(of: target), !existing.isReplaceable {
            return .failure(SystemError(ENXIO))
        }
        if isSecondName(target, of: status, at: entry) { return files.remove(entry, isDirectory: false) }
        return files.rename(entry, to: target)
    }

    /// Returns whether the destination is another name of the same file.
    ///
    /// By the POSIX standard, renaming one name to the other has no effect and would leave both.
    private func isSecondName(_ target: FolderEntry, of status: FileStatus, at entry: FolderEntry) -> Bool {
        guard status.linkCount > 1, status.kind != .directory, let folder = entry.folder,
            let targetFolder = target.folder,
            case .success(let other) = files.status(of: target), other.identity == status.identity,
            case .success(let here) = files.status(of: folder),
            case .success(let there) = files.status(of: targetFolder)
        else { return false }
        if here.identity != there.identity { return true }
        if entry.name == target.name { return false }
        guard entry.name.description.lowercased() == target.name.description.lowercased() else { return true }
        // If the file system ignores case, both are the same name, and the directory contains only one of them.
        guard case .success(let names) = files.names(in: folder) else { return false }
        return names.contains(entry.name) && names.contains(target.name)
    }

    private func removeCopied(
        _ entry: FolderEntry, _ status: FileStatus, isDurable: Bool, at place: FilePlace
    ) throws(FileInterruption) {
        // If the file was saved under the same name in the meantime, the copy does not contain the new version.
        guard try files.status(of: entry).get(at: place).hasContent(of: status) else {
            throw .failed(place.error(.changedMeanwhile))
        }
        var remover = TreeRemover(work: uncancellable(), root: place)
        try remover.remove(entry)
        if isDurable, let folder = entry.folder { try files.synchronize(folder).get(at: place) }
    }
}
