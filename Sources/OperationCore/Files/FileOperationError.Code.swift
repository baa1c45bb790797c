// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension FileOperationError {
    /// The kind of a failure.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String
        /// Why, and what to do, as the rest of a sentence; nil where only the system knows.
        let explanation: String?

        /// Makes a kind of your own.
        public init(_ name: String) {
            self.init(name, nil)
        }

        private init(_ name: String, _ explanation: String?) {
            description = name
            self.explanation = explanation
        }

        /// Kinds are the same when their names are.
        public static func == (left: Code, right: Code) -> Bool { left.description == right.description }

        /// Adds the name.
        public func hash(into hasher: inout Hasher) { hasher.combine(description) }
    }
}

extension FileOperationError.Code {
    /// The URL is none of a file on this computer.
    public static let notAFileURL = Self(
        "notAFileURL", "the URL names no file on this computer. Make it with URL(fileURLWithPath:).")
    /// The path is empty, holds a zero byte or bytes that are no UTF-8, or ends in no name.
    public static let invalidPath = Self(
        "invalidPath", "the path names no file: it is empty, has a zero byte in it, or ends in no name. Check the URL.")
    /// There is nothing at the path.
    public static let notFound = Self("notFound", "there is no such file or directory. Check the path.")
    /// The directory that should hold the destination is missing.
    public static let folderNotFound = Self(
        "folderNotFound",
        "the directory that should hold it does not exist. Create it, or set createsDirectories in the options.")
    /// The destination exists and was not to be replaced.
    public static let alreadyExists = Self(
        "alreadyExists", "something is there already. Choose another name, or allow in the options that it is replaced."
    )
    /// This program may not do that.
    public static let permissionDenied = Self(
        "permissionDenied", "the program lacks the permission. Check the permissions of the file and its directories.")
    /// A file was expected, a directory is there.
    public static let isDirectory = Self("isDirectory", "it is a directory. Name a file.")
    /// A directory was expected, something else is there.
    public static let notADirectory = Self(
        "notADirectory", "what should be a directory on the way, or at its end, is none. Check the path.")
    /// A directory that has something in it is never replaced, nor removed if it was filled while it was emptied.
    public static let directoryNotEmpty = Self(
        "directoryNotEmpty", "a directory is there with something in it, and stays. Empty it first.")
    /// The path, or a name in it, is longer than the file system allows.
    public static let nameTooLong = Self("nameTooLong", "the path, or a name in it, is too long. Choose a shorter one.")
    /// Symbolic links lead to each other.
    public static let tooManySymbolicLinks = Self(
        "tooManySymbolicLinks", "its symbolic links lead to each other, or to too many others. Check where they lead.")
    /// The volume, or the user's share of it, is full.
    public static let noSpace = Self("noSpace", "no space is left on the volume. Free some and try again.")
    /// The volume can only be read.
    public static let readOnlyVolume = Self("readOnlyVolume", "the volume can only be read. Choose another.")
    /// The program, or the computer, has too many files open.
    public static let tooManyOpenFiles = Self(
        "tooManyOpenFiles", "too many files are open. Run fewer operations at once, or raise the limit (ulimit -n).")
    /// The file is larger than was allowed, or than the file system can hold.
    public static let tooLarge = Self(
        "tooLarge",
        "it is larger than allowed. Reading, raise maximumSize in the options or read it in parts with a range; "
            + "writing, write less, or to a volume that holds larger files.")
    /// The range to read begins outside the file.
    public static let rangeOutsideFile = Self(
        "rangeOutsideFile", "the range begins outside the file. Choose one from zero up to the file's size.")
    /// A pipe, a socket or a device stands where a file was expected.
    public static let unsupportedKind = Self(
        "unsupportedKind",
        "it is a pipe, a socket or a device, which cannot be handled like a file. Leave it out; write to a "
            + "device in place.")
    /// The file system has no such function.
    public static let notSupported = Self(
        "notSupported",
        "the file system cannot do that. Where a new file may not replace another, allow in the options that it may.")
    /// Somebody replaced or moved the file while it was worked on.
    public static let changedMeanwhile = Self(
        "changedMeanwhile", "somebody replaced or moved it meanwhile. Try again when nobody else works on it.")
    /// A directory cannot be copied or moved into itself.
    public static let destinationInsideSource = Self(
        "destinationInsideSource", "the destination is inside the source. Choose one outside of it.")
    /// Somebody else uses the file in a way that excludes this.
    public static let busy = Self("busy", "it is in use. Try again later.")
    /// The file was not used and not replaced, because another user could have written to it, or it has several names.
    public static let untrusted = Self(
        "untrusted",
        "it belongs to another user, or other users can write to it, or it is a link. Remove it, set its permissions to "
            + "0600, or name a file in a folder of your own.")
    /// Anything else; the system's number says more.
    public static let ioFailed = Self("ioFailed", nil)

    package init(systemErrorNumber: Int32) {
        switch systemErrorNumber {
        case ENOENT: self = .notFound
        case EEXIST: self = .alreadyExists
        case EACCES, EPERM: self = .permissionDenied
        case EISDIR: self = .isDirectory
        case ENOTDIR: self = .notADirectory
        case ENOTEMPTY: self = .directoryNotEmpty
        case ENAMETOOLONG: self = .nameTooLong
        case ELOOP: self = .tooManySymbolicLinks
        case ENOSPC, EDQUOT: self = .noSpace
        case EROFS: self = .readOnlyVolume
        case EMFILE, ENFILE: self = .tooManyOpenFiles
        case EFBIG: self = .tooLarge
        case ENXIO: self = .unsupportedKind
        case ENOTSUP, EOPNOTSUPP, ENOSYS: self = .notSupported
        case ESTALE: self = .changedMeanwhile
        case EBUSY, ETXTBSY: self = .busy
        default: self = .ioFailed
        }
    }
}
