// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Under which names the bytes of a file lie beside its place until it is whole, and what is known of them.
struct SegmentNames: Sendable {
    let part: URL
    let metadata: URL

    init(for place: URL) {
        let key = SegmentMetadata.hash("file \(place.lastPathComponent)".utf8)
        let folder = place.deletingLastPathComponent()
        part = folder.appending(path: ".opget-\(key).part")
        metadata = folder.appending(path: ".opget-\(key).metadata")
    }

    /// Whether there is something with which somebody might go on.
    var exist: Bool { Self.isThere(metadata) && Self.isThere(part) }

    /// Throws away what is there, unless somebody is writing it.
    func remove() throws(FileFailure) {
        // Who has the claim may remove: nobody else has the file of that name then.
        let claim = try SegmentClaim.open(part, makesFile: false)
        unlink(metadata.path)
        if claim != nil { unlink(part.path) }
    }

    /// Throws away a metadata file without bytes, which a program leaves that is killed when its file is in its place.
    func removeOrphan() {
        if !Self.isThere(part) { unlink(metadata.path) }
    }

    private static func isThere(_ url: URL) -> Bool {
        var status = stat()
        return lstat(url.path, &status) == 0
    }
}
