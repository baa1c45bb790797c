// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Copies a file, a symbolic link, or a directory with all that is in it.
///
/// ```swift
/// let folder = FileManager.default.temporaryDirectory.appendingPathComponent("copies-\(UUID())")
/// let copy = FileCopyOperation(
///     from: URL(fileURLWithPath: "/etc/hostname"), to: folder.appendingPathComponent("hostname"),
///     options: FileTransferOptions(createsDirectories: true))
/// print(try await copy.run().path)
/// ```
///
/// The copy is made under a temporary name beside the destination and then renamed, so it appears whole or not at all,
/// directories included. Symbolic links are copied as links, never followed. Permissions and the time of the last change
/// are kept; owners, access lists and extended attributes are not, and hard links become files of their own. Pipes,
/// sockets and devices are refused.
public final class FileCopyOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// What is copied.
    public let source: URL
    /// The copy itself, not the directory that will hold it.
    ///
    /// It is the operation's result, too.
    public let destination: URL
    /// How it is copied.
    public let options: FileTransferOptions

    /// Makes an operation that copies what stands at `source`, to `destination` itself.
    public init(from source: URL, to destination: URL, options: FileTransferOptions = FileTransferOptions()) {
        self.source = source
        self.destination = destination
        self.options = options
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> URL {
        let copy = StagedCopy(
            source: try FileAddress(source, for: .copying), destination: try FileAddress(destination, for: .copying),
            options: options, action: .copying, work: work)
        try copy.make()
        return destination
    }
}

/// Moves or renames a file, a symbolic link, or a directory.
///
/// ```swift
/// let folder = FileManager.default.temporaryDirectory
/// let (old, new) = (folder.appendingPathComponent("\(UUID())"), folder.appendingPathComponent("\(UUID())"))
/// let write = FileWriteOperation(Data("Hello".utf8), to: old)
/// let move = FileMoveOperation(from: old, to: new)
/// try move.depend(on: write, otherwise: .cancel)
/// let queue = OperationQueue()
/// queue.addOperation(write)
/// queue.addOperation(move)
/// print(try await move.value.path)
/// ```
///
/// Within a file system it is renamed, in one step. To another it is copied as by ``FileCopyOperation``, and the
/// original removed once the copy stands; if that removal fails, the error has the action `removing`, and the copy is
/// complete. So it is, with the code `changedMeanwhile`, if a file was changed while it was copied: the original then
/// stays. Leave a directory alone meanwhile: what is changed in it after it was copied is removed with it.
public final class FileMoveOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// What is moved.
    public let source: URL
    /// Its new place, not the directory that will hold it.
    ///
    /// It is the operation's result, too.
    public let destination: URL
    /// How it is moved.
    public let options: FileTransferOptions

    /// Makes an operation that moves what stands at `source`, to `destination` itself.
    public init(from source: URL, to destination: URL, options: FileTransferOptions = FileTransferOptions()) {
        self.source = source
        self.destination = destination
        self.options = options
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> URL {
        let move = ItemMove(
            source: try FileAddress(source, for: .moving), destination: try FileAddress(destination, for: .moving),
            options: options, work: work)
        try move.make()
        return destination
    }
}

/// How something is copied or moved.
public struct FileTransferOptions: Sendable, Hashable {
    /// What becomes of something that stands at the destination: it stays, and the operation fails.
    public var existingItem: ExistingItemRule

    /// Whether directories that are missing on the way to the destination are made: false.
    public var createsDirectories: Bool

    /// Whether all is brought to the disk before the operation succeeds, to survive a power cut: true.
    ///
    /// Copying a directory of many small files is several times faster without.
    public var isDurable: Bool

    /// Options with these values.
    public init(existingItem: ExistingItemRule = .refuse, createsDirectories: Bool = false, isDurable: Bool = true) {
        self.existingItem = existingItem
        self.createsDirectories = createsDirectories
        self.isDurable = isDurable
    }

    /// The default values, but for a destination that may be replaced.
    public static let replacing = FileTransferOptions(existingItem: .replace)
}

/// What becomes of something that stands at the destination of a copy or a move.
public struct ExistingItemRule: Hashable, Sendable {
    private let name: String

    /// It stays, and the operation fails with the code `alreadyExists`.
    ///
    /// Of many that try at once, one succeeds.
    public static let refuse = ExistingItemRule(name: "refuse")

    /// It is replaced in one step: a file or link by a file or link, an empty directory by a directory.
    ///
    /// A directory with something in it is never replaced: the operation fails with the code `directoryNotEmpty`. Nor is a
    /// pipe, a socket or a device.
    public static let replace = ExistingItemRule(name: "replace")
}
