// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Android)
    import Android
#endif

/// The system calls of file operations, in the only file that differs between platforms.
///
/// A call that fails returns -1 or `nil`, and `lastError` then contains the error number.
enum PosixCalls {
    static var workingDirectory: Int32 { AT_FDCWD }
    static var lastError: Int32 { errno }
    /// The number of the user who runs this program.
    static var user: UInt32 { UInt32(geteuid()) }

    static func open(_ folder: Int32, _ name: UnsafePointer<CChar>, _ flags: Int32, _ permissions: UInt16) -> Int {
        Int(openat(folder, name, flags | O_CLOEXEC | O_NOCTTY, mode_t(permissions)))
    }

    static func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64?) -> Int {
        guard let offset else { return readBytes(file, buffer.baseAddress, buffer.count) }
        return pread(file, buffer.baseAddress, buffer.count, off_t(offset))
    }

    static func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        writeBytes(file, bytes.baseAddress, bytes.count)
    }

    static func wait(for file: Int32, isWriting: Bool, milliseconds: Int32) {
        var request = pollfd(fd: file, events: Int16(isWriting ? POLLOUT : POLLIN), revents: 0)
        _ = poll(&request, 1, milliseconds)
    }

    /// Writes the data of a file to the disk, on Apple platforms also through the cache of the disk.
    static func synchronize(_ file: Int32) -> Int {
        #if canImport(Darwin)
            if fcntl(file, F_FULLFSYNC) != -1 { return 0 }
            // The system reports lost bytes only once, so another call follows only if the volume does not support this
            // one.
            guard [ENOTSUP, EOPNOTSUPP, ENOTTY, EINVAL, ENOSYS, ENODEV].contains(errno) else { return -1 }
        #endif
        return Int(fsync(file))
    }

    static func close(_ file: Int32) -> Int { closeDescriptor(file) }

    static func status(of file: Int32) -> FileStatus? {
        var value = stat()
        return fstat(file, &value) == 0 ? FileStatus(value) : nil
    }

    static func status(_ folder: Int32, _ name: UnsafePointer<CChar>) -> FileStatus? {
        var value = stat()
        return fstatat(folder, name, &value, AT_SYMLINK_NOFOLLOW) == 0 ? FileStatus(value) : nil
    }

    static func truncate(_ file: Int32, _ size: Int64) -> Int { Int(ftruncate(file, off_t(size))) }

    /// Locks an open file exclusively, and fails with `EWOULDBLOCK` if another caller has locked it in this way.
    static func claim(_ file: Int32) -> Int { Int(flock(file, LOCK_EX | LOCK_NB)) }

    /// Returns the number of bytes that an unprivileged program can still write to the volume of an open file or
    /// directory.
    ///
    /// If fewer than `wanted` bytes are free, the result on Apple platforms includes space that the system would free
    /// for the program.
    static func freeBytes(of file: Int32, wanted: Int64) -> Int64? {
        #if canImport(Darwin) && !os(tvOS) && !os(watchOS)
            guard let free = unusedBytes(of: file) else { return nil }
            guard free < wanted else { return free }
            var path = [CChar](repeating: 0, count: Int(PATH_MAX))
            guard fcntl(file, F_GETPATH, &path) != -1 else { return free }
            let url = URL(fileURLWithFileSystemRepresentation: path, isDirectory: true, relativeTo: nil)
            let values = try? url.resourceValues(forKeys: [.volumeAvailableCapacityForImportantUsageKey])
            return max(free, values?.volumeAvailableCapacityForImportantUsage ?? 0)
        #else
            return unusedBytes(of: file)
        #endif
    }

    private static func unusedBytes(of file: Int32) -> Int64? {
        #if canImport(Darwin)
            // On Apple platforms, the fields of `statvfs` have 32 bits, which are too few for a volume of 16 TiB.
            var value = statfs()
            guard fstatfs(file, &value) == 0 else { return nil }
            let blockSize = UInt64(value.f_bsize)
        #else
            var value = statvfs()
            guard fstatvfs(file, &value) == 0 else { return nil }
            let blockSize = UInt64(value.f_frsize)
        #endif
        // Some file systems, such as a `tmpfs` without a limit, report no numbers at all.
        guard value.f_blocks > 0 else { return .max }
        let (bytes, overflows) = UInt64(value.f_bavail).multipliedReportingOverflow(by: blockSize)
        return overflows ? .max : Int64(clamping: bytes)
    }

    static func setPermissions(_ file: Int32, _ permissions: UInt16) -> Int { Int(fchmod(file, mode_t(permissions))) }

    /// Sets the group of a file, and keeps its owner.
    static func setGroup(_ file: Int32, _ group: UInt32) -> Int { Int(fchown(file, uid_t.max, gid_t(group))) }

    /// Returns the permission bits that are removed from a new file in an open directory.
    ///
    /// The result is `nil` if only creating a file can show them. A call that reads the `umask` also changes it for all
    /// threads, but Linux shows it in the files of a process. If the directory has a default access control list, that
    /// list applies instead, and the result is `nil`. The result is also `nil` if the file system cannot report such a
    /// list.
    ///
    /// - Parameter start: A time in the past. The method reads the `umask` only if no call has read it since this time,
    ///   because reading it takes several system calls.
    static func mask(in folder: Int32, since start: DispatchTime) -> UInt16? {
        #if canImport(Glibc)
            guard let attribute, attribute(folder, "system.posix_acl_default", nil, 0) == -1,
                lastError == ENODATA
            else { return nil }
            if let last = lastMask.withLock({ $0 }), last.time > start { return last.value }
            let time = DispatchTime.now()
            let status = open(workingDirectory, "/proc/thread-self/status", O_RDONLY, 0)
            guard status >= 0 else { return nil }
            defer { _ = Glibc.close(Int32(status)) }
            // The second line contains the value in octal, after a name of at most 15 bytes.
            return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
                let text = buffer.prefix(max(read(Int32(status), buffer, at: nil), 0))
                let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
                guard lines.count == 3, lines[1].starts(with: "Umask:\t".utf8) else { return nil }
                let value: UInt16 = lines[1].dropFirst("Umask:\t".utf8.count).reduce(0) { $0 << 3 | UInt16($1 & 7) }
                lastMask.withLock { $0 = (value, time) }
                return value
            }
        #else
            return nil
        #endif
    }

    #if canImport(Glibc)
        /// The `umask` that was read last, and a time before it was read.
        private static let lastMask = Locked<(value: UInt16, time: DispatchTime)?>(nil)

        private typealias Attribute =
            @convention(c) (Int32, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int
        /// The function `fgetxattr`, whose header is in no module.
        private static let attribute: Attribute? =
            dlsym(nil, "fgetxattr").map { unsafeBitCast($0, to: Attribute.self) }
    #endif

    static func setTimes(_ file: Int32, from status: FileStatus) -> Int {
        let times = [status.accessed, status.modified].map { time in
            timespec(tv_sec: time_t(time.seconds), tv_nsec: time.nanoseconds)
        }
        return Int(futimens(file, times))
    }

    /// Adds the names in a directory, except "." and "..".
    static func list(_ folder: Int32, into names: inout [PathBytes]) -> Int {
        // The stream closes its descriptor, so it gets its own.
        let own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard own != -1 else { return -1 }
        guard let stream = fdopendir(own) else {
            let number = errno
            _ = closeDescriptor(own)
            errno = number
            return -1
        }
        defer {
            let number = errno
            closedir(stream)
            errno = number
        }
        errno = 0
        while let entry = readdir(stream) {
            // The name is read through the address of the entry, because only its actual bytes may be read.
            guard let offset = MemoryLayout<dirent>.offset(of: \dirent.d_name) else { continue }
            let start = UnsafeRawPointer(entry).advanced(by: offset)
            let length = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = PathBytes(UnsafeRawBufferPointer(start: start, count: length))
            if name != .here && name != .up { names.append(name) }
            errno = 0
        }
        return errno == 0 ? 0 : -1
    }

    static func makeDirectory(_ folder: Int32, _ name: UnsafePointer<CChar>, _ permissions: UInt16) -> Int {
        Int(mkdirat(folder, name, mode_t(permissions)))
    }

    static func makeLink(
        _ folder: Int32, _ name: UnsafePointer<CChar>, to newFolder: Int32, _ newName: UnsafePointer<CChar>
    ) -> Int {
        Int(linkat(folder, name, newFolder, newName, 0))
    }

    static func makeSymbolicLink(_ target: UnsafePointer<CChar>, _ folder: Int32, _ name: UnsafePointer<CChar>) -> Int {
        Int(symlinkat(target, folder, name))
    }

    static func readSymbolicLink(
        _ folder: Int32, _ name: UnsafePointer<CChar>, _ buffer: UnsafeMutableBufferPointer<CChar>
    ) -> Int {
        guard let start = buffer.baseAddress else { return 0 }
        return readlinkat(folder, name, start, buffer.count)
    }

    static func rename(
        _ folder: Int32, _ name: UnsafePointer<CChar>, to newFolder: Int32, _ newName: UnsafePointer<CChar>
    ) -> Int {
        Int(renameat(folder, name, newFolder, newName))
    }

    /// Renames an item in one step unless the new name exists, and fails with `ENOSYS` if the system has no such call.
    static func renameExclusively(
        _ folder: Int32, _ name: UnsafePointer<CChar>, to newFolder: Int32, _ newName: UnsafePointer<CChar>
    ) -> Int {
        #if canImport(Darwin)
            return Int(renameatx_np(folder, name, newFolder, newName, UInt32(RENAME_EXCL)))
        #else
            guard let renameWithFlags else {
                errno = ENOSYS
                return -1
            }
            let doNotReplace: UInt32 = 1
            return Int(renameWithFlags(folder, name, newFolder, newName, doNotReplace))
        #endif
    }

    static func remove(_ folder: Int32, _ name: UnsafePointer<CChar>, isDirectory: Bool) -> Int {
        Int(unlinkat(folder, name, isDirectory ? AT_REMOVEDIR : 0))
    }

    #if !canImport(Darwin)
        private typealias RenameWithFlags =
            @convention(c) (
                Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32
            ) -> Int32

        /// The function `renameat2`, which Swift's modules omit and older C libraries do not have.
        private static let renameWithFlags: RenameWithFlags? = dlsym(nil, "renameat2").map { symbol in
            unsafeBitCast(symbol, to: RenameWithFlags.self)
        }
    #endif
}

