// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

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
package struct ServerSentEventParser: Sendable {
    /// The most bytes of one event.
    private static let longest = 16 << 20

    private var kind = ""
    /// Its lines, each with a line feed behind it: lines of their own would take many times the memory.
    private var data: [UInt8] = []
    /// The number that the event will have which is being received.
    private var id = ""
    /// The number of the last event that was complete, with which the next request goes on.
    private(set) var lastID = ""
    /// How long the server wants to be left alone before it is asked again.
    package private(set) var pause: Duration?
    private var isFirstLine = true

    /// Whether the event that is being received is no longer than one may be.
    package var isWithinBounds: Bool { data.count <= Self.longest }

    package init() {}

    /// Takes a line; an event, if the line ends one.
    package mutating func take(_ line: String) -> ServerSentEvent? {
        // Bytes, for a colon and the letter after it may be one Character.
        var bytes = line.utf8[...]
        if isFirstLine {
            isFirstLine = false
            if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        }
        guard !bytes.isEmpty else { return dispatch() }
        let colon = bytes.firstIndex(of: 0x3A) ?? bytes.endIndex
        var value = bytes[colon...].dropFirst()
        if value.first == 0x20 { value = value.dropFirst() }
        take(String(Substring(bytes[..<colon])), value)
        return nil
    }

    private mutating func take(_ field: String, _ value: Substring.UTF8View) {
        switch field {
        case "event": kind = String(Substring(value))
        case "data":
            data += value
            data.append(0x0A)
        case "id": if !value.contains(0) { id = String(Substring(value)) }
        case "retry":
            let isNumber = !value.isEmpty && value.allSatisfy { (0x30...0x39).contains($0) }
            if isNumber, let number = Int64(Substring(value)) { pause = .milliseconds(number) }
        default: break
        }
    }

    private mutating func dispatch() -> ServerSentEvent? {
        // Only now: what comes with an event that is cut off is asked for again.
        lastID = id
        defer { forgetEvent() }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(
            kind: kind.isEmpty ? "message" : kind, data: String(decoding: data.dropLast(), as: UTF8.self), id: lastID)
    }

    private mutating func forgetEvent() {
        kind = ""
        data = []
    }

    /// The connection ended: what was not complete is dropped.
    mutating func reconnect() {
        forgetEvent()
        id = lastID
        isFirstLine = true
    }
}

/// Takes bytes as they come apart into lines.
struct LineSplitter: Sendable {
    private static let longest = 1 << 20

    private var bytes: [UInt8] = []
    /// Where the next line begins.
    private var start = 0
    /// Up to where there is no end of a line.
    private var searched = 0
    private var endedByReturn = false

    /// Whether what is left is no longer than a line may be.
    var isWithinBounds: Bool { bytes.count - start <= Self.longest }

    mutating func add(_ data: Data) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: data)
    }

    /// The next line, if its end came.
    mutating func next() -> String? {
        // The line feed after a carriage return belongs to it, even if it came later.
        if endedByReturn, start < bytes.count {
            endedByReturn = false
            if bytes[start] == 10 {
                start += 1
                searched = max(searched, start)
            }
        }
        while searched < bytes.count {
            let byte = bytes[searched]
            searched += 1
            guard byte == 10 || byte == 13 else { continue }
            let line = String(decoding: bytes[start..<searched - 1], as: UTF8.self)
            start = searched
            endedByReturn = byte == 13
            return line
        }
        return nil
    }

    /// What is left at the end, if it is not nothing.
    mutating func rest() -> String? {
        defer {
            start = bytes.count
            searched = bytes.count
        }
        return start < bytes.count ? String(decoding: bytes[start...], as: UTF8.self) : nil
    }
}
