// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why a file operation failed: what was being done, with which file, and what the system said.
///
/// ```swift
/// let read = FileReadOperation(URL(fileURLWithPath: "/etc/nothing-of-this-name"))
/// do {
///     print(try await read.run().count)
/// } catch .failed(let error) where error.code == .notFound {
///     print("There is no \(error.path).")
/// } catch {
///     print(error)
/// }
/// ```
public struct FileOperationError: Error, Sendable, Equatable {
    /// The kind of the failure.
    public let code: Code
    /// What was being done.
    public let action: Action
    /// The path at which it failed.
    ///
    /// Inside a directory that is copied or removed it is that of the very file.
    public let path: String
    /// The other end of a copy or a move: the destination if ``path`` is the source, and the other way round.
    public let otherPath: String?
    /// The number with which the system refused (`errno`); zero if it was not the system who did.
    public let systemErrorNumber: Int32

    /// Makes an error, for tests of your own code.
    public init(
        code: Code, action: Action, path: String, otherPath: String? = nil, systemErrorNumber: Int32 = 0
    ) {
        self.code = code
        self.action = action
        self.path = path
        self.otherPath = otherPath
        self.systemErrorNumber = systemErrorNumber
    }

    /// What failed, at which path, why, and what to do about it.
    public var message: String {
        let end = otherPath.map { "failed at \(path) (its other end is \($0))" } ?? "\(path) failed"
        return "\(action) \(end): \(code.explanation ?? systemExplanation)"
    }

    private var systemExplanation: String {
        guard systemErrorNumber != 0 else { return "\(code)." }
        let words = NSError(domain: NSPOSIXErrorDomain, code: Int(systemErrorNumber)).localizedDescription
        return "the system reported error \(systemErrorNumber) (\(words))."
    }
}

extension FileOperationError: CustomStringConvertible {
    /// One line for a log: the kind and the sentence.
    public var description: String { "[\(code)] \(message)" }
}

extension FileOperationError: LocalizedError {
    /// The sentence to show to a person.
    public var errorDescription: String? { message }
}

extension FileOperationError: CustomNSError {
    /// The domain of these errors as `NSError`.
    public static var errorDomain: String { "OperationKit.FileOperationError" }

    /// The system's number, or zero.
    public var errorCode: Int { Int(systemErrorNumber) }

    /// The sentence, the path, and the system's own error.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message, NSFilePathErrorKey: path]
        if systemErrorNumber != 0 {
            info[NSUnderlyingErrorKey] = NSError(domain: NSPOSIXErrorDomain, code: Int(systemErrorNumber))
        }
        return info
    }
}

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

extension FileOperationError {
    /// What a file operation was doing.
    ///
    /// New actions may be added.
    public struct Action: Hashable, Sendable, CustomStringConvertible {
        /// The action as the beginning of a sentence.
        public let description: String

        /// Makes an action of your own; the name begins a sentence: "Reading".
        public init(_ name: String) {
            description = name
        }

        /// A file was being read.
        public static let reading = Action("Reading")
        /// A file was being written.
        public static let writing = Action("Writing")
        /// Something was being copied.
        public static let copying = Action("Copying")
        /// Something was being moved.
        public static let moving = Action("Moving")
        /// Something was being removed.
        public static let removing = Action("Removing")
        /// A checksum was being taken.
        public static let checksumming = Action("Taking the checksum of")
    }
}
