// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The script of what a ``LoopbackServer`` does about one request.
///
/// There are short forms for what is common (``text(_:status:)``, ``json(_:status:)``, ``echo``, …), which tell the client
/// where the body ends; those made of steps do just what the steps say. What an answer does can be changed:
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer(), gate = Gate()
/// server.route("GET", "/cut") { _ in .text("Hello").cut(at: 30, by: .reset) }
/// server.route("GET", "/late") { _ in .json("{}").after(gate) }
/// ```
public struct LoopbackAnswer: Sendable {
    /// What is done, in this order.
    public var steps: [LoopbackStep]
    /// Whether the connection is closed after the last step.
    ///
    /// It also is if a head says `Connection: close` or does not say where its body ends.
    public var closes: Bool
    package var cut: (offset: Int, ending: LoopbackEnding)?

    /// Makes an answer of steps.
    public init(_ steps: LoopbackStep..., closes: Bool = false) {
        self.init(steps: steps, closes: closes)
    }

    /// Makes an answer of steps.
    public init(steps: [LoopbackStep], closes: Bool = false) {
        self.steps = steps
        self.closes = closes
    }

    /// Sends just these bytes and closes the connection.
    public static func raw(_ bytes: [UInt8]) -> Self { Self(.send(bytes), closes: true) }

    /// Sends just this text and closes the connection.
    public static func raw(_ text: String) -> Self { .raw(Array(text.utf8)) }

    /// An empty body with this status.
    public static func status(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> Self {
        .bytes([], status: status, fields: fields.map { LoopbackField($0, $1) })
    }

    /// A text.
    public static func text(_ text: String, status: Int = 200) -> Self {
        .bytes(Array(text.utf8), status: status, fields: [LoopbackField("Content-Type", "text/plain; charset=utf-8")])
    }

    /// JSON, as it is.
    public static func json(_ text: String, status: Int = 200) -> Self {
        .bytes(Array(text.utf8), status: status, fields: [LoopbackField("Content-Type", "application/json")])
    }

    /// A value as JSON; status 500 and the reason where it cannot be encoded.
    public static func json(encoding value: some Encodable, status: Int = 200) -> Self {
        do {
            let type = LoopbackField("Content-Type", "application/json")
            return .bytes(Array(try JSONEncoder().encode(value)), status: status, fields: [type])
        } catch {
            return .text("The test's own answer cannot be encoded: \(error)", status: 500)
        }
    }

    /// Bytes with their length in the head.
    public static func bytes(_ bytes: [UInt8], status: Int = 200, fields: [LoopbackField] = []) -> Self {
        var head = LoopbackHead(status, fields)
        let mayHaveBody = status >= 200 && status != 204 && status != 304
        if mayHaveBody { head.fields.append(LoopbackField("Content-Length", "\(bytes.count)")) }
        let content = mayHaveBody && !bytes.isEmpty ? [LoopbackStep(kind: .content(bytes))] : []
        return Self(steps: [.head(head)] + content)
    }

    /// A body in chunks, one for each of the texts.
    public static func chunks(
        _ chunks: [String], status: Int = 200, trailers: KeyValuePairs<String, String> = [:]
    ) -> Self {
        Self(
            steps: [.head(status, ["Transfer-Encoding": "chunked"])] + chunks.map { .chunk($0) }
                + [.lastChunk(trailers: trailers)])
    }

    /// A body of `count` bytes, made of the same bytes again and again, in constant memory.
    public static func repeating(_ bytes: [UInt8], count: Int) -> Self {
        Self(.head(200, ["Content-Length": "\(count)"]), .send(repeating: bytes, count: count))
    }

    /// A redirect to any location, right or wrong.
    public static func redirect(to location: String, status: Int = 302) -> Self {
        .status(status, ["Location": location])
    }

    /// The body of the request, in chunks, while it arrives.
    public static var echo: Self {
        Self(.head(200, ["Transfer-Encoding": "chunked"]), .echoInChunks)
    }

    /// The connection is taken, the request is read, and nothing is ever answered.
    public static var silence: Self { Self(.stallForever) }

    /// The connection is broken off without an answer.
    public static var reset: Self { Self(.reset) }

    /// The connection is closed without an answer.
    public static var hangUp: Self { Self(.close) }
}

extension LoopbackAnswer {
    /// The same answer, ended when so many bytes of it were sent, heads included.
    ///
    /// An answer with fewer bytes is ended after its last.
    public func cut(at offset: Int, by ending: LoopbackEnding = .close) -> Self {
        var answer = self
        answer.cut = (max(offset, 0), ending)
        return answer
    }

