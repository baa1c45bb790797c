// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An event that a server sends in a stream of server-sent events.
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event, which is `message` unless the server specifies another type.
    public let kind: String
    /// The data of the event, which can consist of several lines.
    public let data: String
    /// The last event ID that the server has sent, or an empty string if the server has not sent an ID.
    public let id: String
}

/// A parser that creates events from lines, as defined in the HTML standard.
package struct ServerSentEventParser: Sendable {
    /// The maximum number of bytes in one event.
    private static let longest = 16 << 20

    private var kind = ""
    /// The lines of the event, each followed by a line feed, because separate lines would need many times the memory.
    private var data: [UInt8] = []
    /// The ID of the event that is being received.
    private var id: String?
    /// The ID of the last complete event, which the next request sends, or nil if the server has sent no ID.
    private(set) var lastID: String?
    /// The time that the server asks the client to wait before it reconnects.
    package private(set) var pause: Duration?
    private var isFirstLine = true

    /// Whether the event that is being received is within the maximum size.
    package var isWithinBounds: Bool { data.count <= Self.longest }

    package init() {}

    /// Processes a line, and returns an event if the line ends one.
    package mutating func take(_ line: String) -> ServerSentEvent? {
        // Use bytes, because a colon and a combining character after it are one `Character`.
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
            // A number that does not fit an `Int64` asks for the longest pause.
            if isNumber { pause = .milliseconds(Int64(Substring(value)) ?? .max) }
        default: break
        }
    }

    private mutating func dispatch() -> ServerSentEvent? {
        // Change the ID only now, because an incomplete event is requested again.
        lastID = id
        defer { forgetEvent() }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(
            kind: kind.isEmpty ? "message" : kind, data: String(decoding: data.dropLast(), as: UTF8.self),
            id: lastID ?? "")
    }

    private mutating func forgetEvent() {
        kind = ""
        data = []
    }

    /// Discards the incomplete event after the connection has ended.
    mutating func reconnect() {
        forgetEvent()
        id = lastID
        isFirstLine = true
    }
}

/// A parser that splits bytes into lines as they arrive.
struct LineSplitter: Sendable {
    private static let longest = 1 << 20

    private var bytes: [UInt8] = []
    /// The position at which the next line begins.
    private var start = 0
    /// The position up to which no line ending was found.
    private var searched = 0
    private var endedByReturn = false

    /// Whether the incomplete line is within the maximum length.
    var isWithinBounds: Bool { bytes.count - start <= Self.longest }

    mutating func add(_ data: Data) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: data)
    }

    /// Returns the next line if its ending has arrived.
    mutating func next() -> String? {
        // The line feed after a carriage return belongs to the same line ending, even if it arrives later.
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

    /// Returns the remaining text at the end, or `nil` if there is none.
    mutating func rest() -> String? {
        defer {
            start = bytes.count
            searched = bytes.count
        }
        return start < bytes.count ? String(decoding: bytes[start...], as: UTF8.self) : nil
    }
}
