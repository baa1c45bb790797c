// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response whose body you read in pieces while the session receives it.
///
/// ```swift
/// func follow(_ url: URL) async throws {
///     let request = try NetworkRequest(url: url)
///     let stream = try await DefaultNetworkSession.standard.stream(request)
///     for try await line in stream.lines {
///         print(line)
///     }
/// }
/// ```
///
/// The stream buffers at most about 64 KiB. If your code reads more slowly than the server sends, the session stops
/// receiving until the buffer has space. To cancel the transfer, release the stream and its iterators, or cancel the
/// Swift task that awaits the next piece.
///
/// Iterate over the stream only once. If two Swift tasks await a piece at the same time, the second task gets an error
/// with the code ``NetworkError/Code/awaitedTwice``.
public struct ResponseStream: AsyncSequence, Sendable {
    /// The status and the headers of the response.
    public let head: ResponseHead
    let handle: StreamHandle

    /// Creates an iterator over the pieces of the body.
    public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

    /// An iterator that provides the pieces of a body, in the sizes in which the session receives them.
    public struct Iterator: AsyncIteratorProtocol {
        let handle: StreamHandle

        /// Returns the next piece of the body, or `nil` at the end of the body.
        ///
        /// - Throws: A ``NetworkError`` if the transfer fails or if you cancel the Swift task.
        public mutating func next() async throws -> Data? {
            let (task, buffer) = (handle.task, handle.buffer)
            return try await withTaskCancellationHandler {
                try await buffer.next()
            } onCancel: {
                task.cancel()
            }
        }
    }

    /// An asynchronous sequence of the bytes of the body.
    public var bytes: some AsyncSequence<UInt8, any Error> & Sendable { Bytes(stream: self) }

    /// An asynchronous sequence of the lines of the body, without the line endings LF, CR LF or CR.
    ///
    /// The sequence decodes the lines as UTF-8, regardless of the character set that the response specifies.
    ///
    /// If a line is longer than 1 MiB, the iteration ends with a ``NetworkError`` with the code
    /// ``NetworkError/Code/bodyTooLarge``.
    public var lines: some AsyncSequence<String, any Error> & Sendable { Lines(stream: self) }

    /// An asynchronous sequence of the bytes of a response body.
    package struct Bytes: AsyncSequence, Sendable {
        let stream: ResponseStream

        /// Creates an iterator over the bytes of the body.
        package func makeAsyncIterator() -> Iterator { Iterator(pieces: stream.makeAsyncIterator()) }

        /// An iterator that provides the bytes of a response body.
        package struct Iterator: AsyncIteratorProtocol {
            var pieces: ResponseStream.Iterator
            fileprivate var piece = Data()
            fileprivate var position = 0

            /// Returns the next byte of the body, or `nil` at the end of the body.
            package mutating func next() async throws -> UInt8? {
                while position == piece.endIndex {
                    guard let next = try await pieces.next() else { return nil }
                    piece = next
                    position = next.startIndex
                }
                defer { position += 1 }
                return piece[position]
            }
        }
    }

    /// An asynchronous sequence of the lines of a response body.
    package struct Lines: AsyncSequence, Sendable {
        let stream: ResponseStream

        /// Creates an iterator over the lines of the body.
        package func makeAsyncIterator() -> Iterator { Iterator(pieces: stream.makeAsyncIterator()) }

        /// An iterator that provides the lines of a response body.
        package struct Iterator: AsyncIteratorProtocol {
            var pieces: ResponseStream.Iterator
            /// Whether text after the last line ending is a line, too.
            var givesRest = true
            fileprivate var splitter = LineSplitter()

            /// Returns the next line of the body, or `nil` at the end of the body.
            ///
            /// - Throws: A ``NetworkError`` if the transfer fails. If a line is longer than 1 MiB, the code is
            ///   ``NetworkError/Code/bodyTooLarge``.
            package mutating func next() async throws -> String? {
                while true {
                    if let line = splitter.next() { return line }
                    guard splitter.isWithinBounds else {
                        throw NetworkError(
                            code: .bodyTooLarge, phase: .receiving, message: "A line is longer than 1 MiB.")
                    }
                    guard let piece = try await pieces.next() else { return givesRest ? splitter.rest() : nil }
                    splitter.add(piece)
                }
            }
        }
    }
}

extension NetworkSession {
    /// Sends a request and returns a stream as soon as the response headers arrive.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - statuses: The rule that determines which status codes indicate success. The default is
    ///     ``StatusRule/success``.
    /// - Throws: A ``NetworkError`` if the transfer fails or the rule does not accept the status code. For a status
    ///   code that the rule does not accept, ``NetworkError/bodyPrefix`` contains up to 16 KiB of the body that arrived
    ///   within 2 seconds after the headers.
    public func stream(_ request: NetworkRequest, statuses: StatusRule = .success) async throws -> ResponseStream {
        var rules = ResponseRules()
        (rules.statuses, rules.contentTypes) = (statuses, .any)
        return try await stream(request, rules: rules)
    }

    package func stream(
        _ request: NetworkRequest, rules: ResponseRules, clock: any OperationClock = .system
    ) async throws -> ResponseStream {
        let buffer = StreamBuffer()
        let task = makeTask(with: request, receiver: buffer)
        let handle = StreamHandle(buffer, task)
        let head = try await withTaskCancellationHandler {
            task.resume()
            return try await buffer.head()
        } onCancel: {
            task.cancel()
        }
        do throws(NetworkError) {
            let stream = ResponseStream(head: head, handle: handle)
            guard rules.accepts(head) else {
                // A slow body is not worth waiting for.
                let timer = clock.schedule(after: .seconds(2)) { task.cancel() }
                let body = await stream.prefix(rules.keptErrorBytes)
                timer.cancel()
                throw rules.statusError(head, HTTPURLResponse(head), body)
            }
            try rules.checkType(of: head, to: request)
            return stream
        } catch {
            throw error.completed(request: request, head: head)
        }
    }
}

