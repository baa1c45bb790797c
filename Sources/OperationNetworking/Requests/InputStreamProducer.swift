// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

/// Gives the bytes of an `InputStream`, whose `read` may block, to a transfer that may not.
///
/// The stream is read on a queue of its own, one portion ahead.
final class InputStreamProducer: BodyProducer {
    private enum State {
        /// Nothing is there and nobody reads.
        case empty
        case reading(BodyWaker)
        case filled([UInt8], used: Int)
        case failed(any Error)
        case ended
    }

    private static let portion = 64 << 10

    private let state = Locked(State.empty)
    private let queue = DispatchQueue(label: "OperationKit.InputStreamProducer")
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) let stream: InputStream
    private nonisolated(unsafe) var isOpen = false

    init(_ stream: InputStream) {
        self.stream = stream
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        let (portion, reads) = try state.withLock { state -> (BodyPortion, Bool) in
            switch state {
            case .empty:
                state = .reading(waker)
                return (.notYet, true)
            case .reading:
                state = .reading(waker)
                return (.notYet, false)
            case .filled(let bytes, let used):
                let count = min(bytes.count - used, buffer.count)
                bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[used..<used + count])) }
                state = used + count == bytes.count ? .empty : .filled(bytes, used: used + count)
                return (.bytes(count), false)
            case .failed(let error): throw error
            case .ended: return (.end, false)
            }
        }
        if reads { queue.async { self.read() } }
        return portion
    }

    private func read() {
        if !isOpen {
            stream.open()
            isOpen = true
        }
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.portion) { buffer, initialized in
            if let base = buffer.baseAddress { count = stream.read(base, maxLength: Self.portion) }
            initialized = max(count, 0)
        }
        let next: State
        switch count {
        case 1...: next = .filled(bytes, used: 0)
        case 0: next = .ended
        default:
            // `streamError` traps in Foundation on Linux.
            next = .failed(
                NetworkError(
                    code: .bodyUnreadable, phase: .sending, message: "The stream of the body could not be read."))
        }
        if count <= 0 { stream.close() }
        let waker = state.withLock { state -> BodyWaker? in
            guard case .reading(let waker) = state else { return nil }
            state = next
            return waker
        }
        waker?.wake()
    }
}
