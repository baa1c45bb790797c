// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
