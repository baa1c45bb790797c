// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension SystemError {
    /// Another user could have written to the file or directory, or it is a symbolic link, or has several names.
    package static let untrusted = SystemError(EPERM)
}

// Files that are read back later must be those that this program wrote.
extension FileSystem {
    /// Opens a regular file for reading, unless another user could have written to it or it has several names.
    ///
    /// It does not follow a symbolic link and does not wait for a pipe. It judges the open file and not its name.
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
