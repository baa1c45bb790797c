// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Reads HTTP/1.1 requests from bytes as they arrive, and says where they break the rules.
///
/// It reads on wherever another server might, so that a test sees what the client meant, but it forgives nothing.
struct RequestParser {
    enum Event {
        case head(RequestHead)
        case body(ArraySlice<UInt8>)
        case end(trailers: [LoopbackField])
        case violation(LoopbackViolation.Code, String)
        /// Nothing more can be read on this connection.
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
        /// A request was read; the next is read when its answer is done.
        case resting
        case broken
    }

    private static let longestHead = 1 << 20

    private var state = State.head
    private var buffer: [UInt8] = []
    private var position = 0
    /// Up to where the buffer was searched for the end of the head.
    private var searched = 0
    private var notices: ArraySlice<(LoopbackViolation.Code, String)> = []

    /// How many bytes wait to be read.
    var waitingCount: Int { buffer.count - position }

    /// The bytes that wait to be read.
    var waiting: ArraySlice<UInt8> { buffer[position...] }

    /// Whether the parser stands between two requests with nothing of the next.
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

    /// The next event; nil if more bytes are needed, or if the answer to a request must be done first.
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
                    breakOff(.chunk, "a chunk of another size than it says")
                }
            case .trailers(let fields):
                guard let line = takeLine() else { return overlong() }
                if line.isEmpty {
                    state = .end(fields)
                } else {
                    let field = HeadReader.field(line, noting: &notices)
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

    /// Begins with the next request, when the answer to the last is done.
    mutating func beginNext() {
        if case .resting = state { state = .head }
        searched = position
    }

    private mutating func readHead() -> Event? {
        guard let end = endOfHead() else { return overlong() }
        let bytes = Array(buffer[position..<end])
        position = end
        searched = end
        guard let head = HeadReader.read(bytes, noting: &notices) else {
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

    /// The position behind the empty line.
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
        // A copy: a slice of the buffer would make the next append copy the whole of it.
        return Array(buffer[position..<(position + size)])[...]
    }

    /// The next line without its end.
    private mutating func takeLine() -> ArraySlice<UInt8>? {
        guard let lineFeed = firstLineFeed(from: position) else { return nil }
        var line = Array(buffer[position..<lineFeed])[...]
        position = lineFeed + 1
        if line.last == 13 {
            line = line.dropLast()
        } else {
            notices.append((.lineEnd, HeadReader.quoted(line)))
        }
        return line
    }

    private mutating func readChunkSize(_ line: ArraySlice<UInt8>) {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        let text = String(decoding: digits, as: UTF8.self)
        let isHexadecimal = !digits.isEmpty && text.allSatisfy { $0.isHexDigit && $0.isASCII }
        guard isHexadecimal, let size = Int(text, radix: 16) else {
            return breakOff(.chunk, "a chunk's size is \(HeadReader.quoted(line))")
        }
        state = size == 0 ? .trailers([]) : .chunk(left: size)
    }

    private mutating func overlong() -> Event? {
        guard waitingCount > Self.longestHead else { return nil }
        breakOff(.tooLong, "\(waitingCount) bytes without its end")
        return next()
    }

    private mutating func breakOff(_ code: LoopbackViolation.Code, _ detail: String) {
        notices.append((code, detail))
        state = .broken
    }
}
