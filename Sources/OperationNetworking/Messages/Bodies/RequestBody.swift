// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The body of a request, which can be data, a file, a form or a stream.
///
/// The session opens the file or the stream of a body only when the session sends the body. If the session sends a
/// request again, for example after a redirect, it reads the body again.
public struct RequestBody: Sendable {
    package enum Source: Sendable {
        case none
        case data(Data)
        case file(FileRegion)
        case stream(@Sendable () throws -> any BodyProducer)
    }

    package let source: Source
    /// The number of bytes in the body, or `nil` if the length is not known in advance or the body is ``none``.
    public let length: Int64?
    /// A Boolean value that indicates whether a session can send the body more than once.
    public let canBeSentAgain: Bool
    /// The content type of the body, or `nil` if the body has no content type.
    ///
    /// If a request with this body has no `Content-Type` header, OperationKit adds the header with this value.
    public let contentType: String?
    /// The compression of the body, such as `gzip`, or `nil` if the body is not compressed.
    ///
    /// If a request with this body has no `Content-Encoding` header, OperationKit adds the header with this value.
    public let contentEncoding: String?
    /// Whether the bytes of a body that can be sent only once were requested.
    ///
    /// Before that, no attempt has used them.
    private let use: OneWayFlag?

    package init(
        source: Source, length: Int64?, canBeSentAgain: Bool, contentType: String? = nil,
        contentEncoding: String? = nil, use: OneWayFlag? = nil
    ) {
        self.use = use
        self.source = source
        self.length = length
        self.canBeSentAgain = canBeSentAgain
        self.contentType = contentType
        self.contentEncoding = contentEncoding
    }

    /// A value that represents the absence of a body.
    public static let none = RequestBody(source: .none, length: nil, canBeSentAgain: true)

    /// Creates a body that contains data in memory.
    public static func data(_ data: Data) -> RequestBody {
        RequestBody(source: .data(data), length: Int64(data.count), canBeSentAgain: true)
    }

    /// Creates a body that contains a file or a part of a file.
    ///
    /// The session reads the file during the transfer on a separate thread, so that a slow disk does not delay other
    /// transfers. If the body is only a part of a file, a `URLSession` first copies this part to a temporary file.
    public static func file(_ region: FileRegion) -> RequestBody {
        RequestBody(source: .file(region), length: region.length, canBeSentAgain: true)
    }

    /// Creates a body whose bytes come from a producer during the transfer.
    ///
    /// A `URLSession` writes the bytes to a temporary file before it sends the request.
    ///
    /// - Parameters:
    ///   - length: The number of bytes in the body. The request fails if the producer provides a different number of
    ///     bytes. The default is `nil`, which means that the length is unknown.
    ///   - canBeSentAgain: A Boolean value that indicates whether all producers from `makeProducer` provide the same
    ///     bytes. If the value is `false`, a session can send the body only once.
    ///   - makeProducer: A closure that creates the producer for one transfer. The session calls the closure on one of
    ///     its threads, so the closure must not block.
    public static func stream(
        length: Int64? = nil, canBeSentAgain: Bool, _ makeProducer: @escaping @Sendable () throws -> any BodyProducer
    ) -> RequestBody {
        guard !canBeSentAgain else {
            return RequestBody(source: .stream(makeProducer), length: length, canBeSentAgain: true)
        }
        let use = OneWayFlag()
        let source = Source.stream {
            use.set()
            return try makeProducer()
        }
        return RequestBody(source: source, length: length, canBeSentAgain: false, use: use)
    }

    /// Whether the body can be sent now, because it can be sent again or because its bytes were not requested yet.
    package var canBeSentNow: Bool { canBeSentAgain || use?.isSet == false }

    /// Creates a body whose bytes come from an `InputStream` during the transfer.
    ///
    /// A session can send the body only once. The session opens, reads and closes the stream on a separate queue. A
    /// `URLSession` writes the bytes to a temporary file before it sends the request.
    ///
    /// - Parameters:
    ///   - stream: A stream that has not been opened.
    ///   - length: The number of bytes in the stream. The default is `nil`, which means that the length is unknown.
    public static func stream(_ stream: sending InputStream, length: Int64? = nil) -> RequestBody {
        .stream(once: Unchecked(stream), length: length)
    }

    /// Creates a body from a stream that no other code reads.
    static func stream(once stream: Unchecked<InputStream>, length: Int64? = nil) -> RequestBody {
        // Sendable: only the one producer that receives the stream reads it.
        let once = Locked<Unchecked<InputStream>?>(stream)
        return .stream(length: length, canBeSentAgain: false) {
            guard let stream = once.withLock({ exchange(&$0, with: nil) }) else {
                throw NetworkError(
                    code: .bodyNotRepeatable, phase: .checking,
                    message: "The stream was already read. Create a new stream.")
            }
            return ReadAheadProducer(stream)
        }
    }

