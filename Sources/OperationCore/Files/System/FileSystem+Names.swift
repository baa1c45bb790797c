// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What is done with names in directories.
extension FileSystem {
    /// What stands under a name; a symbolic link is not followed.
    package func status(of entry: FolderEntry) -> Result<FileStatus, SystemError> {
        call(.status, entry.name, asking: { entry.with { PosixCalls.status($0, $1) } })
    }

    package func makeDirectory(_ entry: FolderEntry, permissions: UInt16) -> Result<Void, SystemError> {
        call(.makeDirectory, entry.name) { _ in
            entry.with { PosixCalls.makeDirectory($0, $1, permissions) }
        }.map { _ in }
    }

    func makeSymbolicLink(_ entry: FolderEntry, to target: PathBytes) -> Result<Void, SystemError> {
        call(.makeSymbolicLink, entry.name) { _ in
            FolderEntry(target).with { _, target in
                entry.with { PosixCalls.makeSymbolicLink(target, $0, $1) }
            }
        }.map { _ in }
    }

    func readSymbolicLink(_ entry: FolderEntry) -> Result<PathBytes, SystemError> {
        // No system has a longer one; what fills the buffer may have been cut off.
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

    /// Renames, and replaces what bore the new name, in one step.
    package func rename(_ entry: FolderEntry, to new: FolderEntry) -> Result<Void, SystemError> {
        call(.rename, entry.name) { _ in
            entry.with { folder, name in new.with { PosixCalls.rename(folder, name, to: $0, $1) } }
        }.map { _ in }
    }

    package func remove(_ entry: FolderEntry, isDirectory: Bool) -> Result<Void, SystemError> {
        call(.remove, entry.name) { _ in
            entry.with { PosixCalls.remove($0, $1, isDirectory: isDirectory) }
        }.map { _ in }
    }

    /// Renames unless the new name is taken: of many who try at once, one succeeds and the others fail with EEXIST.
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

    /// A second name is never given to something that has it already, and the first is then taken away.
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

    /// An empty directory is made, which only one can do, and replaced: a rename never replaces one that was filled.
    private func renameByClaiming(_ entry: FolderEntry, _ new: FolderEntry) -> Result<Void, SystemError> {
        makeDirectory(new, permissions: 0o700).flatMap {
            rename(entry, to: new).mapError { error in
                _ = remove(new, isDirectory: true)
                return error
            }
        }
    }
}
