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
    /// How many bytes of data in memory were taken.
    private var position = 0
    /// The last portion, as long as it is not known whether anything follows it.
    private var held: ArraySlice<UInt8> = []
    /// Whether the source was asked once more after its last byte, and had no other.
    private var hasEnded = false

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
        guard !hasEnded || !held.isEmpty, !buffer.isEmpty else { return .end }
        let rest = (length ?? .max) - count
        guard rest > 0, held.isEmpty else { return try lastPortion(into: buffer) }
        // Not cut to the rest: that there is more than was stated is to be seen.
        let portion = try portion(into: buffer)
        switch portion {
        case .bytes(let given):
            guard given > 0, given <= buffer.count else {
                throw Self.mismatch("The producer of the body says that it gave more bytes than there was room for.")
            }
            guard given <= rest else { throw Self.tooLong }
            // Whoever sends it does not ask again after so many bytes, so it must be known now that these are all.
            if given == rest, try !isAtEnd() {
                held = Array(buffer[..<given])[...]
                return .notYet
            }
            count += Int64(given)
        case .end where length != nil: throw Self.mismatch("The body ended before its stated length.")
        case .end, .notYet: break
        }
        return portion
    }

    /// Gives what was held back, when it is known that nothing follows it.
    private func lastPortion(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> BodyPortion {
        guard try isAtEnd() else { return .notYet }
        guard !held.isEmpty else { return .end }
        let given = min(held.count, buffer.count)
        buffer.copyBytes(from: held.prefix(given))
        held = held.dropFirst(given)
        count += Int64(given)
        return .bytes(given)
    }

    /// Asks the source for one byte more than there must be; false if that is not yet known.
    private func isAtEnd() throws(NetworkError) -> Bool {
        guard !hasEnded else { return true }
        var result = Result<BodyPortion, NetworkError>.success(.end)
        withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { room in
            do throws(NetworkError) { result = .success(try portion(into: room)) } catch { result = .failure(error) }
        }
        switch try result.get() {
        case .bytes: throw Self.tooLong
        case .notYet: return false
        case .end: hasEnded = true
        }
        return true
    }

    private func portion(into target: UnsafeMutableRawBufferPointer) throws(NetworkError) -> BodyPortion {
        switch source {
        case .data(let data):
            guard position < data.count else { return .end }
            let start = data.startIndex + position
            let given = min(target.count, data.endIndex - start)
            data.copyBytes(to: target, from: start..<start + given)
            position += given
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
        // What it says may be anything, and bytes of the body among it.
        var failure = NetworkError(
            code: .bodyUnreadable, phase: .sending, message: "What makes the body of the request failed.",
            underlying: .init(domain: "body", number: 0, text: "\(type(of: error))"))
        failure.cause = error
        return failure
    }

    private static let tooLong = mismatch(
        "The body has more bytes than its stated length. State the right one, or none.")

    private static func mismatch(_ message: String) -> NetworkError {
        NetworkError(code: .bodyLengthMismatch, phase: .sending, message: message)
    }
}
