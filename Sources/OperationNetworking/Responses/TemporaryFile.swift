// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A file that goes with the object that stands for it, unless it is handed over.
final class TemporaryFile: Sendable {
    let url: URL
    private let isOurs = Locked(true)

    /// Takes over a file that is there.
    init(_ url: URL) {
        self.url = url
    }

    /// Makes one that nobody else can read or write, opened to be written.
    static func make(in folder: URL) throws(NetworkError) -> (file: TemporaryFile, descriptor: Int32) {
        let url = folder.appendingPathComponent("OperationKit-\(UUID().uuidString).download", isDirectory: false)
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            if let error = DescriptorShortage.error(number, opening: url.path, phase: .receiving) { throw error }
            throw NetworkError(
                code: .fileUnwritable, phase: .receiving,
                message: "No temporary file could be made in \(folder.path). Check that it exists and is writable.",
                underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
        }
        return (TemporaryFile(url), descriptor)
    }

    /// Makes an empty one.
    static func empty(in folder: URL) throws(NetworkError) -> TemporaryFile {
        let (file, descriptor) = try make(in: folder)
        close(descriptor)
        return file
    }

    deinit {
        remove()
    }

    /// Whether that is the file's URL.
    func isNamed(by result: Any) -> Bool { result as? URL == url }

    /// Leaves the file to the user.
    func handOver() { isOurs.withLock { $0 = false } }

    /// Removes it, unless it was handed over.
    func remove() {
        if isOurs.withLock({ exchange(&$0, with: false) }) { unlink(url.path) }
    }
}

/// A collector whose result is a temporary file.
protocol TemporaryFileHolder: AnyResponseCollector {
    var temporaryFile: TemporaryFile? { get }
}
