// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// One thing that a ``LoopbackServer`` does on a connection: steps, one after another, are the script of an answer.
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
        /// As `bytes`, but left out in the answer to HEAD.
        case content([UInt8])
        /// The same bytes again and again, `count` in all, first those from `start` on; without end if nil.
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

    /// How the server reads what the client sends.
    package enum Pace: Sendable {
        case full
        case none
        case slow(size: Int, every: Duration)
    }

    package let kind: Kind

    /// Sends a status line and header fields; nothing is added to them.
    public static func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> Self {
        .head(LoopbackHead(status, fields.map { LoopbackField($0, $1) }))
    }

    /// Sends a status line and header fields; nothing is added to them.
    public static func head(_ head: LoopbackHead) -> Self { Self(kind: .head(head)) }

    /// Sends these bytes as they are.
    public static func send(_ bytes: [UInt8]) -> Self { Self(kind: .bytes(bytes)) }

    /// Sends this text as it is.
    public static func send(_ text: String) -> Self { Self(kind: .bytes(Array(text.utf8))) }

    /// Sends one chunk of a body in chunks; nothing if it is empty, since an empty chunk is the last one.
    public static func chunk(_ bytes: [UInt8]) -> Self {
        bytes.isEmpty ? .send([]) : .send(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10])
    }

    /// Sends one chunk of a body in chunks.
    public static func chunk(_ text: String) -> Self { .chunk(Array(text.utf8)) }

    /// Sends the end of a body in chunks, with the trailers behind it.
    public static func lastChunk(trailers: KeyValuePairs<String, String> = [:]) -> Self {
        .send("0\r\n" + trailers.map { "\($0): \($1)\r\n" }.joined() + "\r\n")
    }

    /// Sends the same bytes again and again until `count` bytes were sent; without end if nil.
    ///
    /// Takes no memory for them, however many there are.
    public static func send(repeating bytes: [UInt8], count: Int?) -> Self {
        bytes.isEmpty ? .send([]) : Self(kind: .repeating(bytes, start: 0, count: count.map { max($0, 0) }))
    }

    /// Sends `count` bytes of the file, from `offset` on; the connection is reset if it has not so many.
    public static func sendFile(_ path: String, offset: Int = 0, count: Int) -> Self {
        Self(kind: .file(path: path, offset: offset, count: count))
    }

    /// Sends `size` bytes in each `interval` of the server's clock; the first at once.
    public static func drip(_ bytes: [UInt8], size: Int = 1, every interval: Duration) -> Self {
        Self(kind: .drip(bytes[...], size: max(size, 1), every: interval))
    }

    /// Sends `size` bytes of the text in each `interval` of the server's clock; the first at once.
    public static func drip(_ text: String, size: Int = 1, every interval: Duration) -> Self {
        .drip(Array(text.utf8), size: size, every: interval)
    }

    /// Does nothing until the gate is open.
    public static func stall(until gate: Gate) -> Self { Self(kind: .gate(gate)) }

    /// Does nothing any more; the connection stays open until the client or the server closes it.
    public static var stallForever: Self { Self(kind: .forever) }

    /// Does nothing for so long on the server's clock.
    public static func pause(_ duration: Duration) -> Self { Self(kind: .pause(duration)) }

    /// Goes on when the body of the request arrived whole.
    public static var awaitBody: Self { Self(kind: .body(atLeast: nil)) }

    /// Goes on when so many bytes of the body arrived, or all of it.
    public static func awaitBody(atLeast count: Int) -> Self { Self(kind: .body(atLeast: count)) }

    /// Sends the bytes of the request's body as chunks while they arrive, and the end of the chunks.
    public static var echoInChunks: Self { Self(kind: .echo) }

    /// Reads nothing more from the client until ``readOn``, so that its sending comes to a halt.
    public static var stopReading: Self { Self(kind: .pace(.none)) }

    /// Reads from the client as fast as it sends again.
    public static var readOn: Self { Self(kind: .pace(.full)) }

    /// From here on reads at most `size` bytes in each `interval` of the server's clock.
    public static func readSlowly(size: Int, every interval: Duration) -> Self {
        Self(kind: .pace(.slow(size: max(size, 1), every: interval)))
    }

    /// Calls this on the server's thread, which must not be blocked: to open a gate, or to write something down.
    public static func call(_ body: @escaping @Sendable () -> Void) -> Self { Self(kind: .call(body)) }

    /// Closes the connection (FIN); what the client sends after that is answered by the system with a reset.
    public static var close: Self { Self(kind: .end(.close)) }

    /// Closes the connection for sending (FIN), and still reads what the client sends.
    public static var closeSending: Self { Self(kind: .end(.closeSending)) }

    /// Breaks the connection off (RST), by `SO_LINGER` of 0.
    public static var reset: Self { Self(kind: .end(.reset)) }
}

/// How a ``LoopbackServer`` ends a connection, or leaves it hanging.
///
/// More cases may be added.
public enum LoopbackEnding: Hashable, Sendable, CaseIterable {
    /// The connection is closed (FIN).
    case close
    /// The connection is closed for sending (FIN), and what the client sends is still read.
    case closeSending
    /// The connection is broken off (RST).
    case reset
    /// Nothing more is sent, and the connection stays open.
    case stall
}
