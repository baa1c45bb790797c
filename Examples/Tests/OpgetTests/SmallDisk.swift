// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A small disk in memory, mounted in a folder.
final class SmallDisk: Sendable {
    let folder = FileManager.default.temporaryDirectory.appending(path: "opget-disk-\(UUID().uuidString)")

    /// Mounts the disk, or returns `nil` if that is not possible.
    ///
    /// - Parameter size: The size of the disk. A disk of the size 0 has no limit and reports no numbers.
    init?(size: String = "2m") {
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let isThere = Self.run(["mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", folder.path])
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
