// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the system knows of a file that is to be sent.
package struct FileRegionStatus: Hashable, Sendable {
    package let size: Int64
    package let modificationTime: Int64
    package let isRegular: Bool
    /// Which file it is, whatever its name.
    package let device: UInt64
    package let inode: UInt64

    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    package init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        size = Int64(status.st_size)
        #if canImport(Darwin)
            let time = status.st_mtimespec
        #else
            let time = status.st_mtim
        #endif
        modificationTime = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        isRegular = status.st_mode & S_IFMT == S_IFREG
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
}
