// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The open directory of a new item, which may have been created for that item.
package struct DestinationFolder {
    /// The maximum number of attempts if other operations remove a directory that this operation needs.
    package static let attempts = 64

    private let files: FileSystem
    private let place: FilePlace
    package let folder: OpenFile
    package let name: PathBytes
    /// The directories that were created for the item, with the outermost first.
    private var made: [PathBytes]

    package init(
        of address: FileAddress, makingFolders: Bool, at place: FilePlace, files: FileSystem
    ) throws(FileInterruption) {
        guard let (path, name) = address.parts else { throw .failed(place.error(.invalidPath)) }
        self.files = files
        self.place = place
        self.name = name
        var made: [PathBytes] = []
        let opened = Self.open(path, making: makingFolders, &made, files: files)
        if case .failure(let error) = opened {
            Self.remove(made, files: files)
            guard error.number != ENOENT else { throw .failed(place.error(for: error, code: .folderNotFound)) }
        }
        folder = try opened.get(at: place)
        self.made = made
    }

    /// Opens the directory and calls `body` with it, and repeats both if another operation removed the directory in the
    /// meantime.
    ///
    /// This happens if that operation created the directory and then failed.
    package static func enter<Value>(
        of address: FileAddress, makingFolders: Bool, at place: FilePlace, files: FileSystem,
        _ body: (DestinationFolder) -> Result<Value, SystemError>
    ) throws(FileInterruption) -> (DestinationFolder, Result<Value, SystemError>) {
        var attempt = 1
        while true {
            let destination = try DestinationFolder(of: address, makingFolders: makingFolders, at: place, files: files)
            let result = body(destination)
            guard makingFolders, attempt < attempts, case .failure = result, destination.isGone else {
                return (destination, result)
            }
            destination.discard()
            attempt += 1
        }
    }

    /// The entry of the new item.
    package var entry: FolderEntry { FolderEntry(name, in: folder) }

    /// Returns the entry of an item that is later renamed to the new item.
    ///
    /// The name does not contain the name of the new item, which may already have the maximum length.
    package func temporaryEntry() -> FolderEntry {
        let number = String(UInt64.random(in: .min ... .max), radix: 36)
        return FolderEntry(PathBytes(".operationkit-\(number).tmp"), in: folder)
    }

    /// Removes the directories that were created, if they are empty.
    package func discard() {
        Self.remove(made, files: files)
    }

    /// Whether the directory was removed, so that no item can be created in it anymore.
    package var isGone: Bool {
        guard case .success(let status) = files.status(of: folder) else { return false }
        return status.linkCount == 0
    }

    /// Writes the names in the directory, and in the directories that were created, to the disk.
    package func synchronize() throws(FileInterruption) {
        try files.synchronize(folder).get(at: place)
        for path in made {
            let outer = FolderEntry(PathBytes(path.bytes + Array("/..".utf8)))
            try files.openFolder(outer).flatMap { files.synchronize($0) }.get(at: place)
        }
    }

    private static func open(
        _ path: PathBytes, making: Bool, _ made: inout [PathBytes], files: FileSystem
    ) -> Result<OpenFile, SystemError> {
        let opened = files.openFolder(FolderEntry(path))
        guard making, case .failure(SystemError(ENOENT)) = opened else { return opened }
        // Another operation that failed may remove a directory that this operation needs. This operation then creates
        // its own.
        for _ in 0..<attempts {
            let opened = makeFolders(path, &made, files: files).flatMap { files.openFolder(FolderEntry(path)) }
            guard case .failure(SystemError(ENOENT)) = opened else { return opened }
        }
        return .failure(SystemError(ENOENT))
    }

    private static func makeFolders(
        _ path: PathBytes, _ made: inout [PathBytes], files: FileSystem
    ) -> Result<Void, SystemError> {
        let bytes = path.bytes
        let slash = UInt8(ascii: "/")
        for end in bytes.indices.map({ $0 + 1 }) where end == bytes.count || bytes[end] == slash {
            guard bytes[end - 1] != slash else { continue }
            let step = PathBytes(bytes[..<end])
            switch files.makeDirectory(FolderEntry(step), permissions: 0o777) {
            case .success: made.append(step)
            case .failure(SystemError(EEXIST)): continue
            case .failure(let error):
                // Some file systems report an error even if the directory exists.
                guard case .success = files.status(of: FolderEntry(step)) else { return .failure(error) }
            }
        }
        return .success(())
    }

    private static func remove(_ made: [PathBytes], files: FileSystem) {
        for path in made.reversed() { _ = files.remove(FolderEntry(path), isDirectory: true) }
    }
}

/// The directory of a new file, for code that writes the file outside a file operation.
///
/// The directory is deliberately not `Sendable` and stays on the thread that opened it.
package final class PreparedFolder {
    package let files: FileSystem
    /// The last name in the URL.
    package let name: PathBytes
    private let destination: DestinationFolder
    private let place: FilePlace

    /// Opens the directory of a file, and creates missing directories if `makingFolders` is `true`.
    ///
    /// - Parameters:
    ///   - url: The URL of the file. If you pass a `name`, the URL of the directory.
    ///   - name: The name of the file in the directory.
    package init(
        of url: URL, named name: String? = nil, makingFolders: Bool, action: FileOperationError.Action,
        files: FileSystem
    ) throws(FileOperationError) {
        self.files = files
        do throws(FileInterruption) {
            let whole = try FileAddress(url, for: action)
            let address = name.map { whole.appending($0) } ?? whole
            place = FilePlace(action, address.description)
            destination = try DestinationFolder(of: address, makingFolders: makingFolders, at: place, files: files)
        } catch {
            throw error.error(action, url)
        }
        self.name = destination.name
    }

    /// The open directory.
    package var folder: OpenFile { destination.folder }

    /// Returns the entry of a name in the directory.
    package func entry(_ name: String) -> FolderEntry { FolderEntry(PathBytes(name), in: destination.folder) }

    /// Removes the directories that were created, if they are empty.
    package func discard() { destination.discard() }

    /// Whether the directory was removed, so that no file can be created in it anymore.
    package var isGone: Bool { destination.isGone }

    /// Writes the names in the directory, and in the directories that were created, to the disk.
    package func synchronize() throws(FileOperationError) {
        do throws(FileInterruption) {
            try destination.synchronize()
        } catch {
            throw error.error(place.action, URL(fileURLWithPath: place.path))
        }
    }

    /// Returns the value of a call, or throws an error with the path of the file.
    package func get<Value>(
        _ result: Result<Value, SystemError>, code: FileOperationError.Code? = nil
    ) throws(FileOperationError) -> Value {
        switch result {
        case .success(let value): return value
        case .failure(let error): throw place.error(for: error, code: code)
        }
    }

    /// Returns an error that the system did not report.
    package func error(_ code: FileOperationError.Code) -> FileOperationError { place.error(code) }

    /// Replaces the file in one step with a file that only its owner can read.
    ///
    /// The file and its name are on the disk when this method returns. If an error occurs, the directories that were
    /// created are removed. A symbolic link is replaced itself.
    package func replaceFile(with bytes: [UInt8]) throws(FileOperationError) {
        // The system would replace a device, such as `/dev/null`, with a file.
        if case .success(let existing) = files.status(of: destination.entry), !existing.isReplaceable {
            throw error(.unsupportedKind)
        }
        let part = destination.temporaryEntry()
        let result = files.replace(destination.entry, with: bytes, by: part, isDurable: true)
        if case .failure = result { discard() }
        try get(result)
        try synchronize()
    }
}
