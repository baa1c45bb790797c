// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A parser for HTTP/1.1 requests, which processes data as it arrives and records violations of the protocol.
///
/// The parser records every violation, but continues where another server might continue, so that a test sees the
/// intended request.
struct RequestParser {
    enum Event {
        case head(RequestHead)
        case body(ArraySlice<UInt8>)
        case end(trailers: [LoopbackField])
        case violation(LoopbackViolation.Code, String)
        /// No more requests can be parsed on this connection.
        case broken
    }

    private enum State {
        case head
        case body(left: Int)
        case chunkSize
        case chunk(left: Int)
        case chunkEnd
        case trailers([LoopbackField])
        case end([LoopbackField])
        /// A request was parsed, and the next one is parsed after its response.
        case resting
        case broken
    }

    private static let longestHead = 1 << 20

    private var state = State.head
    private var buffer: [UInt8] = []
    private var position = 0
    /// The position up to which the buffer was searched for the end of the headers.
    private var searched = 0
    private var notices: ArraySlice<(LoopbackViolation.Code, String)> = []

    /// The number of bytes that wait to be parsed.
    var waitingCount: Int { buffer.count - position }

    /// The bytes that wait to be parsed.
    var waiting: ArraySlice<UInt8> { buffer[position...] }

    /// Whether the parser is between two requests, and no bytes of the next request have arrived.
    var isBetweenRequests: Bool {
        switch state {
        case .head, .resting: waitingCount == 0
        default: false
        }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if position == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            searched = 0
            position = 0
        } else if position > 1 << 16 {
            buffer.removeFirst(position)
            searched -= min(searched, position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Returns the next event, or nil if more data is needed or a response must be sent first.
    mutating func next() -> Event? {
        while true {
            if let (code, detail) = notices.popFirst() { return .violation(code, detail) }
            switch state {
            case .head:
                guard let event = readHead() else { return nil }
                return event
            case .body(left: 0): state = .end([])
            case .body(let left):
                guard let bytes = take(atMost: left) else { return nil }
                state = .body(left: left - bytes.count)
                return .body(bytes)
            case .chunkSize:
                guard let line = takeLine() else { return overlong() }
                readChunkSize(line)
            case .chunk(left: 0): state = .chunkEnd
            case .chunk(let left):
                guard let bytes = take(atMost: left) else { return nil }
                state = .chunk(left: left - bytes.count)
                return .body(bytes)
            case .chunkEnd:
                guard waitingCount >= 2 else { return nil }
                if Array(buffer[position..<(position + 2)]) == [13, 10] {
                    position += 2
                    state = .chunkSize
                } else {
                    breakOff(.chunk, "a chunk does not have its stated size")
                }
            case .trailers(let fields):
                guard let line = takeLine() else { return overlong() }
                if line.isEmpty {
                    state = .end(fields)
                } else {
                    let field = readField(line)
                    state = .trailers(fields + (field.map { [$0] } ?? []))
                }
            case .end(let trailers):
                state = .resting
                return .end(trailers: trailers)
            case .resting: return nil
            case .broken:
                position = buffer.count
                return .broken
            }
        }
    }

    /// Continues with the next request, after the response to the last one.
    mutating func beginNext() {
        if case .resting = state { state = .head }
        searched = position
    }

    private mutating func readHead() -> Event? {
        guard let end = endOfHead() else { return overlong() }
        let bytes = Array(buffer[position..<end])
        position = end
        searched = end
        guard let head = parse(head: bytes) else {
            state = .broken
            return notices.popFirst().map { .violation($0, $1) } ?? .broken
        }
        switch head.length {
        case .none: state = .body(left: 0)
        case .bytes(let count): state = .body(left: count)
        case .chunks: state = .chunkSize
        }
        return .head(head)
    }

    /// Returns the position after the empty line.
    private mutating func endOfHead() -> Int? {
        while let lineFeed = firstLineFeed(from: searched) {
            searched = lineFeed + 1
            let line = buffer[position..<lineFeed]
            let isEmpty =
                line.isEmpty || line.last == 10 || (line.last == 13 && (line.count == 1 || line.dropLast().last == 10))
            if isEmpty { return searched }
        }
        searched = buffer.count
        return nil
    }

    private func firstLineFeed(from start: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, start < bytes.count,
                let found = memchr(base + start, 10, bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    private mutating func take(atMost count: Int) -> ArraySlice<UInt8>? {
        let size = min(count, waitingCount)
        guard size > 0 else { return nil }
        defer { position += size }
        // Return a copy, because a slice would make the next append copy the whole buffer.
        return Array(buffer[position..<(position + size)])[...]
    }

    /// Returns the next line without its line end.
    private mutating func takeLine() -> ArraySlice<UInt8>? {
        guard let lineFeed = firstLineFeed(from: position) else { return nil }
        var line = Array(buffer[position..<lineFeed])[...]
        position = lineFeed + 1
        if line.last == 13 {
            line = line.dropLast()
        } else {
            notices.append((.lineEnd, Self.quoted(line)))
        }
        return line
    }

    private mutating func readChunkSize(_ line: ArraySlice<UInt8>) {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        let text = String(decoding: digits, as: UTF8.self)
        let isHexadecimal = !digits.isEmpty && text.allSatisfy { $0.isHexDigit && $0.isASCII }
        guard isHexadecimal, let size = Int(text, radix: 16) else {
            return breakOff(.chunk, "the size of a chunk is \(Self.quoted(line))")
        }
        state = size == 0 ? .trailers([]) : .chunk(left: size)
    }

    private mutating func overlong() -> Event? {
        guard waitingCount > Self.longestHead else { return nil }
        breakOff(.tooLong, "\(waitingCount) bytes without an end")
        return next()
    }

    private mutating func breakOff(_ code: LoopbackViolation.Code, _ detail: String) {
        notices.append((code, detail))
        state = .broken
    }
}

/// The request line and headers of a request, and the resulting length of the body.
struct RequestHead {
    enum Length {
        case none
        case bytes(Int)
        case chunks
    }

    var method: String
    var target: String
    var version: String
    var fields: [LoopbackField]
    var bytes: [UInt8]
    var length: Length

    /// Whether the client will not use the connection again.
    var closes: Bool {
        let connectionTokens = fields.values("Connection").joined(separator: ",").lowercased()
        return connectionTokens.contains("close") || (version == "HTTP/1.0" && !connectionTokens.contains("keep-alive"))
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue: Bool { fields.first("Expect")?.lowercased() == "100-continue" }
}

// The request line and the headers.
extension RequestParser {
    /// Returns the parsed headers, or nil if the request line is invalid.
    private mutating func parse(head bytes: [UInt8]) -> RequestHead? {
        var lines = bytes.split(separator: 10, omittingEmptySubsequences: false).dropLast()
        guard let first = lines.popFirst() else { return nil }
        // The empty line at the end is one of the lines.
        if let last = lines.popLast(), last.last != 13 { notices.append((.lineEnd, "the empty line")) }
        guard let (method, target, version) = Self.requestLine(stripped(first)) else {
            notices.append((.requestLine, Self.quoted(first)))
            return nil
        }
        let fields = lines.compactMap { readField(stripped($0)) }
        if version == "HTTP/1.1" { checkHost(fields) }
        return RequestHead(
            method: method, target: target, version: version, fields: fields, bytes: bytes,
            length: length(fields))
    }

    /// Returns the header in a line, or nil if the line is not a header.
    private mutating func readField(_ line: ArraySlice<UInt8>) -> LoopbackField? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            notices.append((.field, Self.quoted(line)))
            return nil
        }
        let name = line[..<colon]
        let value = Self.trimmed(line[(colon + 1)...])
        let hasName = !name.isEmpty && name.allSatisfy(Self.isToken)
        if !hasName || !value.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) {
            notices.append((.field, Self.quoted(line)))
        }
        return LoopbackField(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }

    /// Returns bytes as text that is readable in a sentence.
    static func quoted(_ bytes: ArraySlice<UInt8>) -> String {
        let text = String(decoding: bytes.prefix(200), as: UTF8.self)
        return text.debugDescription + (bytes.count > 200 ? "…" : "")
    }

    private mutating func stripped(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if line.last == 13 { return line.dropLast() }
        notices.append((.lineEnd, Self.quoted(line)))
        return line
    }

    private static func requestLine(_ line: ArraySlice<UInt8>) -> (String, String, String)? {
        let parts = line.split(separator: 32, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(isToken), !parts[1].isEmpty,
            parts[1].allSatisfy({ $0 > 32 && $0 < 127 })
        else { return nil }
        let version = String(decoding: parts[2], as: UTF8.self)
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { return nil }
        return (String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self), version)
    }

    private mutating func checkHost(_ fields: [LoopbackField]) {
        let hosts = fields.values("Host")
        if hosts.count != 1 || hosts[0].isEmpty { notices.append((.host, "\(hosts)")) }
    }

    private mutating func length(_ fields: [LoopbackField]) -> RequestHead.Length {
        let lengths = fields.values("Content-Length")
        let codings = fields.values("Transfer-Encoding")
        if !codings.isEmpty {
            if codings.map({ $0.lowercased() }) != ["chunked"] || !lengths.isEmpty {
                notices.append((.length, "Transfer-Encoding \(codings), Content-Length \(lengths)"))
            }
            return .chunks
        }
        guard let first = lengths.first else { return .none }
        let isNumber = !first.isEmpty && first.utf8.allSatisfy { (48...57).contains($0) }
        guard lengths.count == 1, isNumber, let count = Int(first) else {
            notices.append((.length, "Content-Length \(lengths)"))
            return Int(first).map { .bytes(max($0, 0)) } ?? .none
        }
        return .bytes(count)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = bytes.drop { $0 == 32 || $0 == 9 }
        guard let last = start.lastIndex(where: { $0 != 32 && $0 != 9 }) else { return [] }
        return start[...last]
    }

    private static func isToken(_ byte: UInt8) -> Bool { tokens[Int(byte)] }

    private static let tokens: [Bool] = (0..<256).map { byte in
        switch UInt8(byte) {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case let other: Array("!#$%&'*+-.^_`|~".utf8).contains(other)
        }
    }
}
