// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A file URL taken apart: the whole path, the directory, and the name in it.
struct FileAddress {
    let path: PathBytes
    let url: URL

    /// Refuses a URL that names no file: that of another scheme or computer, and paths that the system cannot hold.
    init(_ url: URL, for action: FileOperationError.Action) throws(FileInterruption) {
        guard url.isFileURL, url.host ?? "" == "" || url.host == "localhost" else {
            throw .failed(FileOperationError(code: .notAFileURL, action: action, path: Self.withoutSecrets(url)))
        }
        // Foundation on Linux makes a file of that name instead of refusing the zero byte.
        let hasZero = url.absoluteString.contains("%00")
        let bytes = hasZero ? [] : url.withUnsafeFileSystemRepresentation { start in Self.bytes(at: start) }
        guard !bytes.isEmpty else {
            let shown = url.path.isEmpty ? url.absoluteString : url.path
            throw .failed(FileOperationError(code: .invalidPath, action: action, path: shown))
        }
        path = PathBytes(bytes)
        self.url = url
    }

    var description: String { path.description }

    /// The directory's path, and the name in it; nil for a path that ends in no name, such as that of the root.
    var parts: (folder: PathBytes, name: PathBytes)? {
        let slash = UInt8(ascii: "/")
        var bytes = Array(path.bytes)
        while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
        let nameStart = (bytes.lastIndex(of: slash) ?? -1) + 1
        let name = PathBytes(bytes[nameStart...])
        guard nameStart < bytes.count, name != .here, name != .up else { return nil }
        let folder = bytes[..<nameStart]
        return (folder.isEmpty ? .here : PathBytes(folder), name)
    }

    /// The name in its directory, which is opened.
    func openEntry(at place: FilePlace, files: FileSystem) throws(FileInterruption) -> FolderEntry {
        guard let (folder, name) = parts else { throw .failed(place.error(.invalidPath)) }
        return FolderEntry(name, in: try files.openFolder(FolderEntry(folder)).get(at: place))
    }

    private static func bytes(at start: UnsafePointer<CChar>?) -> [UInt8] {
        guard let start else { return [] }
        return UnsafeBufferPointer(start: start, count: strlen(start)).map { UInt8(bitPattern: $0) }
    }

    /// What an error may show of a URL of another kind: no user, no password, no query.
    private static func withoutSecrets(_ url: URL) -> String {
        var shown = "\(url.scheme ?? ""):"
        if let host = url.host { shown += "//\(host)" }
        return shown + url.path
    }
}
