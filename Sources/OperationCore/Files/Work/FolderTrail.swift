// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A way down into a tree of directories and up again, with one of them open at a time.
///
/// So the depth is bounded neither by the stack nor by how many files may be open, nor by how long a path may be. On the
/// way up it makes sure that it comes to where it came from, in case somebody moves directories meanwhile.
struct FolderTrail {
    private let files: FileSystem
    private(set) var folder: OpenFile
    private var identities: [FileStatus.Identity] = []

    init(from folder: OpenFile, files: FileSystem) {
        self.folder = folder
        self.files = files
    }

    /// Goes down into a directory, which is never a symbolic link, and returns what is known of it.
    mutating func enter(_ name: PathBytes) -> Result<FileStatus, SystemError> {
        files.status(of: folder).flatMap { here in
            files.openFolder(FolderEntry(name, in: folder)).flatMap { child in
                files.status(of: child).map { status in
                    identities.append(here.identity)
                    folder = child
                    return status
                }
            }
        }
    }

    /// Goes up again and returns the directory that was left.
    mutating func leave() -> Result<OpenFile, SystemError> {
        guard let expected = identities.popLast() else { return .failure(SystemError(ENOENT)) }
        return files.openFolder(FolderEntry(.up, in: folder)).flatMap { parent in
            files.status(of: parent).flatMap { status in
                guard status.identity == expected else { return .failure(SystemError(ESTALE)) }
                return .success(exchange(&folder, with: parent))
            }
        }
    }
}
