// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A step that a ``LoopbackServer`` performs on a connection, as part of the script of a response.
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer(), gate = Gate()
/// server.route("GET", "/slow") { _ in
///     LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("01234"), .stall(until: gate), .reset)
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

    /// Sends a status line and headers without adding any headers.
    public static func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> Self {
        .head(LoopbackHead(status, fields.map { LoopbackField($0, $1) }))
    }

    /// Sends a status line and headers without adding any headers.
    public static func head(_ head: LoopbackHead) -> Self { Self(kind: .head(head)) }

    /// Sends bytes unchanged.
    public static func send(_ bytes: [UInt8]) -> Self { Self(kind: .bytes(bytes)) }

    /// Sends text unchanged.
    public static func send(_ text: String) -> Self { Self(kind: .bytes(Array(text.utf8))) }

    /// Sends a chunk of a chunked body, or nothing if it is empty, because an empty chunk ends the body.
    public static func chunk(_ bytes: [UInt8]) -> Self {
        bytes.isEmpty ? .send([]) : .send(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10])
    }

    /// Sends text as a chunk of a chunked body.
    public static func chunk(_ text: String) -> Self { .chunk(Array(text.utf8)) }

    /// Sends the end of a chunked body, with trailers.
    public static func lastChunk(trailers: KeyValuePairs<String, String> = [:]) -> Self {
        .send("0\r\n" + trailers.map { "\($0): \($1)\r\n" }.joined() + "\r\n")
    }

    /// Sends the same bytes repeatedly, up to a number of bytes, in constant memory.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to repeat.
    ///   - count: The total number of bytes, or `nil` to send them without an end.
    public static func send(repeating bytes: [UInt8], count: Int?) -> Self {
        bytes.isEmpty ? .send([]) : Self(kind: .repeating(bytes, start: 0, count: count.map { max($0, 0) }))
    }

    /// Sends `count` bytes of a file from an offset, and resets the connection if the file has fewer bytes.
    public static func sendFile(_ path: String, offset: Int = 0, count: Int) -> Self {
        Self(kind: .file(path: path, offset: offset, count: count))
    }

    /// Sends `size` bytes in each interval of the server's clock, the first ones immediately.
    public static func drip(_ bytes: [UInt8], size: Int = 1, every interval: Duration) -> Self {
        Self(kind: .drip(bytes[...], size: max(size, 1), every: interval))
    }

    /// Sends `size` bytes of text in each interval of the server's clock, the first ones immediately.
    public static func drip(_ text: String, size: Int = 1, every interval: Duration) -> Self {
        .drip(Array(text.utf8), size: size, every: interval)
    }

    /// Waits until a gate is open.
    public static func stall(until gate: Gate) -> Self { Self(kind: .gate(gate)) }

    /// Does nothing more, and leaves the connection open until the client or the server closes it.
    public static var stallForever: Self { Self(kind: .forever) }

    /// Waits for a duration on the server's clock.
    public static func pause(_ duration: Duration) -> Self { Self(kind: .pause(duration)) }

    /// Waits until the body of the request is complete.
    public static var awaitBody: Self { Self(kind: .body(atLeast: nil)) }

    /// Waits until a number of body bytes have arrived, or until the body is complete.
    public static func awaitBody(atLeast count: Int) -> Self { Self(kind: .body(atLeast: count)) }

    /// Sends the body of the request in chunks while it arrives, and then the end of the chunks.
    public static var echoInChunks: Self { Self(kind: .echo) }

    /// Stops reading from the client until ``readOn``, so that the client cannot continue to send.
    public static var stopReading: Self { Self(kind: .pace(.none)) }

    /// Reads from the client at full speed again.
    public static var readOn: Self { Self(kind: .pace(.full)) }

    /// Reads at most `size` bytes in each interval of the server's clock from now on.
    public static func readSlowly(size: Int, every interval: Duration) -> Self {
        Self(kind: .pace(.slow(size: max(size, 1), every: interval)))
    }

    /// Calls a closure on the server's thread, for example to open a gate or record an event.
    ///
    /// The closure must not block.
    public static func call(_ body: @escaping @Sendable () -> Void) -> Self { Self(kind: .call(body)) }

    /// Closes the connection (FIN), after which the system responds to data from the client with a reset.
    public static var close: Self { Self(kind: .end(.close)) }

    /// Closes the sending side of the connection (FIN), and continues to read from the client.
    public static var closeSending: Self { Self(kind: .end(.closeSending)) }

    /// Resets the connection (RST), by setting `SO_LINGER` to 0.
    public static var reset: Self { Self(kind: .end(.reset)) }
}

/// A way in which a ``LoopbackServer`` ends a connection or leaves it open.
///
/// More cases may be added.
public enum LoopbackEnding: Hashable, Sendable, CaseIterable {
    /// The server closes the connection (FIN).
    case close
    /// The server closes its sending side of the connection (FIN), and continues to read from the client.
    case closeSending
    /// The server resets the connection (RST).
    case reset
    /// The server sends nothing more, and leaves the connection open.
    case stall
}
