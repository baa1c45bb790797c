// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The paths of the hidden partial file and its metadata file, next to the destination.
struct SegmentNames: Sendable {
    static let prefix = ".opget-"

    let part: URL
    let metadata: URL

    init(for place: URL) {
        let key = SegmentMetadata.hash("file \(place.lastPathComponent)".utf8)
        let folder = place.deletingLastPathComponent()
        part = folder.appending(path: "\(Self.prefix)\(key).part")
        metadata = folder.appending(path: "\(Self.prefix)\(key).metadata")
    }

    /// A Boolean value that indicates whether a later run can resume the download.
    var exist: Bool { Self.isThere(metadata) && Self.isThere(part) }

    /// Removes both files, unless another program is writing them.
    ///
    /// - Parameter isOpen: A closure that is called after opening and before locking the partial file, for tests of
    ///   races with other programs.
    func remove(isOpen: () -> Void = {}) throws(FileFailure) {
        guard Self.isThere(metadata) || Self.isThere(part) else { return }
        // The call creates a missing partial file. While this program has locked the file, no other program can create
        // metadata with this name.
        let claim = try SegmentClaim.open(part, isOpen: isOpen)
        let errors = withExtendedLifetime(claim) {
            [metadata, part].map { unlink($0.path) == 0 ? 0 : errno }
        }
        if let error = errors.first(where: { $0 != 0 && $0 != ENOENT }) {
            throw SegmentedFile.failure("has earlier bytes that cannot be removed", error)
        }
    }

    /// Removes the metadata file if the partial file does not exist.
    ///
    /// After opget has moved the partial file to its destination, the metadata file still exists.
    func removeOrphan() {
        if !Self.isThere(part) { try? remove() }
    }

    private static func isThere(_ url: URL) -> Bool {
        var status = stat()
        return lstat(url.path, &status) == 0
    }
}
