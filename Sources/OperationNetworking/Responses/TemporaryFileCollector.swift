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
final class TemporaryFileCollector: ResponseCollector<URL>, TemporaryFileHolder, @unchecked Sendable {
    // Sendable: as its superclass; what the queue shares with the session's thread is behind a lock.

    private struct State {
        var pending = 0
        var isHolding = false
        var failure: (any Error)?
    }

    private static let bound = 1 << 20

    let temporaryFile: TemporaryFile?
    private let url: URL
    private let file: FileHandle
    private let queue = DispatchQueue(label: "OperationKit.TemporaryFileCollector")
    private let state = Locked(State())
    private var isFinished = false

    init(in folder: URL) throws(NetworkError) {
        let (made, descriptor) = try TemporaryFile.make(in: folder)
        (temporaryFile, url) = (made, made.url)
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        super.init()
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
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
        var failure: (any Error)?
        do { try file.write(contentsOf: data) } catch { failure = error }
        let proceeds = state.withLock { state in
            state.failure = state.failure ?? failure
            state.pending -= data.count
            guard state.isHolding, state.pending <= Self.bound / 2 else { return false }
            state.isHolding = false
            return true
        }
        if proceeds { flow.proceed() }
    }

    override func finish() throws -> URL {
        if isFinished { return url }
        isFinished = true
        try queue.sync {
            if let failure = state.withLock({ $0.failure }) {
                let reason = failure as NSError
                throw NetworkError(
                    code: .fileUnwritable, phase: .receiving,
                    message: "The body could not be written to a temporary file. Is there room on the disk?",
                    underlying: .init(domain: reason.domain, number: reason.code, text: "\(failure)"))
            }
            try file.close()
        }
        return url
    }
}
