// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A case of the conformance suite that `URLSession` does not pass on Linux.
struct URLSessionDifference: Sendable {
    enum Kind: String, Sendable {
        case ends = "ends the process"
        case hangs = "hangs"
        case wrong = "is different"
        /// The case passes only sometimes.
        case unreliable = "is unreliable"
    }

    /// The name of the case.
    let name: String
    let kind: Kind
    let reason: String

    private static func group(_ kind: Kind, _ reason: String, _ names: String...) -> [URLSessionDifference] {
        names.map { URLSessionDifference(name: $0, kind: kind, reason: reason) }
    }

    static func isHang(_ name: String) -> Bool { byName[name]?.kind == .hangs }

    static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    static let all: [URLSessionDifference] = [
        group(
            .ends, "Foundation interprets trailers as the headers of a second response, and traps.",
            "trailers after a chunked body are delivered separately from the headers",
            "an empty chunked body with trailers is accepted",
            "a response that arrives byte by byte is delivered completely",
            "a connection is reused after every kind of body",
            "cancel races with a chunked response and its trailers, and each task ends once"),
        group(
            .ends, "Foundation traps if the connection ends before the headers are complete.",
            "a response truncated after the status line fails the request",
            "headers truncated before the empty line fail the request"),
        group(
            .ends,
            "Foundation stores lengths as floating-point numbers, and traps when it converts a very large one to Int.",
            "the largest possible Content-Length fails without a crash"),
        group(
            .ends,
            "Foundation resolves the location before it calls the delegate, and traps if the resolved URL has no host.",
            "the location \"//[::1]/\" is delivered unchanged",
            "the location \"//a%20b/\" is delivered unchanged",
            "the location \"//%00/\" is delivered unchanged",
            "the location \"//a%2Fb/x\" is delivered unchanged",
            "the location \"//[::1%25eth0]/\" is delivered unchanged"),
        group(
            .hangs, "libcurl reads trailers without a limit, and Foundation reports nothing while libcurl reads them.",
            "endless trailers fail the request"),
        group(
            .unreliable,
            "libcurl reads a chunk extension without a limit, and Foundation may report nothing while libcurl reads it.",
            "an endless chunk extension fails the request"),
        group(
            .hangs,
            "OperationKit writes the stream to a file before it sends the request, so the server receives no request.",
            "canceling a task ends it, even if its body producer has no bytes"),
        group(
            .unreliable,
            "Foundation cannot make the server pause. OperationKit keeps the received bytes in memory, up to 64 MiB.",
            "a suspended task delivers nothing, and the server stops sending"),
        group(
            .wrong, "Foundation fails if a header has no space after the colon.",
            "a header needs no space after the colon",
            "a header value may be empty"),
        group(
            .wrong, "Foundation fails if a status line has no reason phrase.",
            "a status line needs no reason phrase"),
        group(
            .wrong, "Foundation fails if a header line does not end in CRLF.",
            "header lines may end in a bare line feed"),
        group(
            .wrong, "Foundation fails if a header is not valid UTF-8.",
            "a header value that is not UTF-8 is read as Latin-1"),
        group(
            .wrong, "Foundation does not provide the reason phrase.",
            "the reason phrase of a status line is delivered"),
        group(
            .wrong, "Foundation reports neither the HTTP version nor whether a connection was reused.",
            "an HTTP/1.0 response is accepted",
            "metrics report bytes, times, version and connection reuse"),
        group(
            .wrong,
            "Foundation stores headers in a dictionary, which loses their order, and joins or loses repeated headers.",
            "repeated headers stay separate and in order",
            "Set-Cookie headers with unusual characters are delivered",
            "headers are sent in order, including repeated headers"),
        group(
            .wrong, "Foundation decompresses every body whose encoding it supports, regardless of the request.",
            "a request with its own Accept-Encoding receives the body undecoded",
            "a request with decodesContent set to false receives the body undecoded"),
        group(
            .wrong,
            "libcurl interprets a carriage return at the start of a line as the end of the headers.",
            "a header line that begins with a carriage return is rejected"),
        group(
            .wrong, "libcurl accepts a truncated compressed body as complete.",
            "a truncated gzip body with a correct Content-Length is rejected"),
        group(
            .wrong,
            "For a compressed body, Foundation reports the expected length, but not the number of received bytes.",
            "a decompression bomb fails with expansionTooLarge before it fills memory"),
        group(
            .wrong,
            "Foundation does not provide the status line, so OperationKit can only estimate the size of the headers.",
            "maximumHeaderSize limits the size of the headers"),
        group(
            .wrong, "Foundation does not support waiting for 100 Continue.",
            "a body with expectsContinue waits for 100 Continue"),
        group(
            .unreliable, "Foundation cannot wait for 100 Continue. After one second, it sends the body.",
            "the body is not sent if the server refuses instead of sending 100 Continue"),
        group(
            .wrong, "Foundation does not report when a connection is ready.",
            "a connection that the server never accepts exceeds the connect limit"),
        group(
            .wrong, "By default, libcurl removes dot segments from paths.",
            "the target /a/./b/../c is sent unchanged"),
        group(
            .wrong, "Foundation adds the Accept-Language header.",
            "a session adds no unexpected headers"),
        group(
            .wrong, "Foundation does not accept an IPv6 address as a host.",
            "an IPv6 address is sent in the Host header"),
        group(
            .unreliable,
            "libcurl does not check idle connections for received bytes, and interprets them as the next response.",
            "bytes that arrive on an idle connection are not delivered as a response"),
        group(
            .unreliable,
            "Foundation may open a connection before it releases the connection of a request that has ended.",
            "a session opens no more connections than its limit allows"),
        group(
            .unreliable,
            "Foundation cannot pause a response, so the response may be complete before the task is canceled.",
            "canceling a task ends it, even while the receiver holds the task"),
        group(
            .unreliable,
            "Foundation enqueues received bytes without a limit, and processes a cancellation only after these bytes.",
            "after cancel returns, a task delivers only its end"),
        group(
            .unreliable, "Foundation may trap if a task is canceled while the headers of its response arrive.",
            "headers that drip indefinitely exceed the total limit"),
    ].flatMap { $0 }
}
