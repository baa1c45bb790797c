// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A namespace for functions that open a partial file for one program at a time.
enum SegmentClaim {
    private static let attempts = 64

    /// Opens and locks a partial file, and creates a missing one.
    ///
    /// On a volume without file locks, such as an NFS volume without a lock service, the file is not locked.
    ///
    /// - Parameters:
    ///   - url: The path of the partial file.
    ///   - isOpen: A closure that is called after opening and before locking the file, for tests of races with other
    ///     programs.
    ///   - lock: A closure that locks an open file, for tests of volumes that refuse locks.
    static func open(
        _ url: URL, isOpen: () -> Void = {}, lock: (Int32) -> Int32 = { flock($0, LOCK_EX | LOCK_NB) }
    ) throws(FileFailure) -> OpenDescriptor {
        let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW
        for _ in 0..<attempts {
            var number = Foundation.open(url.path, flags)
            let isNew = number < 0 && errno == ENOENT
            if isNew {
                number = Foundation.open(url.path, flags | O_CREAT | O_EXCL, 0o600)
                // Another program has created the file in the meantime.
                if number < 0, errno == EEXIST { continue }
            }
            guard number >= 0 else { throw SegmentedFile.failure("cannot be opened", errno) }
            let descriptor = OpenDescriptor(number)
            isOpen()
            if lock(number) != 0 {
                let error = errno
                // Another program owns the file, even if this program has created it.
                guard error != EWOULDBLOCK else { throw busy }
                guard [EINVAL, ENOLCK, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(error) else {
                    if isNew { unlink(url.path) }
                    throw SegmentedFile.failure("cannot be locked", error)
                }
            }
            // The previous owner might have moved the file to its destination, or removed it.
            guard let status = presentStatus(of: number, at: url) else { continue }
            // On some volumes, each file belongs to another user, or every user can write to it.
            guard isNew || isTrusted(status) else {
                throw FileFailure(
                    .disk, "fileUnwritable",
                    "\(url.path) belongs to another user, or other users can write to it. Remove it.")
            }
            return descriptor
        }
        throw busy
    }

    /// Returns the bytes of a small file, or nil if there is no file or another user could have written to it.
    static func content(of url: URL) -> Data? {
        let number = Foundation.open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard number >= 0 else { return nil }
        let handle = FileHandle(fileDescriptor: number, closeOnDealloc: true)
        var status = stat()
        guard fstat(number, &status) == 0, isTrusted(status) else { return nil }
        return try? handle.readToEnd() ?? Data()
    }

    /// Returns whether the file is a regular file with one name, to which only the current user or the administrator
    /// could have written.
    ///
    /// OperationKit uses the same rule for its own files.
    private static func isTrusted(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_nlink <= 1 && [geteuid(), 0].contains(status.st_uid)
            && status.st_mode & 0o022 == 0
    }

    /// Returns the status of an open file, or nil if its path refers to another file.
    private static func presentStatus(of number: Int32, at url: URL) -> stat? {
        var (open, named) = (stat(), stat())
        guard fstat(number, &open) == 0, lstat(url.path, &named) == 0, open.st_dev == named.st_dev,
            open.st_ino == named.st_ino
        else { return nil }
        return open
    }

    private static var busy: FileFailure {
        FileFailure(
            .disk, "destinationBusy",
            "Another opget process, or another URL of this one, is writing this file. Wait until it is done.")
    }
}
