// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A case of the conformance suite that `URLSession` does not pass on Linux.
struct URLSessionDifference: Sendable {
    enum Kind: String, Sendable {
        case ends = "ends the process"
        case hangs = "hangs"
        case wrong = "is different"
        /// Sometimes it is as it should be.
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
            "trailers after chunks are told apart and do no harm",
            "trailers after an empty body in chunks do no harm",
            "a response that comes byte by byte is the same",
            "a connection is used again after each kind of body",
            "cancel races with everything, and each task ends once"),
        group(
            .ends, "Foundation traps when the connection ends before the head does.",
            "a head that is cut behind its status line is an error",
            "a head that is cut before its empty line is an error"),
        group(
            .ends, "Foundation counts lengths as floating-point numbers, and traps when it converts this one back.",
            "the largest length is an error and no trap"),
        group(
            .ends, "Foundation resolves the address before it asks anybody, and traps when it has no host.",
            "the location \"//[::1]/\" is a field and no trap",
            "the location \"//a%20b/\" is a field and no trap",
            "the location \"//%00/\" is a field and no trap",
            "the location \"//a%2Fb/x\" is a field and no trap",
            "the location \"//[::1%25eth0]/\" is a field and no trap"),
        group(
            .hangs, "libcurl reads on without an end, and Foundation tells nothing meanwhile.",
            "trailers without end are an error"),
        group(
            .hangs, "A stream is written to a file before anything is sent, so no request goes out.",
            "a task is cancelled while its producer has nothing"),
        group(
            .unreliable, "Foundation cannot slow a server down. What comes is kept in memory, up to a bound.",
            "while a task is suspended nothing comes, and the server comes to a halt"),
        group(
            .wrong, "Foundation wants a blank behind each colon, and fails.",
            "a colon needs no blank after it",
            "a value may be empty"),
        group(
            .wrong, "Foundation wants words behind each status, and fails.",
            "a status line needs no words"),
        group(
            .wrong, "Foundation wants lines to end in CRLF, and fails.",
            "lines may end in a bare line feed"),
        group(
            .wrong, "Foundation wants heads to be UTF-8, and fails.",
            "a value with bytes that are no UTF-8 is read"),
        group(
            .wrong, "Foundation does not tell the words behind a status.",
            "the words of a status line are kept"),
        group(
            .wrong, "Foundation does not tell the version, nor whether a connection was used again.",
            "HTTP/1.0 is understood",
            "metrics come once, before the end, and say what was"),
        group(
            .wrong,
            "Foundation keeps fields in a dictionary: their order is lost, and values of one name are joined or lost.",
            "fields of one name stay apart and in order",
            "cookies with odd characters are fields like others",
            "header fields are sent in their order, with those that occur twice"),
        group(
            .wrong, "Foundation decompresses whatever it knows, asked or not.",
            "a request with Accept-Encoding of its own gets the body as it was sent",
            "without decoding nothing compressed is asked for, and what comes stays as it is"),
        group(
            .wrong, "libcurl takes such a line for the end of the head, and Foundation shows no lines.",
            "a line of a head that begins with a carriage return is an error"),
        group(
            .wrong, "libcurl takes a packed body that is cut short for a whole one.",
            "a gzip body that is cut, though its length is right, is an error"),
        group(
            .wrong, "How much of a packed body was received is not told, only how long it is to be.",
            "a bomb is an error before it takes memory"),
        group(
            .wrong, "The size of a head is estimated: its first line is not told.",
            "the limit of the head is the user's"),
        group(
            .wrong, "Foundation gives no way to wait for the server.",
            "a body waits for 100 Continue if it is told to"),
        group(
            .unreliable, "Foundation gives no way to wait for the server: after a second the body is sent.",
            "a refusal in the place of 100 Continue keeps the body back"),
        group(
            .wrong, "Foundation does not tell when the connection is ready.",
            "a connection that is never taken exceeds a limit"),
        group(
            .wrong, "libcurl takes dots out of paths unless it is told not to.",
            "the target /a/./b/../c is sent as it is"),
        group(
            .wrong, "Foundation adds Accept-Language.",
            "nothing is sent that nobody asked for"),
        group(
            .wrong, "Foundation takes no address of IPv6 for a host.",
            "an address of IPv6 is a host"),
        group(
            .unreliable,
            "libcurl does not look at what came on a connection that was kept, and takes it for the next answer.",
            "what comes on an idle connection is nobody's answer"),
        group(
            .unreliable,
            "A connection is given back a little after its request is told to be over; another may be made meanwhile.",
            "not more connections are made than are allowed"),
        group(
            .unreliable, "Foundation cannot hold a response: it may be complete before the task is cancelled.",
            "a task is cancelled while its receiver holds it"),
        group(
            .unreliable, "Foundation hands over without a bound what comes, so a cancellation is far back in its line.",
            "after cancel returned, nothing comes but the end"),
    ].flatMap { $0 }
}
