// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A step that a ``LoopbackServer`` performs on a connection as part of a response.
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer(), gate = Gate()
/// server.route("GET", "/slow") { _ in
///     LoopbackAnswer(
///         .head(200, ["Content-Length": "10"]), .send("01234"),
///         .stall(until: gate), .reset)
/// }
/// ```
public struct LoopbackStep: Sendable {
    package enum Kind: Sendable {
        case head(LoopbackHead)
        case bytes([UInt8])
        /// Like `bytes`, but omitted in the response to a HEAD request.
        case content([UInt8])
        /// Repeated bytes from an offset, up to a number of bytes, or without an end if `count` is nil.
        case repeating([UInt8], start: Int, count: Int?)
        case file(path: String, offset: Int, count: Int)
        case drip(ArraySlice<UInt8>, size: Int, every: Duration)
        case gate(Gate)
        case pause(Duration)
        case forever
        case body(atLeast: Int?)
        case echo
        case pace(Pace)
        case call(@Sendable () -> Void)
        case end(LoopbackEnding)
    }

    /// The pace at which the server reads from the client.
    package enum Pace: Sendable {
        case full
        case none
        case slow(size: Int, every: Duration)
    }

    package let kind: Kind

    /// Returns a step that sends a status line with the given status code and the given headers.
    ///
    /// The server does not add any headers.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - fields: The names and values of the headers, in order. The default is an empty list.
    public static func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> Self {
        .head(LoopbackHead(status, fields.map { LoopbackField($0, $1) }))
    }

    /// Returns a step that sends the given status line and headers.
    ///
    /// The server does not add any headers.
    public static func head(_ head: LoopbackHead) -> Self { Self(kind: .head(head)) }

    /// Returns a step that sends the given bytes unchanged.
    public static func send(_ bytes: [UInt8]) -> Self { Self(kind: .bytes(bytes)) }

    /// Returns a step that sends the given text unchanged.
    public static func send(_ text: String) -> Self { Self(kind: .bytes(Array(text.utf8))) }

    /// Returns a step that sends bytes as one chunk of a chunked body.
    ///
    /// If the array is empty, the step sends nothing, because an empty chunk would end the body. In the response to a
    /// HEAD request, the step also sends nothing.
    public static func chunk(_ bytes: [UInt8]) -> Self {
        let size = Array("\(String(bytes.count, radix: 16))\r\n".utf8)
        return Self(kind: .content(bytes.isEmpty ? [] : size + bytes + [13, 10]))
    }

    /// Returns a step that sends text as one chunk of a chunked body.
    ///
    /// If the text is empty, the step sends nothing, because an empty chunk would end the body. In the response to a
    /// HEAD request, the step also sends nothing.
    public static func chunk(_ text: String) -> Self { .chunk(Array(text.utf8)) }

    /// Returns a step that ends a chunked body and sends the given trailers.
    ///
    /// In the response to a HEAD request, the step sends nothing.
    ///
    /// - Parameter trailers: The names and values of the trailers, in order. The default is an empty list.
    public static func lastChunk(trailers: KeyValuePairs<String, String> = [:]) -> Self {
        let lines = trailers.map { "\($0): \($1)\r\n" }.joined()
        return Self(kind: .content(Array("0\r\n\(lines)\r\n".utf8)))
    }

    /// Returns a step that sends the given bytes repeatedly, up to a total number of bytes.
    ///
    /// The server needs only constant memory for this step.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to repeat.
    ///   - count: The total number of bytes, or `nil` to send the bytes indefinitely.
    public static func send(repeating bytes: [UInt8], count: Int?) -> Self {
        bytes.isEmpty ? .send([]) : Self(kind: .repeating(bytes, start: 0, count: count.map { max($0, 0) }))
    }

    /// Returns a step that sends `count` bytes of a file, beginning at an offset.
    ///
    /// If the file contains fewer bytes, the server resets the connection.
    package static func sendFile(_ path: String, offset: Int = 0, count: Int) -> Self {
        Self(kind: .file(path: path, offset: offset, count: count))
    }

