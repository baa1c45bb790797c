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