// These functions have their own names, because the methods above hide the C functions.
private func readBytes(_ file: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(file, start, count)
}

private func writeBytes(_ file: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
    write(file, start, count)
}

private func closeDescriptor(_ file: Int32) -> Int {
    Int(close(file))
}

extension Int32 {
    /// Creates the number of a socket type, such as `SOCK_STREAM`, which is an enumeration in glibc.
    package init(socket kind: some RawRepresentable<UInt32>) { self.init(bitPattern: kind.rawValue) }

    /// Creates the number of a socket type, which is an integer in other C libraries.
    package init(socket kind: Int32) { self = kind }
}

/// A system call that is about to be made, which tests can intercept.
package struct FileSystemCall: Sendable {
    /// A kind of system call.
    package enum Kind: String, Sendable, CaseIterable {
        case open, status, list, read, write, synchronize, close, setPermissions, setGroup, setTimes
        case truncate, claim, freeBytes
        case makeDirectory, makeLink, makeSymbolicLink, readSymbolicLink, rename, renameExclusively, remove
    }

    /// The decision of a test about a call.
    package enum Verdict: Sendable, Equatable {
        /// The call is made.
        case proceed
        /// The call is made with at most this number of bytes to read or write.
        case shorten(Int)
        /// The call is not made and fails with this error number.
        case fail(Int32)
    }

    package let kind: Kind
    /// The name that the call uses, if any.
    package let name: PathBytes?
}

