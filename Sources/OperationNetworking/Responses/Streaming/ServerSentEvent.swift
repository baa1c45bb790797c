// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One event of a server that sends them.
public struct ServerSentEvent: Sendable, Hashable {
    /// What kind it is: `message` unless the server says another.
    public let kind: String
    /// What it says, in one or more lines.
    public let data: String
    /// Where in the server's sequence it stands; empty if the server does not say.
    public let id: String
}

/// Makes events of lines, as the HTML standard says.
struct ServerSentEventParser: Sendable {
    private var kind = ""
    private var data: [Substring] = []
    /// The number of the last event, with which the next request goes on.
    private(set) var lastID = ""
    /// How long the server wants to be left alone before it is asked again.
    private(set) var pause: Duration?
    private var isFirstLine = true

    /// Takes a line; an event, if the line ends one.
    mutating func take(_ line: String) -> ServerSentEvent? {
        var line = line
        if isFirstLine {
            isFirstLine = false
            if line.unicodeScalars.first == "\u{FEFF}" { line.unicodeScalars.removeFirst() }
        }
        guard !line.isEmpty else { return dispatch() }
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == " " { value = value.dropFirst() }
        switch line[..<colon] {
        case "event": kind = String(value)
        case "data": data.append(value)
        case "id": if !value.utf8.contains(0) { lastID = String(value) }
        case "retry":
            let isNumber = !value.isEmpty && value.utf8.allSatisfy { (0x30...0x39).contains($0) }
            if isNumber, let number = Int64(value) { pause = .milliseconds(number) }
        default: break
        }
        return nil
    }

    private mutating func dispatch() -> ServerSentEvent? {
        defer {
            kind = ""
            data = []
        }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(
            kind: kind.isEmpty ? "message" : kind, data: data.joined(separator: "\n"), id: lastID)
    }

    /// The connection ended: what was not complete is dropped.
    mutating func reconnect() {
        kind = ""
        data = []
        isFirstLine = true
    }
}