    /// A Boolean value that indicates whether the body is ``none``.
    ///
    /// The value is `false` for a body with a length of 0.
    public var isNone: Bool {
        if case .none = source { true } else { false }
    }

    /// Whether the session reads no file and calls no code of the user to send the body.
    var isInMemory: Bool {
        switch source {
        case .none, .data: true
        case .file, .stream: false
        }
    }

    /// Returns a copy of the body with the given content type.
    ///
    /// - Parameter contentType: The value of the `Content-Type` header, unless the headers of the request contain
    ///   another value.
    public func withContentType(_ contentType: String) -> RequestBody {
        described(as: contentType, encoding: contentEncoding)
    }

    func described(as contentType: String?, encoding: String?) -> RequestBody {
        RequestBody(
            source: source, length: length, canBeSentAgain: canBeSentAgain, contentType: contentType,
            contentEncoding: encoding, use: use)
    }

    func withLength(_ length: Int64) -> RequestBody {
        RequestBody(
            source: source, length: length, canBeSentAgain: canBeSentAgain, contentType: contentType,
            contentEncoding: contentEncoding, use: use)
    }
}

/// An object that provides the bytes of a request body during the transfer.
///
/// The session calls ``produce(into:waker:)`` repeatedly until the method returns ``BodyPortion/end`` or throws an
/// error, or until the transfer ends. The calls happen on the session's threads and never overlap. The producer must
/// not block. If no bytes are available, the producer returns ``BodyPortion/notYet`` and calls ``BodyWaker/wake()``
/// when bytes become available.
public protocol BodyProducer: AnyObject, Sendable {
    /// Writes the next bytes of the body to the beginning of a buffer.
    ///
    /// - Parameters:
    ///   - buffer: The buffer, which has space for at least one byte.
    ///   - waker: A waker that resumes the transfer after the producer returns ``BodyPortion/notYet``. The producer can
    ///     store the waker and use it on any thread.
    /// - Returns: The number of bytes that the producer wrote, or the reason why the producer wrote no bytes.
    /// - Throws: An error if the producer cannot provide the body. The request then fails.
    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion
}

/// The result of ``BodyProducer/produce(into:waker:)``.
///
/// Only a major version may add cases.
public enum BodyPortion: Sendable, Hashable {
    /// The producer wrote this number of bytes, which is at least 1.
    case bytes(Int)
    /// The producer has no bytes yet and calls ``BodyWaker/wake()`` when bytes become available.
    case notYet
    /// The producer has provided all bytes of the body.
    case end
}

/// A value that a ``BodyProducer`` uses to resume the transfer when more bytes are available.
public struct BodyWaker: Sendable {
    private let action: @Sendable () -> Void

    /// Creates a waker that calls a closure, for custom sessions and tests.
    ///
    /// - Parameter action: The closure that ``wake()`` calls, on the thread that calls ``wake()``.
    public init(_ action: @escaping @Sendable () -> Void) {
        self.action = action
    }

    /// Makes the session call the producer again.
    ///
    /// You can call this method on any thread, at any time and more than once.
    public func wake() { action() }
}

