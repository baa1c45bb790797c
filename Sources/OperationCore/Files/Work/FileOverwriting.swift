// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Writes into a file or device that is there, or makes the file.
struct FileOverwriting {
    private let destination: DestinationFolder
    private let output: FileSink
    /// Which file this made; nil if it was there.
    private let made: FileStatus.Identity?
    private let isDurable: Bool
    private let work: FileWork

    init(address: FileAddress, options: FileWriteOptions, work: FileWork) throws(FileInterruption) {
        let place = FilePlace(.writing, address.description)
        self.work = work
        isDurable = options.isDurable
        let permissions = (options.permissions ?? 0o644) & 0o777
        let (destination, opened) = try DestinationFolder.enter(
            of: address, makingFolders: options.createsDirectories, at: place, work: work
        ) { Self.open($0.entry, permissions: permissions, files: work.files) }
        self.destination = destination
        do throws(FileInterruption) {
            let (file, isNew) = try opened.get(at: place)
            let status = try work.files.status(of: file).get(at: place)
            // Nobody promises to read what is put into a pipe.
            guard [.regular, .device].contains(status.kind) else { throw .failed(place.error(.unsupportedKind)) }
            made = isNew ? status.identity : nil
            output = FileSink(work: work, file: file, place: place, isDevice: status.kind == .device)
        } catch {
            if case .success((_, true)) = opened { _ = work.files.remove(destination.entry, isDirectory: false) }
            destination.discard()
            throw error
        }
    }

    func write(_ data: Data) throws(FileInterruption) {
        do throws(FileInterruption) {
            try output.write(data)
            try output.finish(isDurable: isDurable)
        } catch {
            discard()
            throw error
        }
        if isDurable { try destination.synchronize() }
    }

    /// Takes away what this made, but not what others put in its place.
    private func discard() {
        if let made, case .success(let status) = work.files.status(of: destination.entry), status.identity == made {
            _ = work.files.remove(destination.entry, isDirectory: false)
        }
        destination.discard()
    }

    /// Opens what is there or makes it, and says which, whatever others do at the same moment.
    private static func open(
        _ entry: FolderEntry, permissions: UInt16, files: FileSystem
    ) -> Result<(OpenFile, isNew: Bool), SystemError> {
        for _ in 0..<DestinationFolder.attempts {
            let made = files.createFile(entry, permissions: permissions)
            guard case .failure(SystemError(EEXIST)) = made else { return made.map { ($0, true) } }
            let opened = files.open(entry, O_WRONLY | O_TRUNC | O_NONBLOCK)
            guard case .failure(SystemError(ENOENT)) = opened else { return opened.map { ($0, false) } }
        }
        return .failure(SystemError(ENOENT))
    }
}
