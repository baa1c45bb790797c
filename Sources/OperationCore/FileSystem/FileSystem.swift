// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The only way from file operations to the system, which repeats interrupted calls and lets tests intercept calls.
package struct FileSystem: Sendable {
    /// A closure that decides about each call before it is made.
    package typealias Interceptor = @Sendable (FileSystemCall) -> FileSystemCall.Verdict

    private let interceptor: Interceptor?

    package init(interceptor: Interceptor? = nil) {
        self.interceptor = interceptor
    }

    /// Makes a system call, and repeats it if a signal interrupts it.
    ///
    /// `body` returns -1 if the call failed.
    func call(
        _ kind: FileSystemCall.Kind, _ name: PathBytes? = nil, _ body: (_ limit: Int) -> Int
    ) -> Result<Int, SystemError> {
        while true {
            var limit = Int.max
            switch interceptor?(FileSystemCall(kind: kind, name: name)) {
            case .fail(EINTR): continue
            case .fail(let number): return .failure(SystemError(number))
            case .shorten(let count): limit = max(count, 0)
            case .proceed, nil: break
            }
            let value = body(limit)
            if value != -1 { return .success(value) }
            let number = PosixCalls.lastError
            if number != EINTR { return .failure(SystemError(number)) }
        }
    }

    /// Makes a system call with a result other than a number.
    func call<Value>(
        _ kind: FileSystemCall.Kind, _ name: PathBytes? = nil, asking body: () -> Value?
    ) -> Result<Value, SystemError> {
        var answer: Value?
        return call(kind, name) { _ in
            answer = body()
            return answer == nil ? -1 : 0
        }.flatMap { _ in
            answer.map { .success($0) } ?? .failure(SystemError(EIO))
        }
    }
}

// Calls for open files.
extension FileSystem {
    /// Opens an item, or creates a file with the permissions if the flags contain `O_CREAT`.
    package func open(_ entry: FolderEntry, _ flags: Int32, permissions: UInt16 = 0) -> Result<OpenFile, SystemError> {
        call(.open, entry.name) { _ in
            entry.with { PosixCalls.open($0, $1, flags, permissions) }
        }.map { OpenFile(Int32(truncatingIfNeeded: $0)) }
    }

    /// Opens a directory.
    ///
    /// A symbolic link to a directory is followed only if the entry is a path.
    package func openFolder(_ entry: FolderEntry) -> Result<OpenFile, SystemError> {
        let following = entry.folder == nil ? 0 : O_NOFOLLOW
        return open(entry, O_RDONLY | O_DIRECTORY | following)
    }

    /// Creates a new file for writing, and fails if the name exists.
    package func createFile(_ entry: FolderEntry, permissions: UInt16) -> Result<OpenFile, SystemError> {
        open(entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, permissions: permissions)
    }

    /// Opens a file to read it and to append to it, or creates the file if `permissions` is not `nil`.
    ///
    /// With permissions, the call fails if the file exists. The call refuses a symbolic link and does not wait for a
    /// pipe.
    package func openToAppend(_ entry: FolderEntry, makingItWith permissions: UInt16?) -> Result<OpenFile, SystemError>
    {
        let flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK
        guard let permissions else { return open(entry, flags) }
        return open(entry, flags | O_CREAT | O_EXCL, permissions: permissions)
    }

