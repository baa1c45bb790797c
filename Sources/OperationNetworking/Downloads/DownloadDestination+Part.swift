// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension DownloadDestination {
    /// Throws away what a download to this place received and did not complete, with which nobody wants to go on.
    ///
    /// ```swift
    /// func forget(_ url: URL, in folder: URL) throws {
    ///     try DownloadDestination.folder(folder).removePart(of: url)
    /// }
    /// ```
    ///
    /// A file that is complete stays. It works with the disk, and returns when it is done.
    ///
    /// - Parameters:
    ///   - url: What was downloaded. In a folder the part of another URL is another one; a file has one part,
    ///     which goes whatever URL it is of.
    ///   - options: Those of the download: in a folder the part goes by its ``DownloadOptions/resumeKey``, if it has
    ///     one.
    /// - Returns: Whether there was something to throw away.
    /// - Throws: ``NetworkError/Code/destinationBusy`` if a download is writing it just now, and whatever the file system
    ///   refuses.
    @discardableResult
    public func removePart(
        of url: URL, options: DownloadOptions = DownloadOptions()
    ) throws(NetworkError) -> Bool {
        guard !isTemporary else { return false }
        let source = DownloadNames.source(of: try NetworkRequest(url: url), options)
        var options = options
        (options.createsDirectories, options.existingItem) = (false, .replace)
        do throws(FileOperationError) {
            let store = try DownloadStore(self, source: source, options: options, files: FileSystem())
            store.discard()
            return store.hadPart
        } catch {
            if [.notFound, .folderNotFound].contains(error.code) { return false }
            throw NetworkError(
                code: NetworkError(error).code, phase: .saving,
                message: "What the download received cannot be thrown away. \(error.message)",
                underlying: NetworkError(error).underlying)
        }
    }
}
