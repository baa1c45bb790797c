// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Writes a body to a temporary file, which goes with the collector unless it is handed over.
///
/// It is for subclasses of ``NetworkOperation`` that make a file their task's result. A ``NetworkDownloadOperation`` has
/// its file written by a `Download`.
///
/// It is written on a queue of its own; the transfer is held while more than 1 MiB waits for that.
package final class TemporaryFileCollector: ResponseCollector<URL>, TemporaryFileHolder, @unchecked Sendable {
    // Sendable: as its superclass; what the queue shares with the session's thread is behind a lock.

    private struct State {
        var pending = 0
        var isHolding = false
        var failure: NetworkError?
    }

    private static let bound = 1 << 20

    let temporaryFile: TemporaryFile?
    private let url: URL
    private let file: FileHandle
    private let queue = DispatchQueue(label: "OperationKit.TemporaryFileCollector")
    private let state = Locked(State())
    private var isFinished = false

    convenience init(in folder: URL) throws(NetworkError) {
        let (made, descriptor) = try TemporaryFile.make(in: folder)
        self.init(made, descriptor)
    }

    /// One that writes to a file that is open, and stays.
    package convenience init(writingTo descriptor: Int32, at url: URL) {
        let file = TemporaryFile(url)
        file.handOver()
        self.init(file, descriptor)
    }

    private init(_ made: TemporaryFile, _ descriptor: Int32) {
        (temporaryFile, url) = (made, made.url)
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        super.init()
    }

    package override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        let data = Data(bytes)
        let isTooMuch = try state.withLock { state in
            if let failure = state.failure { throw failure }
            return state.pending + data.count > Self.bound
        }
        // First the brake, then the note of it, then what will release it: whoever sees the note finds the brake set.
        if isTooMuch { flow.hold() }
        state.withLock { state in
            state.pending += data.count
            if isTooMuch { state.isHolding = true }
        }
        queue.async { [self] in write(data, flow) }
    }

    private func write(_ data: Data, _ flow: any NetworkTask) {
        let failure = data.withUnsafeBytes { write($0) }
        let proceeds = state.withLock { state in
            state.failure = state.failure ?? failure
            state.pending -= data.count
            guard state.isHolding, state.pending <= Self.bound / 2 else { return false }
            state.isHolding = false
            return true
        }
        if proceeds { flow.proceed() }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> NetworkError? {
        var rest = bytes
        while !rest.isEmpty {
            let count = Foundation.write(file.fileDescriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return Self.unwritable(errno) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
        return nil
    }

    private static func unwritable(_ number: Int32) -> NetworkError {
        let isFull = number == ENOSPC || number == EDQUOT
        return NetworkError(
            code: isFull ? .diskFull : .fileUnwritable, phase: .saving,
            message: isFull
                ? "The disk has no room for the body. Free some."
                : "The body could not be written to a temporary file.",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }

    package override func finish() throws -> URL {
        if isFinished { return url }
        isFinished = true
        try queue.sync {
            if let failure = state.withLock({ $0.failure }) { throw failure }
            do { try file.close() } catch { throw Self.unwritable(errno) }
        }
        return url
    }
}
