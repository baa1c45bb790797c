// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation that removes a file, a symbolic link, or a directory with its contents.
///
/// The result is `true` if the operation removed an item, and `false` if `ignoresMissing` is `true` and no item existed
/// at the URL.
///
/// ```swift
/// let url = FileManager.default.temporaryDirectory.appendingPathComponent(
///     "\(UUID())")
/// let remove = FileRemoveOperation(url, ignoresMissing: true)
/// print(try await remove.run())  // false
/// ```
///
/// If the URL names a symbolic link, the operation removes the link and not its target. The operation ignores a slash
/// at the end of the URL, even after a file name. Directories can be nested to any depth. If the operation is canceled
/// or fails, items that the operation has not removed yet remain.
public final class FileRemoveOperation: FileOperation<Bool>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The URL of the item to remove.
    public let url: URL
    /// A Boolean value that indicates whether the operation also succeeds if the item does not exist.
    ///
    /// The default is `false`, which makes the operation fail with the code `notFound`.
    package let ignoresMissing: Bool

    /// Creates an operation that removes the item at a URL.
    ///
    /// - Parameters:
    ///   - url: The URL of the item to remove.
    ///   - ignoresMissing: A Boolean value that indicates whether the operation also succeeds if the item does not
    ///     exist. The default is `false`.
    public init(_ url: URL, ignoresMissing: Bool = false) {
        self.url = url
        self.ignoresMissing = ignoresMissing
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> Bool {
        let address = try FileAddress(url, for: .removing)
        let place = FilePlace(.removing, address.description)
        do throws(FileInterruption) {
            var remover = TreeRemover(work: work, root: place)
            try remover.remove(try address.openEntry(at: place, files: work.files))
            return true
        } catch .failed(let error) where ignoresMissing && error.code == .notFound && error.path == place.path {
            return false
        } catch {
            throw error
        }
    }
}

/// Removes a file, a symbolic link, or a directory with its contents.
struct TreeRemover {
    private let work: FileWork
    private let root: FilePlace
    /// Whether this package created the tree, so that the permissions of its directories may be changed to empty them.
    private let isOwn: Bool
    private var trail: FolderTrail?
    /// The directories that are open, each with its name and the names of the items in it that remain to be removed.
    private var levels: [(name: PathBytes, names: [PathBytes])] = []

    init(work: FileWork, root: FilePlace, isOwn: Bool = false) {
        self.work = work
        self.root = root
        self.isOwn = isOwn
    }

    /// Removes the item with a name.
    ///
    /// Items in a directory that another program removes in the meantime are ignored. The item itself is not.
    mutating func remove(_ entry: FolderEntry) throws(FileInterruption) {
        guard let folder = entry.folder else { throw .failed(root.error(.invalidPath)) }
        trail = FolderTrail(from: folder, files: work.files)
        try visit(entry.name)
        while let last = levels.indices.last {
            if let name = levels[last].names.popLast() {
                try visit(name)
            } else {
                try leave()
            }
        }
    }

    private mutating func visit(_ name: PathBytes) throws(FileInterruption) {
        try work.checkCancellation()
        guard let folder = trail?.folder else { return }
        let entry = FolderEntry(name, in: folder)
        let status = work.files.status(of: entry)
        if case .failure(SystemError(ENOENT)) = status, !levels.isEmpty { return }
        if try status.get(at: place(name)).kind == .directory {
            try enter(name)
        } else {
            try removeUnlessGone(entry, isDirectory: false)
        }
    }

    private mutating func enter(_ name: PathBytes) throws(FileInterruption) {
        guard let status = trail?.enter(name) else { return }
        if case .failure(SystemError(ENOENT)) = status, !levels.isEmpty { return }
        guard let folder = trail?.folder else { return }
        // The directory was not entered. If it is empty, it can be removed although it cannot be read.
        if case .failure(SystemError(EACCES)) = status,
            case .success = work.files.remove(FolderEntry(name, in: folder), isDirectory: true)
        {
            return work.advanceByItem()
        }
        _ = try status.get(at: place(name))
        if isOwn { _ = work.files.setPermissions(0o700, of: folder) }
        let names = try work.files.names(in: folder).get(at: place(name))
        levels.append((name, names))
    }

    private mutating func leave() throws(FileInterruption) {
        guard let left = trail?.leave() else { return }
        _ = try left.get(at: place())
        guard let folder = trail?.folder, let level = levels.popLast() else { return }
        try removeUnlessGone(FolderEntry(level.name, in: folder), isDirectory: true)
    }

    private func removeUnlessGone(_ entry: FolderEntry, isDirectory: Bool) throws(FileInterruption) {
        let isRoot = levels.isEmpty && !isDirectory
        try work.files.remove(entry, isDirectory: isDirectory)
            .ignoring { $0.number == ENOENT && !isRoot }
            .get(at: place(entry.name))
        work.advanceByItem()
    }

    /// Returns the path of a name in the current directory.
    ///
    /// The path is built only for errors.
    private func place(_ name: PathBytes? = nil) -> FilePlace {
        // The first name is that of the root, whose path is known.
        let names = (levels.map(\.name) + [name].compactMap { $0 }).dropFirst()
        var place = root
        for name in names { place.path += "/\(name)" }
        return place
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
