// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Writes into a file or device that is there, or makes the file.
struct FileOverwriting {
    private let destination: DestinationFolder
    private let output: FileSink
    private let isNew: Bool
    private let isDurable: Bool
    private let work: FileWork

    init(address: FileAddress, options: FileWriteOptions, work: FileWork) throws(FileInterruption) {
        let place = FilePlace(.writing, address.description)
        self.work = work
        isDurable = options.isDurable
        destination = try DestinationFolder(
            of: address, makingFolders: options.createsDirectories, at: place, work: work)
        let permissions = (options.permissions ?? 0o644) & 0o777
        let (opened, isNew) = Self.open(destination.entry, permissions: permissions, files: work.files)
        self.isNew = isNew
        do throws(FileInterruption) {
            let file = try opened.get(at: place)
            output = FileSink(work: work, file: file, place: place)
            // Nobody promises to read what is put into a pipe.
            let kind = try work.files.status(of: file).get(at: place).kind
            guard kind == .regular || kind == .device else { throw .failed(place.error(.unsupportedKind)) }
        } catch {
            if isNew, case .success = opened { _ = work.files.remove(destination.entry, isDirectory: false) }
            destination.discard()
            throw error
        }
    }

    func write(_ data: Data) throws(FileInterruption) {
        do throws(FileInterruption) {
            try output.write(data)
            try output.finish(isDurable: isDurable)
        } catch {
            if isNew { _ = work.files.remove(destination.entry, isDirectory: false) }
            destination.discard()
            throw error
        }
        if isDurable { try destination.synchronize() }
    }

    /// Opens what is there or makes it, and says which, whatever others do at the same moment.
    private static func open(
        _ entry: FolderEntry, permissions: UInt16, files: FileSystem
    ) -> (Result<OpenFile, SystemError>, isNew: Bool) {
        for _ in 0..<DestinationFolder.attempts {
            let made = files.createFile(entry, permissions: permissions)
            guard case .failure(SystemError(EEXIST)) = made else { return (made, true) }
            let opened = files.open(entry, O_WRONLY | O_TRUNC | O_NONBLOCK)
            guard case .failure(SystemError(ENOENT)) = opened else { return (opened, false) }
        }
        return (.failure(SystemError(ENOENT)), false)
    }
}
