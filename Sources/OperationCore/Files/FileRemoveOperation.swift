// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Removes a file, a symbolic link, or a directory with all that is in it.
///
/// The result: whether there was something.
///
/// ```swift
/// let url = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID())")
/// let remove = FileRemoveOperation(url, ignoresMissing: true)
/// print(try await remove.run())  // false
/// ```
///
/// If the URL names a symbolic link, the link is removed and its target stays. A slash at the end of the URL has no
/// meaning: if the name is that of a file, the file is removed. The depth of a directory does not matter. Cancelled on
/// the way, or failing on the way, the operation leaves what it has not removed yet.
public final class FileRemoveOperation: FileOperation<Bool>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// What is removed.
    public let url: URL
    /// Whether it is a success, too, if there is nothing to remove.
    public let ignoresMissing: Bool

    /// Makes an operation that removes what stands at `url`.
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