    /// The same answer with that field in each of its final heads, in the place of all of that name.
    public func with(_ name: String, _ value: String) -> Self {
        changingHeads { $0.fields.set(name, value) }
    }

    /// The same answer with a field more in each of its final heads, beside those of that name: `Set-Cookie`, or what is
    /// wrong.
    public func adding(_ name: String, _ value: String) -> Self {
        changingHeads { $0.fields.append(LoopbackField(name, value)) }
    }

    /// The same answer without the fields of this name.
    public func without(_ name: String) -> Self {
        changingHeads { $0.fields.removeAll { $0.name.lowercased() == name.lowercased() } }
    }

    /// The same answer, sent when the gate is open.
    public func after(_ gate: Gate) -> Self { preceded(by: .stall(until: gate)) }

    /// The same answer, sent after so long on the server's clock.
    public func after(_ duration: Duration) -> Self { preceded(by: .pause(duration)) }

    /// The same answer after other steps, such as a head of status 103.
    public func preceded(by steps: LoopbackStep...) -> Self {
        var answer = self
        answer.steps = steps + answer.steps
        return answer
    }

    /// The same answer and other steps after it.
    public func followed(by steps: LoopbackStep...) -> Self {
        var answer = self
        answer.steps += steps
        return answer
    }

    /// The same answer, with the connection closed after it, though the head says nothing of that.
    public func closing() -> Self {
        var answer = self
        answer.closes = true
        return answer
    }

    private func changingHeads(_ change: (inout LoopbackHead) -> Void) -> Self {
        var answer = self
        answer.steps = steps.map { step in
            guard case .head(var head) = step.kind, head.status >= 200 else { return step }
            change(&head)
            return .head(head)
        }
        return answer
    }
}

extension LoopbackAnswer {
    /// Bytes as a gzip body with its length in the head.
    public static func gzip(_ bytes: [UInt8], status: Int = 200) -> Self {
        .bytes(Gzip.stored(bytes), status: status, fields: [LoopbackField("Content-Encoding", "gzip")])
    }

    /// A body that unpacks to `count` zeros and is about a thousand times smaller on the wire.
    ///
    /// Neither end takes memory for it here, so a gigabyte of zeros is a megabyte that is sent.
    public static func bomb(count: Int) -> Self {
        let bomb = Gzip.Zeros(count: count)
        return Self(
            .head(
                200, ["Content-Encoding": "gzip", "Content-Type": "text/plain", "Content-Length": "\(bomb.size)"]),
            .send(bomb.head), .send(repeating: [0], count: bomb.zeroBytes), .send(bomb.tail))
    }
}

/// Gzip bodies that can be made without a compressor.
public enum Gzip {
    private static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]

    /// Bytes in the frame of gzip, not compressed: right, and understood by everybody.
    public static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var packed = header
        var rest = bytes[...]
        repeat {
            let piece = rest.prefix(65_535)
            rest = rest.dropFirst(piece.count)
            let size = UInt16(piece.count)
            packed.append(rest.isEmpty ? 1 : 0)
            packed += littleEndian(UInt32(size) | UInt32(~size) << 16)
            packed += piece
        } while !rest.isEmpty
        return packed + CRC32.checksum(of: bytes, startingWith: CRC32()).reversed()
            + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// Zeros, compressed as far as the format allows: each zero byte on the wire stands for 1,032 of them.
    struct Zeros {
        /// What is sent first: the frame, and the table of a code in which the longest repetition takes two bits.
        let head: [UInt8]
        /// How many zero bytes follow.
        let zeroBytes: Int
        let tail: [UInt8]

        var size: Int { head.count + zeroBytes + tail.count }