    /// Reads into the buffer, from an offset or the current position, and returns zero at the end of the file.
    package func read(
        _ file: OpenFile, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64?
    ) -> Result<Int, SystemError> {
        call(.read) { limit in
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit))
            return file.withNumber { PosixCalls.read($0, part, at: offset) }
        }
    }

    /// Writes some of the bytes, and returns their number.
    package func write(_ file: OpenFile, _ bytes: UnsafeRawBufferPointer) -> Result<Int, SystemError> {
        call(.write) { limit in
            let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(limit))
            return file.withNumber { PosixCalls.write($0, part) }
        }
    }

    /// Shortens a file, or extends it with zeros.
    package func truncate(_ file: OpenFile, to size: Int64) -> Result<Void, SystemError> {
        call(.truncate) { _ in file.withNumber { PosixCalls.truncate($0, size) } }.map { _ in }
    }

    /// Locks an open file exclusively until it is closed, so that only one of several callers succeeds.
    ///
    /// The call also succeeds if the file system does not support such locks.
    package func claim(_ file: OpenFile) -> Result<Void, SystemError> {
        call(.claim) { _ in file.withNumber { PosixCalls.claim($0) } }.ignoring(\.meansNoLocks)
    }

    /// Returns the number of bytes that can still be written to the volume of a file or directory.
    ///
    /// If fewer than `wanted` bytes are free, the result may include space that the system would free for the program.
    package func freeBytes(of file: OpenFile, wanted: Int64) -> Result<Int64, SystemError> {
        call(.freeBytes, asking: { file.withNumber { PosixCalls.freeBytes(of: $0, wanted: wanted) } })
    }

    /// Returns the permissions that a new file in an open directory would get, or `nil` if only creating a file can
    /// show them.
    ///
    /// - Parameter start: A time in the past. A change of the `umask` after this time may have no effect.
    package func permissions(asked: UInt16, in folder: OpenFile, since start: DispatchTime) -> UInt16? {
        folder.withNumber { PosixCalls.mask(in: $0, since: start) }.map { asked & ~$0 }
    }

    /// Waits until a device can be read or written again, for at most a fiftieth of a second.
    package func wait(for file: OpenFile, isWriting: Bool) {
        file.withNumber { PosixCalls.wait(for: $0, isWriting: isWriting, milliseconds: 20) }
    }

    /// Writes a file, or the names in a directory, to the disk.
    package func synchronize(_ file: OpenFile) -> Result<Void, SystemError> {
        call(.synchronize) { _ in
            file.withNumber { PosixCalls.synchronize($0) }
        }.ignoring(\.meansNothingToSynchronize)
    }

    /// Closes a file, and returns the error of an earlier write that some file systems report only now.
    package func close(_ file: OpenFile) -> Result<Void, SystemError> {
        guard let number = file.takeNumber() else { return .success(()) }
        // The call is never repeated after EINTR, because the number may already belong to another file. The file is
        // closed even if a test lets the call fail.
        let result = PosixCalls.close(number)
        let failure = PosixCalls.lastError
        return call(.close) { _ in 0 }.flatMap { _ in
            result == 0 || failure == EINTR ? .success(()) : .failure(SystemError(failure))
        }
    }

    package func status(of file: OpenFile) -> Result<FileStatus, SystemError> {
        call(.status, asking: { file.withNumber { PosixCalls.status(of: $0) } })
    }

    /// Returns the names in a directory, except "." and "..".
    package func names(in folder: OpenFile) -> Result<[PathBytes], SystemError> {
        var names: [PathBytes] = []
        return call(.list) { _ in
            names = []
            return folder.withNumber { PosixCalls.list($0, into: &names) }
        }.map { _ in names }
    }

    /// Sets the exact permissions, if the file system supports permissions.
    package func setPermissions(_ permissions: UInt16, of file: OpenFile) -> Result<Void, SystemError> {
        call(.setPermissions) { _ in
            file.withNumber { PosixCalls.setPermissions($0, permissions) }
        }.ignoring(\.meansNoSuchAttribute)
    }

    /// Gives a new file the group and the permissions of a file that it replaces.
    ///
    /// If the program may not set the group, the permissions are reduced to those that any group may have.
    package func setAccess(of file: OpenFile, from replaced: FileStatus) -> Result<Void, SystemError> {
        status(of: file).flatMap { new in
            let hasGroup = new.group == replaced.group || setGroup(replaced.group, of: file)
            return setPermissions(hasGroup ? replaced.permissions & 0o777 : replaced.permissionsForAnyGroup, of: file)
        }
    }

    private func setGroup(_ group: UInt32, of file: OpenFile) -> Bool {
        (try? call(.setGroup) { _ in file.withNumber { PosixCalls.setGroup($0, group) } }.get()) != nil
    }

    /// Sets the times of the last access and the last change, if the file system supports them.
    package func setTimes(of file: OpenFile, from status: FileStatus) -> Result<Void, SystemError> {
        call(.setTimes) { _ in
            file.withNumber { PosixCalls.setTimes($0, from: status) }
        }.ignoring(\.meansNoSuchAttribute)
    }
}

// Calls for names in directories.
extension FileSystem {
    /// Returns the status of the item with a name, without following a symbolic link.
    package func status(of entry: FolderEntry) -> Result<FileStatus, SystemError> {
        call(.status, entry.name, asking: { entry.with { PosixCalls.status($0, $1) } })
    }

