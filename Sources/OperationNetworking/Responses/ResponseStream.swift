// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response whose body is taken piece by piece, while it comes.
///
/// ```swift
/// func follow(_ url: URL) async throws {
///     let request = try NetworkRequest(url: url)
///     for try await line in try await DefaultNetworkSession.standard.stream(request).lines {
///         print(line)
///     }
/// }
/// ```
///
/// Not more than about 64 KiB are kept: who takes them slowly slows down the server. The transfer is cancelled when nobody
/// has the stream or an iterator of it any more, and when the task that awaits is cancelled. Iterate over it once: a second
/// task that asks for the next piece while one awaits it gets an error (``NetworkError/Code/awaitedTwice``).
public struct ResponseStream: AsyncSequence, Sendable {
    /// The head of the response.
    public let head: ResponseHead
    let handle: StreamHandle

    /// Makes an iterator over the pieces.
    public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

    /// Gives the pieces of a body, of whatever size they come.
    public struct Iterator: AsyncIteratorProtocol {
        let handle: StreamHandle

        /// The next piece; nil at the end.
        public mutating func next() async throws -> Data? {
            let (task, buffer) = (handle.task, handle.buffer)
            return try await withTaskCancellationHandler {
                try await buffer.next()
            } onCancel: {
                task.cancel()
            }
        }
    }

    /// The bytes, one after another.
    public var bytes: Bytes { Bytes(stream: self) }

    /// The lines, without what ends them (LF, CR LF or CR), read as UTF-8 whatever character set the response names.
    public var lines: Lines { Lines(stream: self) }

    /// The bytes of a response.
    public struct Bytes: AsyncSequence, Sendable {
        let stream: ResponseStream

        /// Makes an iterator over the bytes.
        public func makeAsyncIterator() -> Iterator { Iterator(pieces: stream.makeAsyncIterator()) }

        /// Gives the bytes of a body.
        public struct Iterator: AsyncIteratorProtocol {
            var pieces: ResponseStream.Iterator
            private var piece = Data()
            private var position = 0

            init(pieces: ResponseStream.Iterator) {
                self.pieces = pieces
            }

            /// The next byte; nil at the end.
            public mutating func next() async throws -> UInt8? {
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

    /// The lines of a response.
    public struct Lines: AsyncSequence, Sendable {
        let stream: ResponseStream

        /// Makes an iterator over the lines.
        public func makeAsyncIterator() -> Iterator { Iterator(pieces: stream.makeAsyncIterator()) }

        /// Gives the lines of a body; one of more than 1 MiB is an error.
        public struct Iterator: AsyncIteratorProtocol {
            var pieces: ResponseStream.Iterator
            /// Whether what stands after the end of the last line is a line, too.
            var givesRest = true
            private var splitter = LineSplitter()

            init(pieces: ResponseStream.Iterator) {
                self.pieces = pieces
            }

            /// The next line; nil at the end.
            public mutating func next() async throws -> String? {
                while true {
                    if let line = splitter.next() { return line }
                    guard splitter.isWithinBounds else {
                        throw NetworkError(
                            code: .bodyTooLarge, phase: .receiving, message: "A line has more than 1 MiB.")
                    }
                    guard let piece = try await pieces.next() else { return givesRest ? splitter.rest() : nil }
                    splitter.add(piece)
                }
            }
        }
    }
}

extension NetworkSession {
    /// Sends a request, and gives its response as soon as the head came.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - statuses: Which statuses are a success; any other is thrown, with the first 16 KiB of the body, as far as they
    ///     come within 2 seconds.
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
                // A body that drips is worth less than the time.
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
    /// The first bytes of the body, as far as they come.
    fileprivate func prefix(_ count: Int) async -> Data {
        var (data, pieces) = (Data(), makeAsyncIterator())
        while data.count < count, let piece = try? await pieces.next() { data += piece.prefix(count - data.count) }
        return data
    }
}

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