    /// Returns a step that sends bytes in small pieces at regular intervals.
    ///
    /// The server sends the first piece immediately.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to send.
    ///   - size: The number of bytes in each piece. The default is 1.
    ///   - interval: The time between pieces, on the server's clock.
    package static func drip(_ bytes: [UInt8], size: Int = 1, every interval: Duration) -> Self {
        Self(kind: .drip(bytes[...], size: max(size, 1), every: interval))
    }

    /// Returns a step that sends text in small pieces at regular intervals.
    ///
    /// The server sends the first piece immediately.
    ///
    /// - Parameters:
    ///   - text: The text to send.
    ///   - size: The number of bytes in each piece. The default is 1.
    ///   - interval: The time between pieces, on the server's clock.
    public static func drip(_ text: String, size: Int = 1, every interval: Duration) -> Self {
        .drip(Array(text.utf8), size: size, every: interval)
    }

    /// Returns a step that waits until a gate is open.
    public static func stall(until gate: Gate) -> Self { Self(kind: .gate(gate)) }

    /// A step that sends nothing and keeps the connection open until the client or the server closes it.
    package static var stallForever: Self { Self(kind: .forever) }

    /// Returns a step that waits for a duration on the server's clock.
    public static func pause(_ duration: Duration) -> Self { Self(kind: .pause(duration)) }

    /// A step that waits until the whole request body has arrived.
    public static var awaitBody: Self { Self(kind: .body(atLeast: nil)) }

    /// Returns a step that waits until at least `count` bytes of the request body, or the whole body, have arrived.
    ///
    /// - Parameter count: The number of bytes to wait for, including the bytes that have already arrived.
    public static func awaitBody(atLeast count: Int) -> Self { Self(kind: .body(atLeast: count)) }

    /// A step that sends the request body back as a complete chunked body.
    ///
    /// For a route that you add with `routeEarly`, the server sends the chunks while the request body arrives. In the
    /// response to a HEAD request, the step sends nothing.
    package static var echoInChunks: Self { Self(kind: .echo) }

    /// A step that stops reading from the client until a later step, such as ``readOn``, resumes reading.
    ///
    /// When the buffers of the connection are full, the client can send no more data.
    public static var stopReading: Self { Self(kind: .pace(.none)) }

    /// A step that resumes reading from the client at full speed.
    public static var readOn: Self { Self(kind: .pace(.full)) }

    /// Returns a step that limits reading to `size` bytes in each interval on the server's clock.
    ///
    /// The limit applies until a later step changes the reading speed.
    ///
    /// - Parameters:
    ///   - size: The maximum number of bytes that the server reads in each interval. A value below 1 is treated as 1.
    ///   - interval: The length of each interval.
    public static func readSlowly(size: Int, every interval: Duration) -> Self {
        Self(kind: .pace(.slow(size: max(size, 1), every: interval)))
    }

    /// Returns a step that calls a closure on the server's thread, for example to open a gate.
    ///
    /// The closure must not block, because the server cannot handle other connections during the call.
    package static func call(_ body: @escaping @Sendable () -> Void) -> Self { Self(kind: .call(body)) }

    /// A step that closes the connection (FIN).
    ///
    /// If the client then sends more data, the system responds with a reset.
    public static var close: Self { Self(kind: .end(.close)) }

    /// A step that closes the sending side of the connection (FIN) and continues to read from the client.
    package static var closeSending: Self { Self(kind: .end(.closeSending)) }

    /// A step that resets the connection (RST).
    public static var reset: Self { Self(kind: .end(.reset)) }
}

/// A way in which a ``LoopbackServer`` ends a response or a connection.
///
/// Future versions may add cases.
public enum LoopbackEnding: Hashable, Sendable, CaseIterable {
    /// The server closes the connection (FIN).
    case close
    /// The server closes the sending side of the connection (FIN) and continues to read from the client.
    case closeSending
    /// The server resets the connection (RST).
    case reset
    /// The server sends nothing more and leaves the connection open.
    case stall
}