    package func makeDirectory(_ entry: FolderEntry, permissions: UInt16) -> Result<Void, SystemError> {
        call(.makeDirectory, entry.name) { _ in
            entry.with { PosixCalls.makeDirectory($0, $1, permissions) }
        }.map { _ in }
    }

    package func makeSymbolicLink(_ entry: FolderEntry, to target: PathBytes) -> Result<Void, SystemError> {
        call(.makeSymbolicLink, entry.name) { _ in
            FolderEntry(target).with { _, target in
                entry.with { PosixCalls.makeSymbolicLink(target, $0, $1) }
            }
        }.map { _ in }
    }

    package func readSymbolicLink(_ entry: FolderEntry) -> Result<PathBytes, SystemError> {
        // No system has a longer link, and a result that fills the buffer may be incomplete.
        let capacity = 4097
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
            call(.readSymbolicLink, entry.name) { _ in
                entry.with { PosixCalls.readSymbolicLink($0, $1, buffer) }
            }.flatMap { count in
                guard count < capacity else { return .failure(SystemError(ENAMETOOLONG)) }
                return .success(PathBytes(buffer.prefix(count).map { UInt8(bitPattern: $0) }))
            }
        }
    }

    /// Renames an item, and replaces an item with the new name, in one step.
    ///
    /// If that item is a directory that is not empty, the call fails with `ENOTEMPTY`.
    package func rename(_ entry: FolderEntry, to new: FolderEntry) -> Result<Void, SystemError> {
        let result = call(.rename, entry.name) { _ in
            entry.with { folder, name in new.with { PosixCalls.rename(folder, name, to: $0, $1) } }
        }
        // For such a directory, the POSIX standard also allows EEXIST, and XFS uses it. A network volume may report
        // EEXIST for a file that it does not replace.
        return result.map { _ in }.mapError { error in
            guard error.number == EEXIST, case .success(let existing) = status(of: new), existing.kind == .directory
            else { return error }
            return SystemError(ENOTEMPTY)
        }
    }

    package func remove(_ entry: FolderEntry, isDirectory: Bool) -> Result<Void, SystemError> {
        call(.remove, entry.name) { _ in
            entry.with { PosixCalls.remove($0, $1, isDirectory: isDirectory) }
        }.map { _ in }
    }

    /// Renames an item unless the new name exists.
    ///
    /// If several callers use the same new name at the same time, one succeeds and the others fail with `EEXIST`.
    package func renameExclusively(
        _ entry: FolderEntry, to new: FolderEntry, isDirectory: Bool
    ) -> Result<Void, SystemError> {
        let inOneStep = call(.renameExclusively, entry.name) { _ in
            entry.with { folder, name in new.with { PosixCalls.renameExclusively(folder, name, to: $0, $1) } }
        }
        switch inOneStep {
        case .success: return .success(())
        case .failure(let error) where error.meansUnsupported:
            return isDirectory ? renameByClaiming(entry, new) : renameByLinking(entry, new)
        case .failure(let error): return .failure(error)
        }
    }

    /// Renames a file by adding the second name, which fails if that name exists, and then removing the first name.
    private func renameByLinking(_ entry: FolderEntry, _ new: FolderEntry) -> Result<Void, SystemError> {
        let link = call(.makeLink, entry.name) { _ in
            entry.with { folder, name in new.with { PosixCalls.makeLink(folder, name, to: $0, $1) } }
        }
        if case .failure(let error) = link {
            return .failure(error.number == EPERM ? SystemError(ENOTSUP) : error)
        }
        return remove(entry, isDirectory: false).mapError { error in
            _ = remove(new, isDirectory: false)
            return error
        }
    }

    /// Renames a directory by creating an empty directory, which only one caller can do, and then replacing it.
    ///
    /// A rename never replaces a directory that is not empty.
    private func renameByClaiming(_ entry: FolderEntry, _ new: FolderEntry) -> Result<Void, SystemError> {
        makeDirectory(new, permissions: 0o700).flatMap {
            rename(entry, to: new).mapError { error in
                _ = remove(new, isDirectory: true)
                return error
            }
        }
    }
}

// Whole files.
extension FileSystem {
    /// Writes all bytes to a file, in as many calls as necessary.
    package func writeAll(_ file: OpenFile, _ bytes: UnsafeRawBufferPointer) -> Result<Void, SystemError> {
        var rest = bytes
        while !rest.isEmpty {
            switch write(file, rest) {
            case .success(let count) where count > 0: rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
            // If the system writes no bytes and reports no error, the loop would never end.
            case .success: return .failure(SystemError(EIO))
            case .failure(let error): return .failure(error)
            }
        }
        return .success(())
    }

