// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The open directory of a new item, which may have been created for that item.
struct DestinationFolder {
    /// The maximum number of attempts if other operations remove a directory that this operation needs.
    static let attempts = 64

    private let work: FileWork
    private let place: FilePlace
    let folder: OpenFile
    let name: PathBytes
    /// The directories that were created for the item, with the outermost first.
    private var made: [PathBytes]

    init(
        of address: FileAddress, makingFolders: Bool, at place: FilePlace, work: FileWork
    ) throws(FileInterruption) {
        guard let (path, name) = address.parts else { throw .failed(place.error(.invalidPath)) }
        self.work = work
        self.place = place
        self.name = name
        var made: [PathBytes] = []
        let opened = Self.open(path, making: makingFolders, &made, files: work.files)
        if case .failure(let error) = opened {
            Self.remove(made, files: work.files)
            guard error.number != ENOENT else { throw .failed(place.error(for: error, code: .folderNotFound)) }
        }
        folder = try opened.get(at: place)
        self.made = made
    }

    /// Opens the directory and calls `body` with it, and repeats both if another operation removed the directory in the
    /// meantime.
    ///
    /// This happens if that operation created the directory and then failed.
    static func enter<Value>(
        of address: FileAddress, makingFolders: Bool, at place: FilePlace, work: FileWork,
        _ body: (DestinationFolder) -> Result<Value, SystemError>
    ) throws(FileInterruption) -> (DestinationFolder, Result<Value, SystemError>) {
        var attempt = 1
        while true {
            let destination = try DestinationFolder(of: address, makingFolders: makingFolders, at: place, work: work)
            let result = body(destination)
            guard makingFolders, attempt < attempts, case .failure = result, destination.isGone else {
                return (destination, result)
            }
            destination.discard()
            attempt += 1
        }
    }

    /// The entry of the new item.
    var entry: FolderEntry { FolderEntry(name, in: folder) }

    /// Removes the directories that were created, if they are empty.
    func discard() {
        Self.remove(made, files: work.files)
    }

    /// Whether the directory was removed, so that no item can be created in it anymore.
    var isGone: Bool {
        guard case .success(let status) = work.files.status(of: folder) else { return false }
        return status.linkCount == 0
    }

    /// Writes the names in the directory, and in the directories that were created, to the disk.
    func synchronize() throws(FileInterruption) {
        try work.files.synchronize(folder).get(at: place)
        for path in made {
            let outer = FolderEntry(PathBytes(Array(path.bytes) + Array("/..".utf8)))
            try work.files.openFolder(outer).flatMap { work.files.synchronize($0) }.get(at: place)
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
        let bytes = Array(path.bytes)
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
/// It is deliberately not `Sendable` and stays on the thread that opened it.
package final class PreparedFolder {
    package let files: FileSystem
    /// The last name in the URL.
    package let name: PathBytes
    private let destination: DestinationFolder
    private let place: FilePlace

    /// Opens the directory of a file, and creates missing directories if `makingFolders` is `true`.
    package init(
        of url: URL, makingFolders: Bool, action: FileOperationError.Action, files: FileSystem
    ) throws(FileOperationError) {
        self.files = files
        let work = FileWork(files: files, isCancelled: { false }, report: { _ in })
        do throws(FileInterruption) {
            let address = try FileAddress(url, for: action)
            place = FilePlace(action, address.description)
            destination = try DestinationFolder(of: address, makingFolders: makingFolders, at: place, work: work)
        } catch {
            throw Self.failure(error, action, url)
        }
        name = destination.name
    }

    /// The open directory.
    package var folder: OpenFile { destination.folder }

    /// Returns the entry of a name in the directory.
    package func entry(_ name: String) -> FolderEntry { FolderEntry(PathBytes(name), in: destination.folder) }

    /// Removes the directories that were created, if they are empty.
    package func discard() { destination.discard() }

    /// Writes the names in the directory, and in the directories that were created, to the disk.
    package func synchronize() throws(FileOperationError) {
        do throws(FileInterruption) {
            try destination.synchronize()
        } catch {
            throw Self.failure(error, place.action, URL(fileURLWithPath: place.path))
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

    private static func failure(
        _ interruption: FileInterruption, _ action: FileOperationError.Action, _ url: URL
    ) -> FileOperationError {
        switch interruption {
        case .failed(let error): error
        case .cancelled: FileOperationError(code: .busy, action: action, path: url.path)
        }
    }
}

/// A path down into a tree of directories and back up, with one directory open at a time.
///
/// So the depth is not limited by the stack, by the number of open files or by the length of a path. On the way up, the
/// trail checks that it returns to the same directory, because another program may move directories in the meantime.
struct FolderTrail {
    private let files: FileSystem
    private(set) var folder: OpenFile
    private var identities: [FileStatus.Identity] = []

    init(from folder: OpenFile, files: FileSystem) {
        self.folder = folder
        self.files = files
    }

    /// Enters a directory, which is never a symbolic link, and returns its status.
    mutating func enter(_ name: PathBytes) -> Result<FileStatus, SystemError> {
        files.status(of: folder).flatMap { here in
            files.openFolder(FolderEntry(name, in: folder)).flatMap { child in
                files.status(of: child).map { status in
                    identities.append(here.identity)
                    folder = child
                    return status
                }
            }
        }
    }

    /// Returns to the parent directory, and returns the directory that was left.
    mutating func leave() -> Result<OpenFile, SystemError> {
        guard let expected = identities.popLast() else { return .failure(SystemError(ENOENT)) }
        return files.openFolder(FolderEntry(.up, in: folder)).flatMap { parent in
            files.status(of: parent).flatMap { status in
                guard status.identity == expected else { return .failure(SystemError(ESTALE)) }
                return .success(exchange(&folder, with: parent))
            }
        }
    }
}
