// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A name in an open directory; in none, it is a path.
package struct FolderEntry {
    let folder: OpenFile?
    let name: PathBytes

    package init(_ name: PathBytes, in folder: OpenFile? = nil) {
        self.folder = folder
        self.name = name
    }

    func with<Result>(_ body: (Int32, UnsafePointer<CChar>) -> Result) -> Result {
        name.withPointer { pointer in
            guard let pointer else { preconditionFailure("A path always has its terminating zero.") }
            guard let folder else { return body(PosixCalls.workingDirectory, pointer) }
            return folder.withNumber { body($0, pointer) }
        }
    }
}