    /// Replaces a small file in one step with a file that only its owner can read.
    ///
    /// - Parameters:
    ///   - entry: The file to replace, which need not exist.
    ///   - bytes: The new content.
    ///   - part: The name under which the new file is written. If an error occurs, this file is removed.
    ///   - isDurable: Whether the bytes are on the disk before the file is replaced.
    package func replace(
        _ entry: FolderEntry, with bytes: [UInt8], by part: FolderEntry, isDurable: Bool
    ) -> Result<Void, SystemError> {
        createFile(part, permissions: 0o600).flatMap { file in
            let result = bytes.withUnsafeBytes { writeAll(file, $0) }
                .flatMap { isDurable ? synchronize(file) : .success(()) }
                .flatMap { close(file) }
                .flatMap { rename(part, to: entry) }
            if case .failure = result { _ = remove(part, isDirectory: false) }
            return result
        }
    }
}

extension SystemError {
    /// An error for an item that another user could have written to, that is a symbolic link, or that has several
    /// names.
    package static let untrusted = SystemError(EPERM)
}

// Files that are read again later must be files that this program wrote.
extension FileSystem {
    /// Opens a regular file for reading, unless another user could have written to it or it has several names.
    ///
    /// The method does not follow a symbolic link and does not wait for a pipe. The method checks the open file and not
    /// its name.
    package func openTrusted(_ entry: FolderEntry) -> Result<(file: OpenFile, status: FileStatus), SystemError> {
        switch open(entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) {
        case .failure(SystemError(ELOOP)): return .failure(.untrusted)
        case .failure(let error): return .failure(error)
        case .success(let file):
            return status(of: file).flatMap { status in
                if status.kind == .directory { return .failure(SystemError(EISDIR)) }
                return status.isTrusted(as: .regular) ? .success((file, status)) : .failure(.untrusted)
            }
        }
    }

    /// Reads all bytes of a regular file, unless another user could have written to it or it has several names.
    package func readTrusted(_ entry: FolderEntry, limit: Int) -> Result<[UInt8], SystemError> {
        openTrusted(entry).flatMap { file, status in
            guard status.size <= Int64(limit) else { return .failure(SystemError(EFBIG)) }
            var bytes = [UInt8](repeating: 0, count: Int(status.size))
            var count = 0
            while count < bytes.count {
                let result = bytes.withUnsafeMutableBytes { buffer in
                    read(file, into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]), at: Int64(count))
                }
                switch result {
                case .failure(let error): return .failure(error)
                case .success(0): return .failure(SystemError(EIO))
                case .success(let portion): count += portion
                }
            }
            return .success(bytes)
        }
    }

    /// Returns whether other users can neither replace nor remove this program's files in a directory.
    ///
    /// A symbolic link is accepted if no other user could have created it and the same is true of the directory.
    package func isTrustedFolder(_ entry: FolderEntry) -> Bool {
        guard case .success(let named) = status(of: entry) else { return false }
        guard named.kind == .symbolicLink else { return named.isTrusted(as: .directory) }
        guard named.isOwnerTrusted, case .success(let folder) = openFolder(entry) else { return false }
        return (try? status(of: folder).get())?.isTrusted(as: .directory) == true
    }
}