        /// About `count` zeros: at least one, and up to 1,032 more or less.
        init(count: Int) {
            var bits = BitWriter()
            // The last block, with a code of its own: literal 0 (2 bits), end (2 bits), length 258 (1 bit); distance 1.
            bits.write(1, 1)
            bits.write(2, 2)
            bits.write(286 - 257, 5)
            bits.write(0, 5)
            bits.write(19 - 4, 4)
            // Lengths of the code of the code lengths, in the format's odd order: 1 → 2 bits, 2 → 2, 18 → 1.
            for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15] {
                bits.write(symbol == 18 ? 1 : symbol == 1 || symbol == 2 ? 2 : 0, 3)
            }
            let ofOne: UInt32 = 0b01, ofTwo: UInt32 = 0b11
            func skip(_ count: Int) {
                bits.write(0, 1)
                bits.write(UInt32(count - 11), 7)
            }
            bits.write(ofTwo, 2)
            skip(138)
            skip(256 - 1 - 138)
            bits.write(ofTwo, 2)
            skip(285 - 257)
            bits.write(ofOne, 2)
            bits.write(ofOne, 2)
            // The codes: length 258 is 0, literal 0 is 10, the end is 11; bits of a code come first to last.
            bits.write(0b01, 2)
            // So many repetitions that what follows begins with a byte.
            var repetitions = 0
            while !bits.isAligned {
                bits.write(0, 2)
                repetitions += 1
                if repetitions > 4 { break }
            }
            zeroBytes = max(count - 1 - 258 * repetitions, 0) / 1_032
            head = Gzip.header + bits.bytes
            let total = 1 + 258 * repetitions + 1_032 * zeroBytes
            tail =
                [0b11] + Gzip.littleEndian(Gzip.checksum(zeros: total))
                + Gzip.littleEndian(UInt32(truncatingIfNeeded: total))
        }
    }

    private static func littleEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// The CRC-32 of zeros, found by squaring: the time does not grow with their number.
    private static func checksum(zeros count: Int) -> UInt32 {
        // A zero byte maps the register by a matrix over two elements; column n is what it makes of bit n alone.
        var power = (0..<32).map { bit -> UInt32 in
            var value = UInt32(1) << bit
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
            return value
        }
        func apply(_ matrix: [UInt32], _ value: UInt32) -> UInt32 {
            (0..<32).reduce(0) { value >> $1 & 1 == 1 ? $0 ^ matrix[$1] : $0 }
        }
        var register = UInt32.max
        var left = count
        while left > 0 {
            if left & 1 == 1 { register = apply(power, register) }
            let present = power
            power = present.map { apply(present, $0) }
            left >>= 1
        }
        return ~register
    }

    private struct BitWriter {
        private(set) var bytes: [UInt8] = []
        private var used = 0

        var isAligned: Bool { used == 0 }

        /// Writes the low bits of a value, the lowest first.
        mutating func write(_ value: UInt32, _ count: Int) {
            for bit in 0..<count {
                if used == 0 { bytes.append(0) }
                bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << used
                used = (used + 1) % 8
            }
        }
    }
}

/// The status line and the header fields of an answer, right or wrong.
public struct LoopbackHead: Hashable, Sendable {
    /// The version that is sent.
    public var version = "HTTP/1.1"
    /// The status.
    public var status: Int
    /// The words behind the status.
    public var reason: String
    /// The fields in the order in which they are sent.
    public var fields: [LoopbackField]

    /// Makes a head; nothing is checked, and nothing is added to it.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - fields: The fields, in order, the same name as often as wished.
    ///   - reason: The words behind the status; the usual ones if nil.
    public init(_ status: Int, _ fields: [LoopbackField] = [], reason: String? = nil) {
        self.status = status
        self.fields = fields
        self.reason = reason ?? Self.usualReason(status)
    }

    /// The head as it is sent.
    public var bytes: [UInt8] {
        var text = "\(version) \(status) \(reason)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        text += "\r\n"
        return Array(text.utf8)
    }

    /// Whether the client can know where the body ends, other than by the end of the connection.
    var delimitsBody: Bool {
        if status < 200 || status == 204 || status == 304 { return true }
        return fields.first("Content-Length") != nil || fields.first("Transfer-Encoding") != nil
    }

    var closes: Bool { fields.first("Connection")?.lowercased().contains("close") == true }

    private static func usualReason(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 103: "Early Hints"
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 416: "Range Not Satisfiable"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: "Status \(status)"
        }
    }
}
