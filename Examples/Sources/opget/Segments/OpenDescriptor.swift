// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An open file that is closed, and unlocked, when its last reference is released.
final class OpenDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit { close(number) }

    var size: Int64 {
        var status = stat()
        return fstat(number, &status) == 0 ? Int64(status.st_size) : -1
    }

    /// Writes all bytes, or returns false and sets `errno` if this fails.
    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        var (rest, offset) = (bytes, offset)
        while !rest.isEmpty {
            let count = pwrite(number, rest.baseAddress, rest.count, off_t(offset))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
            offset += Int64(count)
        }
        return true
    }

    func put(_ bytes: [UInt8], at offset: Int64) -> Bool { bytes.withUnsafeBytes { put($0, at: offset) } }

    /// Writes the buffered bytes and the permissions of the file to the disk, or returns false and sets `errno` if this
    /// fails.
    func synchronize() -> Bool {
        while !flush() {
            switch errno {
            case EINTR: continue
            // Some file systems do not support the call, and have nothing to synchronize.
            case EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP, EROFS: return true
            default: return false
            }
        }
        return true
    }

    private func flush() -> Bool {
        #if canImport(Darwin)
            // The plain call leaves the bytes in the cache of the disk, which might store the metadata first.
            if fcntl(number, F_FULLFSYNC) != -1 { return true }
            // The plain call is enough only if the volume does not support F_FULLFSYNC. After any other error, it could
            // succeed although the disk has lost bytes, because the system reports lost bytes only once.
            switch errno {
            case EINVAL, ENODEV, ENOSYS, ENOTSUP, ENOTTY, EOPNOTSUPP: break
            default: return false
            }
        #endif
        return fsync(number) == 0
    }
}