/// Reads a request body in portions, and verifies that its length matches the stated length.
package final class BodyReader {
    private enum Source {
        case data(Data)
        case stream(any BodyProducer)
    }

    private let source: Source
    private let length: Int64?
    private let waker: BodyWaker
    private var count: Int64 = 0
    /// The number of bytes in memory that were read.
    private var position = 0
    /// The last portion, until it is known whether more bytes follow.
    private var held: ArraySlice<UInt8> = []
    /// Whether the source reported that no more bytes follow.
    private var hasEnded = false

    /// Opens the body without reading it.
    ///
    /// A file is opened and read on another thread, so its first portion is not available yet.
    package init(_ body: RequestBody, waker: BodyWaker) throws(NetworkError) {
        self.waker = waker
        length = body.length
        switch body.source {
        case .none: source = .data(Data())
        case .data(let data): source = .data(data)
        case .file(let region): source = .stream(ReadAheadProducer(region))
        case .stream(let makeProducer):
            do {
                source = .stream(try makeProducer())
            } catch {
                throw Self.failure(error)
            }
        }
    }

    /// Whether all bytes were read.
    package var isComplete: Bool { length.map { count == $0 } ?? hasEnded }

    /// Fills a part of the buffer, from its beginning.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> BodyPortion {
        guard !hasEnded || !held.isEmpty, !buffer.isEmpty else { return .end }
        let rest = (length ?? .max) - count
        guard rest > 0, held.isEmpty else { return try lastPortion(into: buffer) }
        // The whole buffer is used, not just the rest, so that surplus bytes are detected.
        let portion = try portion(into: buffer)
        switch portion {
        case .bytes(let given):
            guard given > 0, given <= buffer.count else {
                throw Self.mismatch("The producer of the body reported more bytes than fit into the buffer.")
            }
            guard given <= rest else { throw Self.tooLong }
            // The sender does not ask again after the stated number of bytes, so check now that no bytes follow.
            if given == rest, try !isAtEnd() {
                held = Array(buffer[..<given])[...]
                return .notYet
            }
            count += Int64(given)
        case .end where length != nil: throw Self.mismatch("The body ended before its stated length.")
        case .end: hasEnded = true
        case .notYet: break
        }
        return portion
    }

    /// Returns the portion that was held back, once it is known that no bytes follow it.
    private func lastPortion(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> BodyPortion {
        guard try isAtEnd() else { return .notYet }
        guard !held.isEmpty else { return .end }
        let given = min(held.count, buffer.count)
        buffer.copyBytes(from: held.prefix(given))
        held = held.dropFirst(given)
        count += Int64(given)
        return .bytes(given)
    }

    /// Asks the source for one byte beyond the stated length, and returns `false` if the result is not known yet.
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
        // The error's text may contain anything, even bytes of the body.
        var failure = NetworkError(
            code: .bodyUnreadable, phase: .sending, message: "The producer of the request's body failed.",
            underlying: .init(domain: "body", number: 0, text: "\(type(of: error))"))
        failure.cause = error
        return failure
    }

    private static let tooLong = mismatch(
        "The body has more bytes than its stated length. State the correct length, or no length.")

    private static func mismatch(_ message: String) -> NetworkError {
        NetworkError(code: .bodyLengthMismatch, phase: .sending, message: message)
    }
}

/// Portions of a body that are read before they are sent, with the next range to read and the waiting transfer.
///
/// One thread reads and another thread takes the portions. At most two portions are kept.
package struct ReadAhead {
    private static var kept: Int { 2 }

    /// The number of bytes of the body, which is `.max` until the end of a stream.
    private var length: Int64
    private let portion: Int
    private var ready = Fifo<[UInt8]>()
    /// The number of bytes that were taken from the first portion.
    private var used = 0
    /// The number of bytes that were read or are being read.
    private var asked: Int64 = 0
    /// The number of bytes that have been read so far.
    private var filled: Int64 = 0
    /// Whether the first portion was requested, and whether it arrived.
    ///
    /// Even an empty body has a first portion.
    private var wasAsked = false
    private var hasBegun = false
    private var reading = RepeatFlag()
    private var waker: BodyWaker?
    private var failure: NetworkError?

    package init(length: Int64, portion: Int) {
        self.length = length
        self.portion = portion
    }

    /// Fills a part of the buffer, or stores the waker.
    ///
    /// `reads` is `true` if the caller must start to read.
    package mutating func take(
        into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker
    ) throws(NetworkError) -> (BodyPortion, reads: Bool) {
        guard let bytes = ready.first else {
            if let failure { throw failure }
            guard filled < length || !hasBegun else { return (.end, false) }
            self.waker = waker
            return (.notYet, beginReading())
        }
        let count = min(bytes.count - used, buffer.count)
        bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[used..<used + count])) }
        used += count
        if used == bytes.count {
            _ = ready.popFirst()
            used = 0
        }
        return (.bytes(count), beginReading())
    }

    private var wantsMore: Bool { failure == nil && isUnasked && ready.count < Self.kept }
    private var isUnasked: Bool { asked < length || length == 0 && !wasAsked }

    private mutating func beginReading() -> Bool {
        wantsMore && reading.request()
    }

    /// Returns the offset and the size of the next portion to read, or `nil` if no reading is necessary for now.
    package mutating func next() -> (offset: Int64, count: Int)? {
        guard wantsMore else {
            reading.stop()
            return nil
        }
        let offset = asked
        let count = Int(min(Int64(portion), length - offset))
        asked += Int64(count)
        wasAsked = true
        return (offset, count)
    }

    /// Stores the bytes of the portion that `next` requested, which are none at the end of the body.
    ///
    /// The method returns the waker of the waiting transfer.
    package mutating func filled(_ bytes: [UInt8]) -> BodyWaker? {
        hasBegun = true
        filled += Int64(bytes.count)
        if bytes.isEmpty { length = filled } else { ready.append(bytes) }
        return exchange(&waker, with: nil)
    }

    /// Records that reading failed.
    ///
    /// The method returns the waker of the waiting transfer, which then receives the error.
    package mutating func failed(_ error: NetworkError) -> BodyWaker? {
        failure = error
        reading.stop()
        return exchange(&waker, with: nil)
    }
}
