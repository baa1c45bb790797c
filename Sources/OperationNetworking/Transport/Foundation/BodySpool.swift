// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An object that writes a request's body to a temporary file, as fast as the body is produced.
final class BodySpool: Sendable {
    private let body: RequestBody
    private let folder: URL
    private let wrote: @Sendable () -> Void
    private let completion: @Sendable (Result<SpooledFile, NetworkError>) -> Void
    private let queue = DispatchQueue(label: "OperationKit.BodySpool", autoreleaseFrequency: .workItem)
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) var state = State.fresh

    private enum State {
        case fresh
        case writing(BodyReader, OpenFile, SpooledFile)
        case ended
    }

    init(
        _ body: RequestBody, into folder: URL = FileManager.default.temporaryDirectory,
        wrote: @escaping @Sendable () -> Void = {},
        completion: @escaping @Sendable (Result<SpooledFile, NetworkError>) -> Void
    ) {
        self.body = body
        self.folder = folder
        (self.wrote, self.completion) = (wrote, completion)
        resume()
    }

    /// Stops writing, because the file is no longer needed.
    func stop() {
        queue.async { [self] in state = .ended }
    }

    private func resume() {
        queue.async { [self] in
            do throws(NetworkError) { try write() } catch { end(.failure(error)) }
        }
    }

    private func write() throws(NetworkError) {
        if case .fresh = state { state = try begun() }
        guard case .writing(let reader, let output, let file) = state else { return }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { room.deallocate() }
        switch try reader.read(into: room) {
        case .notYet: break
        case .end: end(.success(file))
        case .bytes(let count):
            let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<count])
            if case .failure(let error) = FileSystem().writeAll(output, bytes) { throw Self.unwritable(error) }
            wrote()
            // The next portion is written after a stop that came in the meantime.
            resume()
        }
    }

    private func begun() throws(NetworkError) -> State {
        let reader = try BodyReader(body, waker: BodyWaker { [weak self] in self?.resume() })
        let url = folder.appendingPathComponent("body-\(UUID().uuidString)")
        switch FileSystem().createFile(FolderEntry(PathBytes(url.path)), permissions: 0o600) {
        case .success(let output): return .writing(reader, output, SpooledFile(url))
        case .failure(let error): throw Self.unwritable(error)
        }
    }

    private func end(_ result: Result<SpooledFile, NetworkError>) {
        if case .ended = state { return }
        state = .ended
        completion(result)
    }

    private static func unwritable(_ error: SystemError) -> NetworkError {
        NetworkError(
            code: .fileUnwritable, phase: .sending,
            message: "The body could not be written to a temporary file. Check the free space on the disk.",
            underlying: .init(domain: "errno", number: Int(error.number), text: String(cString: strerror(error.number)))
        )
    }
}

/// A temporary file that is removed with this object, unless it is handed over.
package final class SpooledFile: Sendable {
    package let url: URL
    private let isOurs = Locked(true)

    /// Takes over a file, which may not exist yet.
    package init(_ url: URL) { self.url = url }

    deinit { remove() }

    /// Hands the file over to the user, so that it is not removed.
    func handOver() { isOurs.withLock { $0 = false } }

    /// Removes the file, unless it was handed over.
    func remove() {
        if isOurs.withLock({ exchange(&$0, with: false) }) { unlink(url.path) }
    }

    /// Moves a file that the system is about to remove to a folder of temporary files.
    ///
    /// - Parameter name: The name of the new file, which replaces a file of that name. The default is `nil`, which
    ///   chooses a new name.
    package static func taking(
        _ location: URL, into folder: URL = FileManager.default.temporaryDirectory, as name: String? = nil
    ) -> Result<SpooledFile, NetworkError> {
        // If the file was moved only in part, the release of this object removes the part.
        let file = SpooledFile(folder.appendingPathComponent(name ?? "body-\(UUID().uuidString)"))
        if name != nil { unlink(file.url.path) }
        do {
            try FileManager.default.moveItem(at: location, to: file.url)
            return .success(file)
        } catch {
            return .failure(cannotKeep(error as NSError))
        }
    }

    /// Returns the error for a response that could not be kept.
    package static func cannotKeep(_ error: NSError) -> NetworkError {
        let underlying = error.userInfo[NSUnderlyingErrorKey] as? NSError
        let isFull =
            error.domain == NSCocoaErrorDomain && error.code == CocoaError.fileWriteOutOfSpace.rawValue
            || underlying?.domain == NSPOSIXErrorDomain && underlying?.code == Int(ENOSPC)
        let words = underlying.map { "\($0.domain) \($0.code)" } ?? ""
        return NetworkError(
            code: isFull ? .diskFull : .fileUnwritable, phase: .saving,
            message: isFull
                ? "The system received the response, but the disk has no space left to keep it. Free some space."
                : "The system received the response, but its file could not be kept. Check the temporary folder.",
            underlying: .init(domain: error.domain, number: error.code, text: words))
    }
}

extension SpooledFile {
    /// A reader that reads a file in portions, and keeps the file until the reader is released.
    package final class Reader: Sendable {
        private static let portion = 64 << 10

        private let file: SpooledFile
        private let handle: FileHandle
        /// The number of bytes in the file.
        let count: Int64

        init(_ file: SpooledFile) throws(NetworkError) {
            self.file = file
            do {
                handle = try FileHandle(forReadingFrom: file.url)
                count = Int64(clamping: try handle.seekToEnd())
                try handle.seek(toOffset: 0)
            } catch {
                throw Self.unreadable(error)
            }
        }

        /// Returns the next bytes, or `nil` at the end.
        func read() throws(NetworkError) -> Data? {
            do {
                guard let data = try handle.read(upToCount: Self.portion), !data.isEmpty else { return nil }
                return data
            } catch {
                throw Self.unreadable(error)
            }
        }

        private static func unreadable(_ error: any Error) -> NetworkError {
            let reason = error as NSError
            return NetworkError(
                code: .transferFailed, phase: .receiving,
                message: "The system received the response, but the file that contains the response cannot be read.",
                underlying: .init(domain: reason.domain, number: reason.code, text: "\(error)"))
        }
    }
}
