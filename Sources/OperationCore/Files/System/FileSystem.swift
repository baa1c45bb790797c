// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The one way from file operations to the system: interrupted calls are made again, and tests can step in.
package struct FileSystem: Sendable {
    /// Asked before each call what becomes of it.
    package typealias Interceptor = @Sendable (FileSystemCall) -> FileSystemCall.Verdict

    private let interceptor: Interceptor?

    package init(interceptor: Interceptor? = nil) {
        self.interceptor = interceptor
    }

    /// Makes a call, again if it is interrupted by a signal.
    ///
    /// `body` returns -1 where it failed.
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

    /// Makes a call whose answer is more than a number.
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

// What is done with an open file.
extension FileSystem {
    /// Opens something that is there.
    package func open(_ entry: FolderEntry, _ flags: Int32) -> Result<OpenFile, SystemError> {
        open(entry, flags, permissions: 0)
    }

    /// Opens a directory.
    ///
    /// A symbolic link to one is followed only in a path.
    package func openFolder(_ entry: FolderEntry) -> Result<OpenFile, SystemError> {
        let following = entry.folder == nil ? 0 : O_NOFOLLOW
        return open(entry, O_RDONLY | O_DIRECTORY | following)
    }

    /// Makes a file that was not there, for writing.
    package func createFile(_ entry: FolderEntry, permissions: UInt16) -> Result<OpenFile, SystemError> {
        open(entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, permissions: permissions)
    }

    /// Opens a file to read it and to add to its end, or makes it if it was not there.
    ///
    /// A symbolic link is refused, and a pipe is not waited for.
    package func openToAppend(_ entry: FolderEntry, makingItWith permissions: UInt16?) -> Result<OpenFile, SystemError>
    {
        let flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK
        guard let permissions else { return open(entry, flags) }
        return open(entry, flags | O_CREAT | O_EXCL, permissions: permissions)
    }

    private func open(_ entry: FolderEntry, _ flags: Int32, permissions: UInt16) -> Result<OpenFile, SystemError> {
        call(.open, entry.name) { _ in
            entry.with { PosixCalls.open($0, $1, flags, permissions) }
        }.map { OpenFile(Int32(truncatingIfNeeded: $0)) }
    }

    /// Reads into the buffer, from where the file stands or from an offset; zero bytes mean the end.
    package func read(
        _ file: OpenFile, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64?
    ) -> Result<Int, SystemError> {
        call(.read) { limit in
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit))
            return file.withNumber { PosixCalls.read($0, part, at: offset) }
        }
    }

    /// Writes some of the bytes and says how many.
    package func write(_ file: OpenFile, _ bytes: UnsafeRawBufferPointer) -> Result<Int, SystemError> {
        call(.write) { limit in
            let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(limit))
            return file.withNumber { PosixCalls.write($0, part) }
        }
    }

    /// Cuts a file off, or fills it up with zeros.
    package func truncate(_ file: OpenFile, to size: Int64) -> Result<Void, SystemError> {
        call(.truncate) { _ in file.withNumber { PosixCalls.truncate($0, size) } }.map { _ in }
    }

    /// Claims an open file for whoever has it open so, until it is closed: of many who ask, one succeeds.
    ///
    /// Where the file system knows no such claims it succeeds.
    package func claim(_ file: OpenFile) -> Result<Void, SystemError> {
        call(.claim) { _ in file.withNumber { PosixCalls.claim($0) } }.ignoring(\.meansUnsupported)
    }

    /// How many bytes may still be written to the volume of a file or directory, where so many are wanted.
    package func freeBytes(of file: OpenFile, wanted: Int64) -> Result<Int64, SystemError> {
        call(.freeBytes, asking: { file.withNumber { PosixCalls.freeBytes(of: $0, wanted: wanted) } })
    }

    /// What becomes of permissions of a new file in an open directory; nil where only making one tells.
    package func permissions(asked: UInt16, in folder: OpenFile) -> UInt16? {
        folder.withNumber { PosixCalls.mask(in: $0) }.map { asked & ~$0 }
    }

    /// Waits until a device gives or takes something again, for a fiftieth of a second at most.
    func wait(for file: OpenFile, isWriting: Bool) {
        file.withNumber { PosixCalls.wait(for: $0, isWriting: isWriting, milliseconds: 20) }
    }

    /// Brings a file, or the names in a directory, to the disk.
    package func synchronize(_ file: OpenFile) -> Result<Void, SystemError> {
        call(.synchronize) { _ in
            file.withNumber { PosixCalls.synchronize($0) }
        }.ignoring(\.meansNothingToSynchronize)
    }

    /// Closes a file, which is when some file systems say that a write failed.
    package func close(_ file: OpenFile) -> Result<Void, SystemError> {
        guard let number = file.takeNumber() else { return .success(()) }
        // Never again after EINTR: the number may belong to another file by then. And closed even if a test says no.
        let result = PosixCalls.close(number)
        let failure = PosixCalls.lastError
        return call(.close) { _ in 0 }.flatMap { _ in
            result == 0 || failure == EINTR ? .success(()) : .failure(SystemError(failure))
        }
    }

    package func status(of file: OpenFile) -> Result<FileStatus, SystemError> {
        call(.status, asking: { file.withNumber { PosixCalls.status(of: $0) } })
    }

    /// The names in a directory, but for its own and its parent's.
    package func names(in folder: OpenFile) -> Result<[PathBytes], SystemError> {
        var names: [PathBytes] = []
        return call(.list) { _ in
            names = []
            return folder.withNumber { PosixCalls.list($0, into: &names) }
        }.map { _ in names }
    }

    /// Sets the permissions exactly, where the file system has such.
    package func setPermissions(_ permissions: UInt16, of file: OpenFile) -> Result<Void, SystemError> {
        call(.setPermissions) { _ in
            file.withNumber { PosixCalls.setPermissions($0, permissions) }
        }.ignoring(\.meansNoSuchAttribute)
    }

    /// Sets the times of last access and change to those of another file, where the file system has such.
    func setTimes(of file: OpenFile, from status: FileStatus) -> Result<Void, SystemError> {
        call(.setTimes) { _ in
            file.withNumber { PosixCalls.setTimes($0, from: status) }
        }.ignoring(\.meansNoSuchAttribute)
    }
}
