// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Gives the bytes of a form, with at most one of its parts open at a time.
final class MultipartProducer: BodyProducer {
    private enum Place {
        /// Before the first byte of a piece.
        case before(Int)
        case bytes([UInt8], used: Int, piece: Int)
        case body(BodyReader, piece: Int)
    }

    private let plan: MultipartPlan
    // Sendable: a producer is never asked by two threads at once.
    private nonisolated(unsafe) var place = Place.before(0)

    init(_ plan: MultipartPlan) {
        self.plan = plan
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        var filled = 0
        while filled < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            switch try step(into: rest, waker: waker) {
            case .bytes(let count): filled += count
            case .notYet: return filled > 0 ? .bytes(filled) : .notYet
            case .end: return filled > 0 ? .bytes(filled) : .end
            }
        }
        return .bytes(filled)
    }

    /// Gives the bytes of one piece; zero of them when it goes on to the next.
    private func step(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        switch place {
        case .before(let piece):
            guard piece < plan.pieces.count else { return .end }
            switch plan.pieces[piece] {
            case .bytes(let bytes): place = .bytes(bytes, used: 0, piece: piece)
            case .body(let body): place = .body(try BodyReader(body, waker: waker), piece: piece)
            }
            return .bytes(0)
        case .bytes(let bytes, let used, let piece):
            let count = min(bytes.count - used, buffer.count)
            buffer.copyBytes(from: bytes[used..<used + count])
            place = used + count == bytes.count ? .before(piece + 1) : .bytes(bytes, used: used + count, piece: piece)
            return .bytes(count)
        case .body(let reader, let piece):
            let portion = try reader.read(into: buffer)
            guard portion == .end else { return portion }
            place = .before(piece + 1)
            return .bytes(0)
        }
    }
}
