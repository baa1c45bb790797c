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

    private init(_ name: String, _ kind: Kind, _ reason: String) {
        self.name = name
        self.kind = kind
        self.reason = reason
    }

    static func isHang(_ name: String) -> Bool { byName[name]?.kind == .hangs }

    static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    static let all: [URLSessionDifference] = [
        .init("trailers after chunks are told apart and do no harm", .ends, "Foundation traps when trailers come: it takes them for a second head."),
        .init("trailers after an empty body in chunks do no harm", .ends, "Foundation traps when trailers come: it takes them for a second head."),
        .init("a response that comes byte by byte is the same", .ends, "Foundation traps when trailers come: it takes them for a second head."),
        .init("a connection is used again after each kind of body", .ends, "Foundation traps when trailers come: it takes them for a second head."),
        .init("cancel races with everything, and each task ends once", .ends, "Foundation traps when trailers come: it takes them for a second head."),
        .init("a head that is cut behind its status line is an error", .ends, "Foundation traps when the connection ends before the head does."),
        .init("a head that is cut before its empty line is an error", .ends, "Foundation traps when the connection ends before the head does."),
        .init("the largest length is an error and no trap", .ends, "Foundation counts lengths as floating-point numbers and traps when it converts this one back."),
        .init("the location \"//[::1]/\" is a field and no trap", .ends, "Foundation resolves the address before it asks anybody, and traps when the host is none."),
        .init("the location \"//a%20b/\" is a field and no trap", .ends, "Foundation resolves the address before it asks anybody, and traps when the host is none."),
        .init("the location \"//%00/\" is a field and no trap", .ends, "Foundation resolves the address before it asks anybody, and traps when the host is none."),
        .init("the location \"//a%2Fb/x\" is a field and no trap", .ends, "Foundation resolves the address before it asks anybody, and traps when the host is none."),
        .init("the location \"//[::1%25eth0]/\" is a field and no trap", .ends, "Foundation resolves the address before it asks anybody, and traps when the host is none."),
        .init("a colon needs no blank after it", .wrong, "Foundation wants a blank behind each colon, and fails with -1."),
        .init("a value may be empty", .wrong, "Foundation wants a blank behind each colon, and fails with -1."),
        .init("a status line needs no words", .wrong, "Foundation wants words behind each status, and fails with -1."),
        .init("lines may end in a bare line feed", .wrong, "Foundation wants CRLF, and fails with -1."),
        .init("a value with bytes that are no UTF-8 is read", .wrong, "Foundation wants UTF-8, and fails with -1."),
        .init("the words of a status line are kept", .wrong, "Foundation does not tell the words."),
        .init("HTTP/1.0 is understood", .wrong, "Foundation does not tell the version."),
        .init("metrics come once, before the end, and say what was", .wrong, "Foundation does not tell the version."),
        .init("fields of one name stay apart and in order", .wrong, "Foundation keeps fields in a dictionary: their order is lost, and values of one name are joined or lost."),
        .init("cookies with odd characters are fields like others", .wrong, "Foundation keeps fields in a dictionary: their order is lost, and values of one name are joined or lost."),
        .init("a request with Accept-Encoding of its own gets the body as it was sent", .wrong, "Foundation decompresses whatever it knows, asked or not."),
        .init("without decoding nothing compressed is asked for, and what comes stays as it is", .wrong, "Foundation decompresses whatever it knows, asked or not."),
        .init("a line of a head that begins with a carriage return is an error", .wrong, "libcurl takes such a line for the end of the head, and Foundation shows no lines."),
        .init("a gzip body that is cut, though its length is right, is an error", .wrong, "libcurl takes a packed body that is cut short for a whole one."),
        .init("trailers without end are an error", .hangs, "libcurl reads on without an end, and Foundation does not stop it when the task is cancelled."),
        .init("a bomb is an error before it takes memory", .wrong, "Foundation tells the unpacked size only when it has unpacked it."),
        .init("a body waits for 100 Continue if it is told to", .wrong, "Foundation gives no way to wait for the server."),
        .init("a connection that is never taken exceeds a limit", .wrong, "Foundation does not tell when the connection is ready."),
    ]
}