extension ResponseStream {
    /// Returns the first bytes of the body, or fewer if the transfer fails.
    fileprivate func prefix(_ count: Int) async -> Data {
        var (data, pieces) = (Data(), makeAsyncIterator())
        while data.count < count, let piece = try? await pieces.next() { data += piece.prefix(count - data.count) }
        return data
    }
}

/// The bytes that wait for a slower consumer, as a value that decides when to hold and release their transfer.
///
/// Hold the transfer before you add the bytes, so that a thread that removes them can release it.
package struct FlowWindow: Sendable {
    private let bound: Int
    private var pending = 0
    private var isHeld = false

    package init(bound: Int) {
        self.bound = bound
    }

    /// Returns whether the transfer must be held because of these bytes.
    package func isFull(with count: Int) -> Bool { pending + count > bound }

    package mutating func add(_ count: Int, isHeld: Bool) {
        pending += count
        if isHeld { self.isHeld = true }
    }

    /// Removes bytes, and returns whether to release the transfer.
    ///
    /// - Parameter isLast: Whether the consumer ignores all other bytes. The default is `false`.
    package mutating func remove(_ count: Int, isLast: Bool = false) -> Bool {
        pending -= count
        guard isHeld, isLast || pending <= bound / 2 else { return false }
        isHeld = false
        return true
    }
}

/// A buffer between the session's thread and the reader, which holds the transfer while the buffer is full.
final class StreamBuffer: NetworkReceiver {
    private enum PendingRead {
        case head(CheckedContinuation<ResponseHead, any Error>)
        case bytes(CheckedContinuation<Data?, any Error>)
    }

    private struct State {
        var head: ResponseHead?
        var pieces = Fifo<Data>()
        var window = FlowWindow(bound: 64 << 10)
        /// The end of the transfer, which is a success if the body is complete.
        var end: Result<Void, NetworkError>?
        var read: PendingRead?
        var task: (any NetworkTask)?
    }

    private static let secondCaller = NetworkError(
        code: .awaitedTwice, phase: .receiving,
        message: "Two tasks wait for the next part of the same response. Iterate over the response in one task.")

    private static let noHead = NetworkError(
        code: .invalidResponse, phase: .awaitingResponse, message: "The response has no headers.")

    private let state = Locked(State())

    /// Waits for the headers.
    func head() async throws -> ResponseHead {
        try await withCheckedThrowingContinuation { continuation in
            let known: Result<ResponseHead, NetworkError>? = state.withLock { state in
                if let head = state.head { return .success(head) }
                switch state.end {
                case .failure(let error): return .failure(error)
                case .success: return .failure(Self.noHead)
                case nil:
                    state.read = .head(continuation)
                    return nil
                }
            }
            if let known { continuation.resume(with: known.mapError { $0 as any Error }) }
        }
    }

    /// Waits for the next piece, and returns `nil` at the end.
    ///
    /// If another caller is already waiting, the method throws an error.
    func next() async throws -> Data? {
        try await withCheckedThrowingContinuation { continuation in
            let (answer, flow): (Result<Data?, NetworkError>?, (any NetworkTask)?) = state.withLock { state in
                if let piece = state.pieces.popFirst() {
                    return (.success(piece), state.window.remove(piece.count) ? state.task : nil)
                }
                switch state.end {
                case .success: return (.success(nil), nil)
                case .failure(let error): return (.failure(error), nil)
                case nil where state.read != nil: return (.failure(Self.secondCaller), nil)
                case nil:
                    state.read = .bytes(continuation)
                    return (nil, nil)
                }
            }
            flow?.proceed()
            if let answer { continuation.resume(with: answer.mapError { $0 as any Error }) }
        }
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        let read = state.withLock { state -> PendingRead? in
            state.head = head
            state.task = task
            guard case .head = state.read else { return nil }
            return exchange(&state.read, with: nil)
        }
        if case .head(let continuation) = read { continuation.resume(returning: head) }
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        let data = Data(bytes)
        let isFull = state.withLock { $0.window.isFull(with: data.count) }
        if isFull { task.hold() }
        let read = state.withLock { state -> PendingRead? in
            if case .bytes = state.read { return exchange(&state.read, with: nil) }
            state.pieces.append(data)
            state.window.add(data.count, isHeld: isFull)
            return nil
        }
        guard case .bytes(let continuation) = read else { return }
        if isFull { task.proceed() }
        continuation.resume(returning: data)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let read = state.withLock { state -> PendingRead? in
            state.end = error.map { .failure($0) } ?? .success(())
            state.task = nil
            return exchange(&state.read, with: nil)
        }
        switch read {
        case .head(let continuation):
            continuation.resume(throwing: error ?? Self.noHead)
        case .bytes(let continuation):
            if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: nil) }
        case nil: break
        }
    }
}

/// An object that cancels a transfer when no stream or iterator uses it anymore.
final class StreamHandle: Sendable {
    let buffer: StreamBuffer
    let task: any NetworkTask

    init(_ buffer: StreamBuffer, _ task: any NetworkTask) {
        self.buffer = buffer
        self.task = task
    }

    deinit { task.cancel() }
}
