// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation that copies a file, a symbolic link, or a directory with its contents.
///
/// ```swift
/// let folder = FileManager.default.temporaryDirectory.appendingPathComponent("copies-\(UUID())")
/// let copy = FileCopyOperation(
///     from: URL(fileURLWithPath: "/etc/hostname"), to: folder.appendingPathComponent("hostname"),
///     options: FileTransferOptions(createsDirectories: true))
/// print(try await copy.run().path)
/// ```
///
/// The operation makes the copy under a temporary name next to the destination and then renames it. So a file or
/// directory appears at the destination either complete or not at all. The operation copies symbolic links as links and
/// never follows them. The copy keeps the permissions and the modification times of files and directories. It does not
/// keep owners, access control lists and extended attributes. Hard links become separate files. The operation refuses
/// pipes, sockets and devices.
public final class FileCopyOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The item to copy.
    public let source: URL
    /// The URL of the copy itself, not of the directory that contains it.
    ///
    /// This URL is also the result of the operation.
    public let destination: URL
    /// The options of the copy.
    public let options: FileTransferOptions

    /// Creates an operation that copies an item.
    ///
    /// - Parameters:
    ///   - source: The item to copy.
    ///   - destination: The URL of the copy itself, not of the directory that contains it.
    ///   - options: The options of the copy.
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

/// An operation that moves or renames a file, a symbolic link, or a directory.
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
/// Within a file system, the operation renames the item in one step. To move an item to another file system, the
/// operation copies the item like ``FileCopyOperation``, and then removes the original. If that removal fails, the copy
/// is complete, and the error has the action `removing`.
///
/// If the source itself changes during the copy, the copy is complete and the original remains. The error then has the
/// action `removing` and the code `changedMeanwhile`. This check does not cover changes inside a directory, so do not
/// change a directory while it is moved to another file system. Otherwise, the operation may remove such a change with
/// the original.
public final class FileMoveOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The item to move.
    public let source: URL
    /// The new URL of the item itself, not of the directory that contains it.
    ///
    /// This URL is also the result of the operation.
    public let destination: URL
    /// The options of the move.
    public let options: FileTransferOptions

    /// Creates an operation that moves an item.
    ///
    /// - Parameters:
    ///   - source: The item to move.
    ///   - destination: The new URL of the item itself, not of the directory that contains it.
    ///   - options: The options of the move.
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

/// The options of a copy or a move.
public struct FileTransferOptions: Sendable, Hashable {
    /// The rule for an item that already exists at the destination.
    ///
    /// The default is `refuse`.
    public var existingItem: ExistingItemRule

    /// A Boolean value that indicates whether the operation creates missing directories of the destination.
    ///
    /// The default is `false`.
    public var createsDirectories: Bool

    /// A Boolean value that indicates whether all data is written to the disk before the operation succeeds.
    ///
    /// The default is `true`, so that the data survives a power failure. If the value is `false`, copying a directory
    /// of many small files is several times faster.
    public var isDurable: Bool

    /// Creates options with the given values.
    public init(existingItem: ExistingItemRule = .refuse, createsDirectories: Bool = false, isDurable: Bool = true) {
        self.existingItem = existingItem
        self.createsDirectories = createsDirectories
        self.isDurable = isDurable
    }

    /// The default options, except that an item at the destination may be replaced.
    public static let replacing = FileTransferOptions(existingItem: .replace)
}
