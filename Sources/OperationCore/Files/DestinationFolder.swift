// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The directory in which something is to appear, opened, and made first if so wished.
struct DestinationFolder {
    /// How often one begins anew because others take away what one counts on.
    static let attempts = 64

    private let work: FileWork
    private let place: FilePlace
    let folder: OpenFile
    let name: PathBytes
    /// The directories that were made for this, the outermost first.
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

    /// Opens the directory and lets `body` do something in it, both anew if another operation, which had made the
    /// directory and then failed, took it away meanwhile.
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

    /// The name's entry.
    var entry: FolderEntry { FolderEntry(name, in: folder) }

    /// Removes the directories that were made, if nobody has put anything into them.
    func discard() {
        Self.remove(made, files: work.files)
    }

    /// Whether somebody removed the directory, so that nothing can appear in it any more.
    var isGone: Bool {
        guard case .success(let status) = work.files.status(of: folder) else { return false }
        return status.linkCount == 0
    }

    /// Brings the directory's names to the disk, and those of the directories that were made.
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
        // Another operation that failed may take away a directory just as this one counts on it: then it makes its own.
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
                // Some file systems refuse before they look whether the directory is there.
                guard case .success = files.status(of: FolderEntry(step)) else { return .failure(error) }
            }
        }
        return .success(())
    }

    private static func remove(_ made: [PathBytes], files: FileSystem) {
        for path in made.reversed() { _ = files.remove(FolderEntry(path), isDirectory: true) }
    }
}

/// The directory in which a file is to appear, for whoever writes it outside of a file operation.
///
/// Not Sendable on purpose: it stays where it was opened.
package final class PreparedFolder {
    package let files: FileSystem
    /// The name that the URL ends in.
    package let name: PathBytes
    private let destination: DestinationFolder
    private let place: FilePlace

    /// Opens the directory of a file, and makes those that are missing if so wished.
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

    /// The directory itself.
    package var folder: OpenFile { destination.folder }

    /// A name in the directory.
    package func entry(_ name: String) -> FolderEntry { FolderEntry(PathBytes(name), in: destination.folder) }

    /// Removes the directories that were made, if nobody has put anything into them.
    package func discard() { destination.discard() }

    /// Brings the directory's names to the disk, and those of the directories that were made.
    package func synchronize() throws(FileOperationError) {
        do throws(FileInterruption) {
            try destination.synchronize()
        } catch {
            throw Self.failure(error, place.action, URL(fileURLWithPath: place.path))
        }
    }

    /// The value of a call; otherwise the failure with the path at which it happened.
    package func get<Value>(
        _ result: Result<Value, SystemError>, code: FileOperationError.Code? = nil
    ) throws(FileOperationError) -> Value {
        switch result {
        case .success(let value): return value
        case .failure(let error): throw place.error(for: error, code: code)
        }
    }

    /// A failure that is none of the system's.
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

/// A way down into a tree of directories and up again, with one of them open at a time.
///
/// So the depth is bounded neither by the stack nor by how many files may be open, nor by how long a path may be. On the
/// way up it makes sure that it comes to where it came from, in case somebody moves directories meanwhile.
struct FolderTrail {
    private let files: FileSystem
    private(set) var folder: OpenFile
    private var identities: [FileStatus.Identity] = []

    init(from folder: OpenFile, files: FileSystem) {
        self.folder = folder
        self.files = files
    }

    /// Goes down into a directory, which is never a symbolic link, and returns what is known of it.
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

    /// Goes up again and returns the directory that was left.
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
