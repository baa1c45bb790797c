// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A disk of two megabytes in memory, mounted in a folder.
final class SmallDisk: Sendable {
    let folder = FileManager.default.temporaryDirectory.appending(path: "opget-disk-\(UUID().uuidString)")

    /// Mounts the disk, or returns `nil` if that is not possible.
    init?() {
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let isThere = Self.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder.path])
        if !isThere {
            try? FileManager.default.removeItem(at: folder)
            return nil
        }
    }

    deinit {
        _ = Self.run(["umount", folder.path])
        try? FileManager.default.removeItem(at: folder)
    }

    /// Whether this process may mount such a disk.
    static let isPossible = SmallDisk() != nil

    private static func run(_ words: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
