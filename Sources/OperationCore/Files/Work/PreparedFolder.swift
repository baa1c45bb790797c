// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
