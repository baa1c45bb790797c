// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the system knows about a file.
package struct FileStatus: Sendable {
    package enum Kind: Sendable { case regular, directory, symbolicLink, device, other }

    /// Which file it is, whatever its names.
    package struct Identity: Hashable, Sendable {
        let device: UInt64
        let number: UInt64
    }

    /// A moment, as the file system keeps it.
    package struct Time: Hashable, Sendable {
        package let seconds: Int
        package let nanoseconds: Int
    }

    package let kind: Kind
    package let identity: Identity
    package let size: Int64
    /// The lower twelve bits of the mode.
    package let permissions: UInt16
    /// The number of the user whose it is.
    package let owner: UInt32
    package let linkCount: UInt64
    package let accessed: Time
    package let modified: Time

    /// Whether it is something that a user puts there, and may want to be replaced.
    var isReplaceable: Bool { kind != .device && kind != .other }

    /// Returns whether this program can trust the file or directory, because no other user of the computer could have
    /// written it.
    ///
    /// Caches, cookies and downloads all use this rule. The owner must be the user for whom this program runs, or the
    /// administrator, who can change any file anyway. No other user may be able to write to it. A file with a second
    /// name (a hard link) is not trusted, because another user may have put it here, or may write to it under its other
    /// name. A directory with the sticky bit, such as `/tmp`, is trusted: other users can create files in it but cannot
    /// replace files of other owners, and each file is judged separately.
    ///
    /// - Parameter expected: The kind that it must have. A symbolic link is neither a file nor a directory.
    package func isTrusted(as expected: Kind) -> Bool {
        // An open file without any name was replaced or removed after it was opened.
        guard kind == expected, isOwnerTrusted, kind == .directory || linkCount <= 1 else { return false }
        return permissions & 0o022 == 0 || kind == .directory && permissions & 0o1000 != 0
    }

    /// Whether its owner is the user for whom this program runs, or the administrator.
    package var isOwnerTrusted: Bool { owner == PosixCalls.user || owner == 0 }

    /// Whether it is the same file, and nothing was written to it in between; of a directory, whether it is the same.
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
