// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Gives the bytes of a request's body one portion after the other, and sees to it that they are as many as was said.
package final class BodyReader {
    private enum Source {
        case data(Data)
        case stream(any BodyProducer)
    }

    private let source: Source
    private let length: Int64?
    private let waker: BodyWaker
    private var count: Int64 = 0

    /// Opens the body; nothing is read yet.
    ///
    /// A file is opened and read elsewhere, so the first portion is not yet there.
    package init(_ body: RequestBody, waker: BodyWaker) throws(NetworkError) {
        self.waker = waker
        length = body.length
        switch body.source {
        case .none: source = .data(Data())
        case .data(let data): source = .data(data)
        case .file(let region): source = .stream(FileRegionProducer(region))
        case .stream(let makeProducer):
            do {
                source = .stream(try makeProducer())
            } catch {
                throw Self.failure(error)
            }
        }
    }

    /// Whether all of it was given, as far as that is known beforehand.
    package var isComplete: Bool { count == length }

    /// Fills a part of the buffer, from its beginning.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> BodyPortion {
        let rest = (length ?? .max) - count
        guard rest > 0, !buffer.isEmpty else { return .end }
        // Not cut to the rest: that there is more than was stated is to be seen.
        let portion = try portion(into: buffer)
        switch portion {
        case .bytes(let given):
            guard given > 0, given <= buffer.count else {
                throw Self.mismatch("The producer of the body says that it gave more bytes than there was room for.")
            }
            guard given <= rest else {
                throw Self.mismatch("The body has more bytes than its stated length. State the right one, or none.")
            }
            count += Int64(given)
        case .end where length != nil: throw Self.mismatch("The body ended before its stated length.")
        case .end, .notYet: break
        }
        return portion
    }

    private func portion(into target: UnsafeMutableRawBufferPointer) throws(NetworkError) -> BodyPortion {
        switch source {
        case .data(let data):
            guard count < data.count else { return .end }
            let start = data.startIndex + Int(count)
            let given = min(target.count, data.endIndex - start)
            data.copyBytes(to: target, from: start..<start + given)
            return .bytes(given)
        case .stream(let producer):
            do {
                return try producer.produce(into: target, waker: waker)
            } catch {
                throw Self.failure(error)
            }
        }
    }

    private static func failure(_ error: any Error) -> NetworkError {
        if let error = error as? NetworkError { return error }
        return NetworkError(
            code: .bodyUnreadable, phase: .sending, message: "What makes the body of the request failed.",
            underlying: .init(domain: "body", number: 0, text: "\(error)"))
    }

    private static func mismatch(_ message: String) -> NetworkError {
        NetworkError(code: .bodyLengthMismatch, phase: .sending, message: message)
    }
}
