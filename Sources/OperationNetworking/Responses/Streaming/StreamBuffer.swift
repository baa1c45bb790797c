// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Keeps what came of a body until somebody wants it, and holds the transfer while that is much.
final class StreamBuffer: NetworkReceiver {
    private enum Wish {
        case head(CheckedContinuation<ResponseHead, any Error>)
        case bytes(CheckedContinuation<Data?, any Error>)
    }

    private struct State {
        var head: ResponseHead?
        var pieces = Fifo<Data>()
        var buffered = 0
        var isHolding = false
        /// How it ended; success if the body is complete.
        var end: Result<Void, NetworkError>?
        var wish: Wish?
        var task: (any NetworkTask)?
    }

    /// How many bytes may wait before the transfer is held.
    private static let bound = 64 << 10

    private static let secondCaller = NetworkError(
        code: .awaitedTwice, phase: .receiving,
        message: "Two tasks await the next piece of one response at the same time. Let one of them iterate over it.")

    private static let noHead = NetworkError(
        code: .invalidResponse, phase: .awaitingResponse, message: "There was no head.")

    private let state = Locked(State())

    /// Waits for the head.
    func head() async throws -> ResponseHead {
        try await withCheckedThrowingContinuation { continuation in
            let known: Result<ResponseHead, NetworkError>? = state.withLock { state in
                if let head = state.head { return .success(head) }
                switch state.end {
                case .failure(let error): return .failure(error)
                case .success: return .failure(Self.noHead)
                case nil:
                    state.wish = .head(continuation)
                    return nil
                }
            }
            if let known { continuation.resume(with: known.mapError { $0 as any Error }) }
        }
    }

    /// Waits for the next piece; nil at the end.
    ///
    /// One caller at a time: a second one is refused.
    func next() async throws -> Data? {
        try await withCheckedThrowingContinuation { continuation in
            let (answer, flow): (Result<Data?, NetworkError>?, (any NetworkTask)?) = state.withLock { state in
                if let piece = state.pieces.popFirst() {
                    state.buffered -= piece.count
                    guard state.isHolding, state.buffered <= Self.bound / 2 else { return (.success(piece), nil) }
                    state.isHolding = false
                    return (.success(piece), state.task)
                }
                switch state.end {
                case .success: return (.success(nil), nil)
                case .failure(let error): return (.failure(error), nil)
                case nil where state.wish != nil: return (.failure(Self.secondCaller), nil)
                case nil:
                    state.wish = .bytes(continuation)
                    return (nil, nil)
                }
            }
            flow?.proceed()
            if let answer { continuation.resume(with: answer.mapError { $0 as any Error }) }
        }
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        let wish = state.withLock { state -> Wish? in
            state.head = head
            state.task = task
            guard case .head = state.wish else { return nil }
            return exchange(&state.wish, with: nil)
        }
        if case .head(let continuation) = wish { continuation.resume(returning: head) }
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        let data = Data(bytes)
        // First the brake, then the note of it: whoever sees the note finds the brake set.
        let isMuch = state.withLock { $0.buffered + data.count > Self.bound }
        if isMuch { task.hold() }
        let wish = state.withLock { state -> Wish? in
            if case .bytes = state.wish { return exchange(&state.wish, with: nil) }
            state.pieces.append(data)
            state.buffered += data.count
            if isMuch { state.isHolding = true }
            return nil
        }
        guard case .bytes(let continuation) = wish else { return }
        if isMuch { task.proceed() }
        continuation.resume(returning: data)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let wish = state.withLock { state -> Wish? in
            state.end = error.map { .failure($0) } ?? .success(())
            state.task = nil
            return exchange(&state.wish, with: nil)
        }
        switch wish {
        case .head(let continuation):
            continuation.resume(throwing: error ?? Self.noHead)
        case .bytes(let continuation):
            if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: nil) }
        case nil: break
        }
    }
}

/// Cancels a transfer when nobody wants its bytes any more.
final class StreamHandle: Sendable {
    let buffer: StreamBuffer
    let task: any NetworkTask

    init(_ buffer: StreamBuffer, _ task: any NetworkTask) {
        self.buffer = buffer
        self.task = task
    }

    deinit { task.cancel() }
}
