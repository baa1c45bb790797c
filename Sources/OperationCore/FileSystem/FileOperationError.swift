// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An error that contains the action, the path and the system error of a failed file operation.
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
    /// The code that identifies the error.
    public let code: Code
    /// The action that failed, such as reading or copying.
    package let action: Action
    /// The path at which the action failed.
    ///
    /// If the action fails for an item inside a directory, this property is the path of that item.
    public let path: String
    /// The other path of a copy or a move, or `nil` for other actions.
    ///
    /// If ``path`` is the source, this property is the destination. If ``path`` is the destination, this property is
    /// the source.
    public let otherPath: String?
    /// The system's error number (`errno`), or zero if the system did not report the error.
    public let systemErrorNumber: Int32

    package init(
        code: Code, action: Action, path: String, otherPath: String? = nil, systemErrorNumber: Int32 = 0
    ) {
        self.code = code
        self.action = action
        self.path = path
        self.otherPath = otherPath
        self.systemErrorNumber = systemErrorNumber
    }

    /// A description of the action, the path, the reason and a possible solution.
    public var message: String {
        let end = otherPath.map { "failed at \(path) (the other path is \($0))" } ?? "\(path) failed"
        return "\(action) \(end): \(code.explanation ?? systemExplanation)"
    }

    private var systemExplanation: String {
        guard systemErrorNumber != 0 else { return "\(code)." }
        let words = NSError(domain: NSPOSIXErrorDomain, code: Int(systemErrorNumber)).localizedDescription
        return "the system reported error \(systemErrorNumber) (\(words))."
    }
}

extension FileOperationError: CustomStringConvertible {
    /// The code and the message, for a log line.
    public var description: String { "[\(code)] \(message)" }
}

extension FileOperationError: LocalizedError {
    /// The message of the error, which you can show to a user.
    public var errorDescription: String? { message }
}

extension FileOperationError {
    /// A code that identifies a file operation error.
    ///
    /// Future versions may add codes, so always handle unknown codes. Errors that your program cannot handle, and rare
    /// errors of the system, have codes without a public name. For an error of the system, use
    /// ``FileOperationError/systemErrorNumber`` instead.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, which is suitable as a metric label.
        public let description: String
        /// The reason and a possible solution as the end of a sentence, or `nil` if only the system knows the reason.
        let explanation: String?

        private init(_ name: String, _ explanation: String?) {
            description = name
            self.explanation = explanation
        }
    }
}

extension FileOperationError.Code {
    /// The URL does not name a file on this computer.
    package static let notAFileURL = Self(
        "notAFileURL", "the URL does not name a file on this computer. Create it with URL(fileURLWithPath:).")
    /// The path is empty, contains a zero byte or invalid UTF-8, or does not end in a name.
    public static let invalidPath = Self(
        "invalidPath", "the path is empty, contains a zero byte, or does not end in a name. Check the URL.")
    /// No item exists at the path.
    public static let notFound = Self("notFound", "there is no such file or directory. Check the path.")
    /// The directory that contains the destination does not exist.
    public static let folderNotFound = Self(
        "folderNotFound",
        "the directory that should contain it does not exist. Create it, or set createsDirectories in the options.")
    /// The destination already exists, and the options do not allow replacing it.
    public static let alreadyExists = Self(
        "alreadyExists",
        "an item already exists at this path. Choose another name, or allow replacing it in the options.")
    /// The program does not have the permission for the action.
    public static let permissionDenied = Self(
        "permissionDenied",
        "the program does not have permission. Check the permissions of the file and its directories.")
    /// A directory exists where a file was expected.
    public static let isDirectory = Self("isDirectory", "it is a directory. Pass the path of a file.")
    /// An item that is not a directory exists where a directory was expected.
    package static let notADirectory = Self(
        "notADirectory", "a part of the path is not a directory. Check the path.")
    /// The directory is not empty, so the operation did not replace or remove it.
    ///
    /// This error also occurs if another program adds an item while the operation empties the directory.
    package static let directoryNotEmpty = Self(
        "directoryNotEmpty", "the directory is not empty, so it was not replaced or removed. Empty it first.")
    /// The path or a name in it is longer than the file system allows.
    package static let nameTooLong = Self("nameTooLong", "the path or a name in it is too long. Choose a shorter name.")
    /// The symbolic links in the path form a loop, or there are too many of them.
    package static let tooManySymbolicLinks = Self(
        "tooManySymbolicLinks",
        "the symbolic links in the path form a loop, or there are too many of them. Check their targets.")
    /// No space is left on the volume or in the user's disk quota.
    public static let noSpace = Self("noSpace", "no space is left on the volume. Free some space and try again.")
    /// The volume is read-only.
    package static let readOnlyVolume = Self("readOnlyVolume", "the volume is read-only. Choose another volume.")
    /// The program or the computer has too many open files.
    package static let tooManyOpenFiles = Self(
        "tooManyOpenFiles", "too many files are open. Run fewer operations at a time, or raise the limit (ulimit -n).")
    /// The file is larger than the options or the file system permit.
    public static let tooLarge = Self(
        "tooLarge",
        "it is larger than allowed. To read it, raise maximumSize in the options or read a range. To write it, write "
            + "less data, or choose a volume that supports larger files.")
    /// The range to read begins outside the file.
    package static let rangeOutsideFile = Self(
        "rangeOutsideFile",
        "the range begins outside the file. Choose a range that begins between zero and the size of the file.")
    /// The item is a pipe, a socket or a device, which the operation does not support.
    package static let unsupportedKind = Self(
        "unsupportedKind",
        "it is a pipe, a socket or a device, which this operation does not support. Leave it out. To write to a "
            + "device, use the mode inPlace.")
    /// The file system does not support the action.
    package static let notSupported = Self(
        "notSupported",
        "the file system does not support this. If the options do not allow replacing a file, allow it.")
    /// Another program replaced or moved the file during the action.
    public static let changedMeanwhile = Self(
        "changedMeanwhile",
        "it was replaced or moved during the operation. Try again when no other program changes it.")
    /// The operation would copy or move a directory to a destination inside that directory.
    package static let destinationInsideSource = Self(
        "destinationInsideSource", "the destination is inside the source. Choose a destination outside the source.")
    /// Another program uses the file in a way that prevents the action.
    public static let busy = Self("busy", "it is in use. Try again later.")
    /// The operation did not use or replace the file, because another user could have written to it, or because the
    /// file has several names (hard links).
    public static let untrusted = Self(
        "untrusted",
        "it belongs to another user, other users can write to it, or it is a link. Remove it, set its permissions to "
            + "0600, or use a file in your own folder.")
    /// The operation failed with a system error that has no specific code.
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
    /// An action that a file operation performs.
    package struct Action: Hashable, Sendable, CustomStringConvertible {
        /// The name of the action, which can begin a sentence, such as "Reading".
        package let description: String

        package init(_ name: String) { description = name }

        package static let reading = Action("Reading")
        package static let writing = Action("Writing")
        package static let copying = Action("Copying")
        package static let moving = Action("Moving")
        package static let removing = Action("Removing")
        package static let checksumming = Action("Computing the checksum of")
    }
}