/// The status of a file, as the system reports it.
package struct FileStatus: Sendable {
    package enum Kind: Sendable { case regular, directory, symbolicLink, device, other }

    /// The identity of a file, which does not depend on its names.
    package struct Identity: Hashable, Sendable {
        let device: UInt64
        let number: UInt64
    }

    /// A time as the file system stores it.
    package struct Time: Hashable, Sendable {
        package let seconds: Int
        package let nanoseconds: Int
    }

    package let kind: Kind
    package let identity: Identity
    package let size: Int64
    /// The lower twelve bits of the mode.
    package let permissions: UInt16
    /// The number of the user who owns the file.
    package let owner: UInt32
    /// The number of the group to which the permissions for a group apply.
    package let group: UInt32
    package let linkCount: UInt64
    package let accessed: Time
    package let modified: Time

    /// Whether the item is a file, a directory or a link, which a user may want to replace.
    package var isReplaceable: Bool { kind != .device && kind != .other }

    /// Returns whether this program can trust the file or directory, because no other user of the computer could have
    /// written it.
    ///
    /// Caches, cookies and downloads all use this rule. The owner must be the user who runs this program, or the
    /// administrator, who can change any file anyway. No other user may be able to write to it.
    ///
    /// A file with a second name (a hard link) is not trusted. Another user may have put it here, or may write to it
    /// under its other name. A directory with the sticky bit, such as `/tmp`, is trusted. Other users can create files
    /// in it but cannot replace files of other owners, and each file is checked separately.
    ///
    /// - Parameter expected: The required kind. A symbolic link is neither a file nor a directory.
    package func isTrusted(as expected: Kind) -> Bool {
        // An open file without any name was replaced or removed after it was opened.
        guard kind == expected, isOwnerTrusted, kind == .directory || linkCount <= 1 else { return false }
        return permissions & 0o022 == 0 || kind == .directory && permissions & 0o1000 != 0
    }

    /// The permissions with which a file of another group can replace this file, so that no user gets more access.
    ///
    /// A member of one group may belong to the other users of the other group, so both get only their common
    /// permissions.
    package var permissionsForAnyGroup: UInt16 {
        let common = (permissions >> 3) & permissions & 0o7
        return permissions & 0o700 | common << 3 | common
    }

    /// Whether the owner is the user who runs this program, or the administrator.
    package var isOwnerTrusted: Bool { owner == PosixCalls.user || owner == 0 }

    /// Returns whether this is the same file and was not written in between.
    ///
    /// For directories, only the identity is compared.
    package func hasContent(of other: FileStatus) -> Bool {
        identity == other.identity && (kind == .directory || (size == other.size && modified == other.modified))
    }
}

extension FileStatus {
    init(_ value: stat) {
        #if canImport(Darwin)
            let (accessed, modified) = (value.st_atimespec, value.st_mtimespec)
        #else
            let (accessed, modified) = (value.st_atim, value.st_mtim)
        #endif
        self.init(
            kind: Kind(mode: value.st_mode),
            identity: Identity(
                device: UInt64(truncatingIfNeeded: value.st_dev), number: UInt64(truncatingIfNeeded: value.st_ino)),
            size: Int64(value.st_size),
            permissions: UInt16(truncatingIfNeeded: value.st_mode & 0o7777),
            owner: UInt32(value.st_uid),
            group: UInt32(value.st_gid),
            linkCount: UInt64(value.st_nlink),
            accessed: Time(seconds: Int(accessed.tv_sec), nanoseconds: Int(accessed.tv_nsec)),
            modified: Time(seconds: Int(modified.tv_sec), nanoseconds: Int(modified.tv_nsec)))
    }
}

extension FileStatus.Kind {
    fileprivate init(mode: mode_t) {
        switch mode & S_IFMT {
        case S_IFREG: self = .regular
        case S_IFDIR: self = .directory
        case S_IFLNK: self = .symbolicLink
        case S_IFCHR, S_IFBLK: self = .device
        default: self = .other
        }
    }
}

/// A name in an open directory, or a path if there is no directory.
package struct FolderEntry {
    package let folder: OpenFile?
    package let name: PathBytes

    package init(_ name: PathBytes, in folder: OpenFile? = nil) {
        self.folder = folder
        self.name = name
    }

    func with<Result>(_ body: (Int32, UnsafePointer<CChar>) -> Result) -> Result {
        name.withPointer { pointer in
            guard let pointer else { preconditionFailure("A path always ends with a zero byte.") }
            guard let folder else { return body(PosixCalls.workingDirectory, pointer) }
            return folder.withNumber { body($0, pointer) }
        }
    }
}

/// A path or a name in a directory as the bytes that the system uses, which may not be valid text.
package struct PathBytes: Hashable, Sendable, CustomStringConvertible {
    // The bytes with the terminating zero.
    private let characters: [CChar]

    /// Creates a path from bytes, none of which may be zero.
    package init(_ bytes: some Sequence<UInt8>) {
        var characters = bytes.map { CChar(bitPattern: $0) }
        characters.append(0)
        self.characters = characters
    }

    package init(_ text: String) {
        characters = Array(text.utf8CString)
    }

    package static let here = PathBytes(".")
    package static let up = PathBytes("..")

    package var bytes: [UInt8] { characters.withUnsafeBytes { Array(UnsafeRawBufferPointer(rebasing: $0.dropLast())) } }

    /// The text of the bytes, with replacement characters for invalid bytes.
    package var description: String { String(decoding: bytes, as: UTF8.self) }

    func withPointer<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        characters.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
