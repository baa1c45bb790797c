// Part of OperationKit, released under the MIT licence.
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
            .ends, "Foundation takes trailers for a second head, and traps.",
            "trailers after a chunked body are delivered separately from the headers",
            "an empty chunked body with trailers is accepted",
            "a response that arrives byte by byte is delivered completely",
            "a connection is reused after every kind of body",
            "cancel races with a chunked response and its trailers, and each task ends once"),
        group(
            .ends, "Foundation traps when the connection ends before the head does.",
            "a response truncated after the status line fails the request",
            "headers truncated before the empty line fail the request"),
        group(
            .ends, "Foundation counts lengths as floating-point numbers, and traps when it converts this one back.",
            "the largest possible Content-Length fails without a crash"),
        group(
            .ends, "Foundation resolves the address before it asks anybody, and traps when it has no host.",
            "the location \"//[::1]/\" is delivered unchanged",
            "the location \"//a%20b/\" is delivered unchanged",
            "the location \"//%00/\" is delivered unchanged",
            "the location \"//a%2Fb/x\" is delivered unchanged",
            "the location \"//[::1%25eth0]/\" is delivered unchanged"),
        group(
            .hangs, "libcurl reads on without an end, and Foundation tells nothing meanwhile.",
            "endless trailers fail the request"),
        group(
            .hangs, "A stream is written to a file before anything is sent, so no request goes out.",
            "canceling a task whose body producer has no bytes ends it"),
        group(
            .unreliable, "Foundation cannot slow a server down. What comes is kept in memory, up to a bound.",
            "a suspended task delivers nothing, and the server stops sending"),
        group(
            .wrong, "Foundation wants a blank behind each colon, and fails.",
            "a header needs no space after the colon",
            "a header value may be empty"),
        group(
            .wrong, "Foundation wants words behind each status, and fails.",
            "a status line needs no reason phrase"),
        group(
            .wrong, "Foundation wants lines to end in CRLF, and fails.",
            "header lines may end in a bare line feed"),
        group(
            .wrong, "Foundation wants heads to be UTF-8, and fails.",
            "a header value that is not UTF-8 is read as Latin-1"),
        group(
            .wrong, "Foundation does not tell the words behind a status.",
            "the reason phrase of a status line is delivered"),
        group(
            .wrong, "Foundation does not tell the version, nor whether a connection was used again.",
            "an HTTP/1.0 response is accepted",
            "metrics report bytes, times, version and connection reuse"),
        group(
            .wrong,
            "Foundation keeps fields in a dictionary: their order is lost, and values of one name are joined or lost.",
            "repeated headers stay separate and in order",
            "Set-Cookie headers with unusual characters are delivered",
            "headers are sent in order, including repeated headers"),
        group(
            .wrong, "Foundation decompresses whatever it knows, asked or not.",
            "a request with its own Accept-Encoding receives the body undecoded",
            "a request with decodesContent set to false receives the body undecoded"),
        group(
            .wrong, "libcurl takes such a line for the end of the head, and Foundation shows no lines.",
            "a header line that begins with a carriage return is rejected"),
        group(
            .wrong, "libcurl takes a packed body that is cut short for a whole one.",
            "a truncated gzip body with a correct Content-Length is rejected"),
        group(
            .wrong, "How much of a packed body was received is not told, only how long it is to be.",
            "a decompression bomb fails with expansionTooLarge before it fills memory"),
        group(
            .wrong, "The size of a head is estimated: its first line is not told.",
            "maximumHeaderSize limits the size of the headers"),
        group(
            .wrong, "Foundation gives no way to wait for the server.",
            "a body with expectsContinue waits for 100 Continue"),
        group(
            .unreliable, "Foundation gives no way to wait for the server: after a second the body is sent.",
            "the body is not sent if the server refuses instead of sending 100 Continue"),
        group(
            .wrong, "Foundation does not tell when the connection is ready.",
            "a connection that the server never accepts exceeds the connect limit"),
        group(
            .wrong, "libcurl takes dots out of paths unless it is told not to.",
            "the target /a/./b/../c is sent unchanged"),
        group(
            .wrong, "Foundation adds Accept-Language.",
            "a session adds no unexpected headers"),
        group(
            .wrong, "Foundation takes no address of IPv6 for a host.",
            "an IPv6 address is sent in the Host header"),
        group(
            .unreliable,
            "libcurl does not look at what came on a connection that was kept, and takes it for the next answer.",
            "bytes that arrive on an idle connection are not delivered as a response"),
        group(
            .unreliable,
            "A connection is given back a little after its request is told to be over; another may be made meanwhile.",
            "a session opens no more connections than its limit allows"),
        group(
            .unreliable, "Foundation cannot hold a response: it may be complete before the task is cancelled.",
            "canceling a task that its receiver holds ends it"),
        group(
            .unreliable, "Foundation hands over without a bound what comes, so a cancellation is far back in its line.",
            "after cancel returns, a task delivers only its end"),
    ].flatMap { $0 }
}