/// An open file or directory, which is closed when this object is freed, if not before.
///
/// The object is deliberately not `Sendable` and stays on the thread of the operation that opened it.
package final class OpenFile {
    private var number: Int32?

    package init(_ number: Int32) {
        self.number = number
    }

    deinit {
        if let number { _ = PosixCalls.close(number) }
    }

    func withNumber<Result>(_ body: (Int32) -> Result) -> Result {
        // A closed file has no number, and the system refuses -1.
        withExtendedLifetime(self) { body(number ?? -1) }
    }

    /// Returns the number, which the caller must close, or `nil` if that was already done.
    func takeNumber() -> Int32? {
        exchange(&number, with: nil)
    }
}

/// The error number of a failed system call.
package struct SystemError: Error, Hashable, Sendable {
    package let number: Int32

    package init(_ number: Int32) {
        self.number = number
    }

    /// Whether the file system does not support the call, so that the caller can try another way.
    package var meansUnsupported: Bool { [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(number) }

    /// Whether an attribute cannot be set because the file system or its owner does not support it.
    package var meansNoSuchAttribute: Bool { meansUnsupported || number == EPERM }

    /// Whether a file cannot be locked because the file system does not support locks, as on an NFS volume without a
    /// lock service.
    package var meansNoLocks: Bool { meansUnsupported || number == ENOLCK }

    /// Whether there is nothing to synchronize, as for a device, a pipe or a read-only file system.
    package var meansNothingToSynchronize: Bool { meansUnsupported || number == EROFS }
}

extension Result where Failure == SystemError {
    /// Returns the value, or throws the error with the place at which it occurred.
    package func get(at place: @autoclosure () -> FilePlace) throws(FileInterruption) -> Success {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw .failed(place().error(for: error))
        }
    }

    /// Returns success without a value, also if the closure returns `true` for the error.
    package func ignoring(_ isHarmless: (SystemError) -> Bool) -> Result<Void, SystemError> {
        if case .failure(let error) = self, !isHarmless(error) { return .failure(error) }
        return .success(())
    }
}
