// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import Synchronization

/// Writes what comes of a segment, on a queue of its own: the session's thread never waits for the disk, and a transfer that
/// is faster than the disk is held.
final class SegmentWriter: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        /// The transfer that is held until there is room.
        var held: (any NetworkTask)?
        /// Which attempt's bytes are taken.
        var turn = 0
        var failure: FileFailure?
    }

    /// So many bytes may wait.
    private static let capacity = 256 << 10
    /// So many are worth waking the queue for.
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

    /// Begins an attempt, and returns its number: from now on its bytes are taken, and no others.
    func begin() -> Int {
        state.withLock { state in
            state.turn += 1
            return state.turn
        }
    }

    /// Called on the session's thread, never twice at once for an attempt.
    ///
    /// What comes of an attempt that was given up is late: its place may be another one's by now.
    func take(_ bytes: UnsafeRawBufferPointer, _ flow: any NetworkTask, of turn: Int) throws(FileFailure) {
        // Only this thread adds bytes. The brake comes first, or the queue might loose it before it was set.
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
            // Each full portion and each held transfer adds a block of its own to the queue, so no work is missed.
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
            // After a failure nothing is written, but a transfer that is held must learn of it.
            if state.failure != nil { state.bytes = [] }
            guard !state.bytes.isEmpty || state.held != nil else { return nil }
            defer { (state.bytes, state.held) = ([], nil) }
            return (state.bytes, state.held)
        }
    }

    /// Writes what is left, and sees that nothing is missing, whatever the server said; on a thread that may block.
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

    /// Waits until all that came is written; what comes later of the same attempt is not taken any more.
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
