// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation that copies a file, a symbolic link, or a directory with its contents.
///
/// ```swift
/// let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
///     "copies-\(UUID())")
/// let copy = FileCopyOperation(
///     from: URL(fileURLWithPath: "/etc/hostname"),
///     to: folder.appendingPathComponent("hostname"),
///     options: FileTransferOptions(createsDirectories: true))
/// print(try await copy.run().path)
/// ```
///
/// The operation creates the copy under a temporary name next to the destination and then renames the copy. Therefore,
/// the destination never contains an incomplete copy. The operation copies symbolic links as links and never follows
/// them. The copies of files and directories have the same permissions and modification times as the originals, but not
/// the same owner, access control lists or extended attributes. Hard links become separate files. The operation does
/// not copy pipes, sockets or devices.
public final class FileCopyOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The URL of the item to copy.
    public let source: URL
    /// The URL of the copy itself, not of the directory that contains it.
    ///
    /// This URL is also the result of the operation.
    public let destination: URL
    /// The options for the copy operation.
    package let options: FileTransferOptions

    /// Creates an operation that copies a file, a link or a directory.
    ///
    /// - Parameters:
    ///   - source: The URL of the item to copy.
    ///   - destination: The URL of the copy itself, not of the directory that contains it.
    ///   - options: The options for the copy operation. By default, the destination must not exist.
    public init(from source: URL, to destination: URL, options: FileTransferOptions = FileTransferOptions()) {
        self.source = source
        self.destination = destination
        self.options = options
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> URL {
        try work.copy(
            FileAddress(source, for: .copying), to: FileAddress(destination, for: .copying), options, for: .copying)
        return destination
    }
}

/// An operation that moves or renames a file, a symbolic link or a directory.
///
/// ```swift
/// let folder = FileManager.default.temporaryDirectory
/// let (old, new) = (
///     folder.appendingPathComponent("\(UUID())"),
///     folder.appendingPathComponent("\(UUID())")
/// )
/// let write = FileWriteOperation(Data("Hello".utf8), to: old)
/// let move = FileMoveOperation(from: old, to: new)
/// try move.depend(on: write, otherwise: .cancel)
/// let queue = OperationQueue()
/// queue.addOperation(write)
/// queue.addOperation(move)
/// print(try await move.value.path)
/// ```
///
/// Within a file system, the operation renames the item atomically. To move an item to another file system, the
/// operation copies the item like ``FileCopyOperation`` and then removes the original. If that removal fails, the copy
/// is complete, and the error has the action `removing`.
///
/// If the source changes during the copy, the operation completes the copy but does not remove the original. The
/// operation then fails with an error that has the action `removing` and the code `changedMeanwhile`. The operation
/// does not detect changes inside a directory. If you change the contents of a directory while the operation moves it
/// to another file system, your changes can be lost.
public final class FileMoveOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The URL of the item to move.
    public let source: URL
    /// The new URL of the item itself, not of the directory that contains it.
    ///
    /// This URL is also the result of the operation.
    public let destination: URL
    /// The options for the move operation.
    package let options: FileTransferOptions

    /// Creates an operation that moves a file, a link or a directory.
    ///
    /// - Parameters:
    ///   - source: The URL of the item to move.
    ///   - destination: The new URL of the item itself, not of the directory that contains it.
    ///   - options: The options for the move operation. By default, the destination must not exist.
    public init(from source: URL, to destination: URL, options: FileTransferOptions = FileTransferOptions()) {
        self.source = source
        self.destination = destination
        self.options = options
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> URL {
        try work.move(FileAddress(source, for: .moving), to: FileAddress(destination, for: .moving), options)
        return destination
    }
}

/// Options for an operation that copies or moves an item.
public struct FileTransferOptions: Sendable, Hashable {
    /// The rule for an item that already exists at the destination.
    ///
    /// The default is `refuse`.
    public var existingItem: ExistingItemRule

    /// A Boolean value that indicates whether the operation creates the missing directories in the destination path.
    ///
    /// The default is `false`.
    public var createsDirectories: Bool

    /// A Boolean value that indicates whether the operation flushes all copied data and all changed directories to the
    /// disk before it succeeds.
    ///
    /// The default is `true`, which protects the data against a power failure. If the value is `false`, copying a
    /// directory with many small files can be several times faster.
    public var isDurable: Bool

    /// Creates options for copying or moving an item.
    ///
    /// - Parameters:
    ///   - existingItem: The rule for an item that already exists at the destination. The default is `refuse`.
    ///   - createsDirectories: A Boolean value that indicates whether the operation creates missing directories. The
    ///     default is `false`.
    ///   - isDurable: A Boolean value that indicates whether the operation flushes all copied data and all changed
    ///     directories to the disk before it succeeds. The default is `true`.
    public init(existingItem: ExistingItemRule = .refuse, createsDirectories: Bool = false, isDurable: Bool = true) {
        self.existingItem = existingItem
        self.createsDirectories = createsDirectories
        self.isDurable = isDurable
    }

    /// The default options, except that the operation replaces an item at the destination.
    public static let replacing = FileTransferOptions(existingItem: .replace)
}
