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
