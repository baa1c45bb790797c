// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationNetworking

/// Produces bytes in pieces, either immediately or only after it was asked once without success.
final class PieceProducer: BodyProducer {
    struct Failure: Error {}

    private struct State {
        var position = 0
        var isReady: Bool
    }

    private let bytes: [UInt8]
    private let size: Int
    private let isLate: Bool
    private let failsAt: Int
    private let state: Locked<State>

    init(_ bytes: [UInt8], size: Int, isLate: Bool = false, failsAt: Int = .max) {
        self.bytes = bytes
        self.size = size
        self.isLate = isLate
        self.failsAt = failsAt
        state = Locked(State(isReady: !isLate))
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        let portion = try state.withLock { state -> BodyPortion in
            guard state.isReady else { return .notYet }
            if state.position >= failsAt { throw Failure() }
            let piece = bytes[state.position...].prefix(min(size, buffer.count))
            guard !piece.isEmpty else { return .end }
            buffer.copyBytes(from: piece)
            state.position += piece.count
            state.isReady = !isLate
            return .bytes(piece.count)
        }
        if portion == .notYet {
            DispatchQueue.global().async { [self] in
                state.withLock { $0.isReady = true }
                waker.wake()
            }
        }
        return portion
    }
}
