// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Compresses the bytes of another body while they are sent.
final class GzipProducer: BodyProducer {
    private static let portion = 32 << 10

    private let body: RequestBody
    // Sendable: a producer is never asked by two at once.
    private nonisolated(unsafe) let encoder: GzipEncoder
    private nonisolated(unsafe) var reader: BodyReader?
    private nonisolated(unsafe) var input = [UInt8](repeating: 0, count: GzipProducer.portion)
    /// Which bytes of it were read and not yet taken.
    private nonisolated(unsafe) var waiting = 0..<0
    private nonisolated(unsafe) var isAtEnd = false
    private nonisolated(unsafe) var hasEnded = false

    init(_ body: RequestBody) throws(NetworkError) {
        guard let encoder = GzipEncoder() else { throw .noCompression }
        self.encoder = encoder
        self.body = body
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        while !hasEnded {
            if waiting.isEmpty, !isAtEnd {
                switch try read(waker) {
                case .bytes(let count): waiting = 0..<count
                case .notYet: return .notYet
                case .end: isAtEnd = true
                }
            }
            let made = try encode(into: buffer)
            if made > 0 { return .bytes(made) }
        }
        return .end
    }

    private func read(_ waker: BodyWaker) throws(NetworkError) -> BodyPortion {
        let reader = try openedReader(waker)
        var result = Result<BodyPortion, NetworkError>.success(.end)
        input.withUnsafeMutableBytes { room in
            do throws(NetworkError) { result = .success(try reader.read(into: room)) } catch {
                result = .failure(error)
            }
        }
        return try result.get()
    }

    private func openedReader(_ waker: BodyWaker) throws(NetworkError) -> BodyReader {
        if let reader { return reader }
        let opened = try BodyReader(body, waker: waker)
        reader = opened
        return opened
    }

    private func encode(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int {
        let step = input.withUnsafeBytes { bytes in
            encoder.encode(UnsafeRawBufferPointer(rebasing: bytes[waiting]), isLast: isAtEnd, into: buffer)
        }
        guard let step else { throw .noCompression }
        waiting = waiting.lowerBound + step.used..<waiting.upperBound
        hasEnded = step.hasEnded
        return step.made
    }
}

extension NetworkError {
    static let noCompression = NetworkError(
        code: .compressionUnavailable, phase: .checking,
        message: "Nothing can be compressed on this system, for there is no zlib. Send the body as it is.")
}
