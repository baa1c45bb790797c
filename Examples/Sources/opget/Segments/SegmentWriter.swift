// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import Synchronization

/// A writer for the bytes of a segment, which writes on its own queue.
///
/// The session's thread never waits for the disk. If a transfer is faster than the disk, the writer holds the transfer.
final class SegmentWriter: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        /// The transfer that is held until the writer has room.
        var held: (any NetworkTask)?
        /// The number of the attempt whose bytes are accepted.
        var turn = 0
        var failure: FileFailure?
    }

    /// The maximum number of bytes that wait to be written.
    private static let capacity = 256 << 10
    /// The number of waiting bytes that starts a block on the queue.
    private static let portion = 64 << 10

    private let file: SegmentedFile
    private let index: Int
    private let wrote: @Sendable () -> Void
    private let queue: DispatchQueue
    private let state = Mutex(State())

    init(_ file: SegmentedFile, _ index: Int, wrote: @escaping @Sendable () -> Void) {
        self.file = file
        self.index = index
        self.wrote = wrote
        queue = DispatchQueue(label: "opget.segment.\(index)")
    }

    /// Begins an attempt and returns its number, after which the writer accepts only bytes of this attempt.
    func begin() -> Int {
        state.withLock { state in
            state.turn += 1
            return state.turn
        }
    }

    /// Accepts bytes on the session's thread, in consecutive calls for each attempt.
    ///
    /// The writer ignores bytes of an earlier attempt, because a newer attempt might already write at the same
    /// position.
    func take(_ bytes: UnsafeRawBufferPointer, _ flow: any NetworkTask, of turn: Int) throws(FileFailure) {
        // Only this thread adds bytes. The transfer is held first, because the queue could otherwise release it too
        // early.
        let (failure, holds) = state.withLock { state in
            let isFull = state.held == nil && state.bytes.count + bytes.count >= Self.capacity
            return (state.failure, isFull && turn == state.turn)
        }
        if let failure { throw failure }
        if holds { flow.hold() }
        let begins: Bool? = state.withLock { state in
            guard turn == state.turn else { return nil }
            let wasEnough = state.bytes.count >= Self.portion
            state.bytes += bytes
            if holds { state.held = flow }
            // Each full portion and each held transfer adds its own block to the queue, so no bytes are missed.
            return holds || !wasEnough && state.bytes.count >= Self.portion
        }
        guard let begins else {
            if holds { flow.proceed() }
            return
        }
        if begins { queue.async { [self] in work() } }
    }

    private func work() {
        guard let (bytes, held) = nextBatch() else { return }
        held?.proceed()
        guard !bytes.isEmpty else { return }
        do throws(FileFailure) {
            try write(bytes)
            wrote()
        } catch {
            // The next call of `take` throws this error.
            state.withLock { $0.failure = error }
        }
    }

    private func write(_ bytes: [UInt8]) throws(FileFailure) {
        let result = bytes.withUnsafeBytes { buffer -> Result<Void, FileFailure> in
            Result { () throws(FileFailure) in try file.write(buffer, to: index) }
        }
        try result.get()
    }

    private func nextBatch() -> ([UInt8], (any NetworkTask)?)? {
        state.withLock { state in
            // After a failure, nothing is written, but a held transfer must proceed to receive the error.
            if state.failure != nil { state.bytes = [] }
            guard !state.bytes.isEmpty || state.held != nil else { return nil }
            defer { (state.bytes, state.held) = ([], nil) }
            return (state.bytes, state.held)
        }
    }

    /// Writes the remaining bytes and checks that the segment is complete, on a thread that may block.
    func finish() throws -> Int64 {
        queue.sync { work() }
        if let failure = state.withLock({ $0.failure }) { throw failure }
        guard file.isComplete(index) else {
            throw NetworkError(
                code: .truncatedBody, phase: .receiving,
                message: "The server sent fewer bytes of the file than it announced.")
        }
        return file.written(index)
    }

    /// Waits until all received bytes are written, and ignores later bytes of the same attempt.
    func settled() async {
        _ = begin()
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                work()
                continuation.resume()
            }
        }
    }
}
