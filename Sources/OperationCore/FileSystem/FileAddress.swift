// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The parts of a file URL, which are the whole path, the directory and the name in it.
package struct FileAddress {
    package let path: PathBytes

    /// Creates an address, or throws an error if the URL does not name a file on this computer or has an invalid path.
    package init(_ url: URL, for action: FileOperationError.Action) throws(FileInterruption) {
        guard url.isFileURL, url.host ?? "" == "" || url.host == "localhost" else {
            throw .failed(FileOperationError(code: .notAFileURL, action: action, path: Self.withoutSecrets(url)))
        }
        // Foundation on Linux creates a file with that name instead of refusing the zero byte.
        let text = url.absoluteString
        let hasZero = text.utf8.contains(UInt8(ascii: "%")) && text.contains("%00")
        let bytes = hasZero ? [] : url.withUnsafeFileSystemRepresentation { start in Self.bytes(at: start) }
        guard !bytes.isEmpty else {
            let shown = url.path.isEmpty ? url.absoluteString : url.path
            throw .failed(FileOperationError(code: .invalidPath, action: action, path: shown))
        }
        path = PathBytes(bytes)
    }

    private init(_ path: PathBytes) {
        self.path = path
    }

    /// Returns the address of a name in this directory.
    ///
    /// The bytes of the path are cheaper to extend than a URL.
    package func appending(_ name: String) -> FileAddress {
        let folder = path.bytes
        return FileAddress(PathBytes(folder + (folder.last == UInt8(ascii: "/") ? "" : "/").utf8 + name.utf8))
    }

    package var description: String { path.description }

    /// The path of the directory and the name in it, or `nil` for a path without a name, such as the root.
    package var parts: (folder: PathBytes, name: PathBytes)? {
        let slash = UInt8(ascii: "/")
        var bytes = path.bytes
        while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
        let nameStart = (bytes.lastIndex(of: slash) ?? -1) + 1
        let name = PathBytes(bytes[nameStart...])
        guard nameStart < bytes.count, name != .here, name != .up else { return nil }
        let folder = bytes[..<nameStart]
        return (folder.isEmpty ? .here : PathBytes(folder), name)
    }

    /// Opens the directory, and returns the entry of the name in it.
    package func openEntry(at place: FilePlace, files: FileSystem) throws(FileInterruption) -> FolderEntry {
        guard let (folder, name) = parts else { throw .failed(place.error(.invalidPath)) }
        return FolderEntry(name, in: try files.openFolder(FolderEntry(folder)).get(at: place))
    }

    /// Opens the directory to read from it, and returns the entry of the name in it.
    ///
    /// In a sandbox, a file that the user picked can be read although its directory cannot be opened. Its entry has the
    /// whole path and no directory.
    package func openEntryToRead(at place: FilePlace, files: FileSystem) throws(FileInterruption) -> FolderEntry {
        guard let (folder, name) = parts else { throw .failed(place.error(.invalidPath)) }
        switch files.openFolder(FolderEntry(folder)) {
        case .success(let folder): return FolderEntry(name, in: folder)
        case .failure(SystemError(EPERM)), .failure(SystemError(EACCES)): return FolderEntry(path)
        case .failure(let error): throw .failed(place.error(for: error))
        }
    }

    private static func bytes(at start: UnsafePointer<CChar>?) -> [UInt8] {
        guard let start else { return [] }
        return UnsafeBufferPointer(start: start, count: strlen(start)).map { UInt8(bitPattern: $0) }
    }

    /// Returns the part of a URL with another scheme that an error may show, without user, password and query.
    private static func withoutSecrets(_ url: URL) -> String {
        var shown = "\(url.scheme ?? ""):"
        if let host = url.host { shown += "//\(host)" }
        return shown + url.path
    }
}

/// The action and the file that an error needs in addition to the error number of the system.
package struct FilePlace {
    package var action: FileOperationError.Action
    package var path: String
    /// The other path of a copy or a move.
    package var otherPath: String?

    package init(_ action: FileOperationError.Action, _ path: String, otherPath: String? = nil) {
        self.action = action
        self.path = path
        self.otherPath = otherPath
    }

    package func error(for systemError: SystemError, code: FileOperationError.Code? = nil) -> FileOperationError {
        FileOperationError(
            code: code ?? FileOperationError.Code(systemErrorNumber: systemError.number),
            action: action, path: path, otherPath: otherPath, systemErrorNumber: systemError.number)
    }

    package func error(_ code: FileOperationError.Code) -> FileOperationError {
        FileOperationError(code: code, action: action, path: path, otherPath: otherPath)
    }
}

/// The reason why work on a file stops before its end.
package enum FileInterruption: Error {
    /// The work was canceled, so no error is reported.
    case cancelled
    case failed(FileOperationError)

    /// Returns the error to report outside an operation, where the work is never canceled.
    package func error(_ action: FileOperationError.Action, _ url: URL) -> FileOperationError {
        switch self {
        case .failed(let error): error
        case .cancelled: FileOperationError(code: .busy, action: action, path: url.path)
        }
    }
}
