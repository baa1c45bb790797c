// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A response from a ``LoopbackServer``, described as a sequence of steps on the connection.
///
/// For common responses, use members such as ``text(_:status:)``, ``json(_:status:)`` and ``echo``, which also send the
/// headers that mark the end of the body. If you create a response from steps, the server sends only the data in these
/// steps. You can modify any response:
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer(), gate = Gate()
/// server.route("GET", "/cut") { _ in .text("Hello").cut(at: 30, by: .reset) }
/// server.route("GET", "/late") { _ in .json("{}").after(gate) }
/// ```
public struct LoopbackAnswer: Sendable {
    /// The steps that the server performs, in order.
    public var steps: [LoopbackStep]
    /// A Boolean value that indicates whether the server closes the connection after the last step.
    ///
    /// The server also closes the connection if the headers contain `Connection: close` or do not indicate where the
    /// body ends.
    public var closes: Bool
    package var cut: (offset: Int, ending: LoopbackEnding)?

    /// Creates a response from individual steps.
    ///
    /// - Parameters:
    ///   - steps: The steps that the server performs, in order.
    ///   - closes: A Boolean value that indicates whether the server closes the connection after the last step. The
    ///     default is `false`.
    public init(_ steps: LoopbackStep..., closes: Bool = false) {
        self.init(steps: steps, closes: closes)
    }

    /// Creates a response from an array of steps.
    public init(steps: [LoopbackStep], closes: Bool = false) {
        self.steps = steps
        self.closes = closes
    }

    /// Returns a response that sends only the given bytes and closes the connection.
    package static func raw(_ bytes: [UInt8]) -> Self { Self(.send(bytes), closes: true) }

    /// Returns a response that contains only the given text, after which the server closes the connection.
    package static func raw(_ text: String) -> Self { .raw(Array(text.utf8)) }

    /// Returns a response with a status code, headers and an empty body.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - fields: The names and values of the headers, in order. The default is an empty list.
    public static func status(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> Self {
        .bytes([], status: status, fields: fields.map { LoopbackField($0, $1) })
    }

    /// Returns a response whose body is plain text in UTF-8.
    ///
    /// - Parameters:
    ///   - text: The text of the body.
    ///   - status: The status code. The default is 200.
    public static func text(_ text: String, status: Int = 200) -> Self {
        .bytes(Array(text.utf8), status: status, fields: [LoopbackField("Content-Type", "text/plain; charset=utf-8")])
    }

    /// Returns a response whose body is the given JSON text.
    ///
    /// - Parameters:
    ///   - text: The body, which the server sends without checking that it is valid JSON.
    ///   - status: The status code. The default is 200.
    public static func json(_ text: String, status: Int = 200) -> Self {
        .bytes(Array(text.utf8), status: status, fields: [LoopbackField("Content-Type", "application/json")])
    }

    /// Returns a response whose body is a value encoded as JSON.
    ///
    /// If the value cannot be encoded, the response has the status code 500 and its body describes the error.
    ///
    /// - Parameters:
    ///   - value: The value to encode with a `JSONEncoder`.
    ///   - status: The status code. The default is 200.
    public static func json(encoding value: some Encodable, status: Int = 200) -> Self {
        do {
            let type = LoopbackField("Content-Type", "application/json")
            return .bytes(Array(try JSONEncoder().encode(value)), status: status, fields: [type])
        } catch {
            return .text("The response of the test cannot be encoded: \(error)", status: 500)
        }
    }

    /// Returns a response whose body consists of the given bytes, with a `Content-Length` header.
    ///
    /// If the status code does not allow a body, the response contains neither the bytes nor this header.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of the body.
    ///   - status: The status code. The default is 200.
    ///   - fields: The headers of the response, in addition to `Content-Length`. The default is an empty array.
    public static func bytes(_ bytes: [UInt8], status: Int = 200, fields: [LoopbackField] = []) -> Self {
        var head = LoopbackHead(status, fields)
        let mayHaveBody = status >= 200 && status != 204 && status != 304
        if mayHaveBody { head.fields.append(LoopbackField("Content-Length", "\(bytes.count)")) }
        let content = mayHaveBody && !bytes.isEmpty ? [LoopbackStep(kind: .content(bytes))] : []
        return Self(steps: [.head(head)] + content)
    }

    /// Returns a response with a chunked body, in which each string is one chunk.
    ///
    /// - Parameters:
    ///   - chunks: The chunks of the body. Empty strings are omitted, because an empty chunk would end the body.
    ///   - status: The status code. The default is 200.
    ///   - trailers: The names and values of the trailers. The default is an empty list.
    package static func chunks(
        _ chunks: [String], status: Int = 200, trailers: KeyValuePairs<String, String> = [:]
    ) -> Self {
        Self(
            steps: [.head(status, ["Transfer-Encoding": "chunked"])] + chunks.map { .chunk($0) }
                + [.lastChunk(trailers: trailers)])
    }

    /// Returns a response whose body consists of the given bytes, repeated up to a length of `count` bytes.
    ///
    /// The server creates the body in constant memory.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to repeat.
    ///   - count: The length of the body in bytes.
    public static func repeating(_ bytes: [UInt8], count: Int) -> Self {
        Self(.head(200, ["Content-Length": "\(count)"]), .send(repeating: bytes, count: count))
    }

    /// Returns a redirect to a location without validating the location.
    ///
    /// - Parameters:
    ///   - location: The value of the `Location` header.
    ///   - status: The status code. The default is 302.
    public static func redirect(to location: String, status: Int = 302) -> Self {
        .status(status, ["Location": location])
    }

    /// A response with the status 200 and a chunked body that is equal to the body of the request.
    ///
    /// For a route that you add with `routeEarly`, the server sends the chunks while the body arrives.
    public static var echo: Self {
        Self(.head(200, ["Transfer-Encoding": "chunked"]), .echoInChunks)
    }

    /// A response for which the server sends no bytes and keeps the connection open.
    public static var silence: Self { Self(.stallForever) }

    /// A response for which the server sends no bytes and resets the connection.
    public static var reset: Self { Self(.reset) }

    /// A response for which the server sends no bytes, not even a status line, and closes the connection.
    package static var hangUp: Self { Self(.close) }
}

extension LoopbackAnswer {
    /// Returns a copy of the response that ends after a number of bytes.
    ///
    /// If the response is shorter, the copy ends after the last byte of the response.
    ///
    /// - Parameters:
    ///   - offset: The maximum number of bytes to send, including the status line and the headers.
    ///   - ending: The way in which the server ends the response. The default is ``LoopbackEnding/close``.
    public func cut(at offset: Int, by ending: LoopbackEnding = .close) -> Self {
        var answer = self
        answer.cut = (max(offset, 0), ending)
        return answer
    }

    /// Returns a copy of the response in which the given header replaces all headers with the same name.
    ///
    /// The method does not change informational responses.
    ///
    /// - Parameters:
    ///   - name: The name of the header, which is not case-sensitive.
    ///   - value: The new value of the header.
    public func with(_ name: String, _ value: String) -> Self {
        changingHeads { $0.fields.set(name, value) }
    }

    /// Returns a copy of the response with an additional header, such as a second `Set-Cookie` or an invalid header.
    ///
    /// The method does not change informational responses.
    ///
    /// - Parameters:
    ///   - name: The name of the header.
    ///   - value: The value of the header.
    package func adding(_ name: String, _ value: String) -> Self {
        changingHeads { $0.fields.append(LoopbackField(name, value)) }
    }

    /// Returns a copy of the response without the headers that have the given name.
    ///
    /// The method does not change informational responses.
    ///
    /// - Parameter name: The name of the headers, which is not case-sensitive.
    public func without(_ name: String) -> Self {
        changingHeads { $0.fields.removeAll { $0.name.lowercased() == name.lowercased() } }
    }

    /// Returns a copy of the response that begins only after a gate is open.
    public func after(_ gate: Gate) -> Self { preceded(by: .stall(until: gate)) }

    /// Returns a copy of the response that begins after a delay on the server's clock.
    public func after(_ duration: Duration) -> Self { preceded(by: .pause(duration)) }

    /// Returns a copy of the response with additional steps at the start, such as headers with the status code 103.
    ///
    /// - Parameter steps: The steps to perform before the existing steps, in order.
    package func preceded(by steps: LoopbackStep...) -> Self {
        var answer = self
        answer.steps = steps + answer.steps
        return answer
    }

    /// Returns a copy of the response with additional steps at the end.
    ///
    /// - Parameter steps: The steps to perform after the existing steps, in order.
    package func followed(by steps: LoopbackStep...) -> Self {
        var answer = self
        answer.steps += steps
        return answer
    }

    /// Returns a copy of the response after which the server closes the connection, without a `Connection: close`
    /// header.
    package func closing() -> Self {
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
    /// Returns a response whose body contains the given bytes in the gzip format.
    ///
    /// The response has the headers `Content-Encoding` and `Content-Length`.
    ///
    /// - Parameters:
    ///   - bytes: The uncompressed bytes of the body.
    ///   - status: The status code. The default is 200.
    package static func gzip(_ bytes: [UInt8], status: Int = 200) -> Self {
        .bytes(Gzip.stored(bytes), status: status, fields: [LoopbackField("Content-Encoding", "gzip")])
    }
}

/// A namespace for a function that creates gzip data without a compressor.
package enum Gzip {
    /// The header of gzip data, without a file name and a modification time.
    package static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]

    /// Returns the given bytes in the gzip format, stored without compression.
    package static func stored(_ bytes: [UInt8]) -> [UInt8] {
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

    package static func littleEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}

/// The status line and headers of a response, which a ``LoopbackServer`` sends without validating them.
public struct LoopbackHead: Hashable, Sendable {
    /// The HTTP version in the status line.
    ///
    /// The default is `HTTP/1.1`.
    public var version = "HTTP/1.1"
    /// The status code.
    public var status: Int
    /// The reason phrase, such as `Not Found`.
    public var reason: String
    /// The headers, in the order in which the server sends them.
    public var fields: [LoopbackField]

    /// Creates a status line and headers without validating them or adding other headers.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - fields: The headers, in order. A name can occur several times. The default is an empty array.
    ///   - reason: The reason phrase. The default is `nil`, which uses the standard phrase for the status code.
    public init(_ status: Int, _ fields: [LoopbackField] = [], reason: String? = nil) {
        self.status = status
        self.fields = fields
        self.reason = reason ?? Self.usualReason(status)
    }

    /// The bytes of the status line and the headers.
    package var bytes: [UInt8] {
        var text = "\(version) \(status) \(reason)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        text += "\r\n"
        return Array(text.utf8)
    }

    /// Whether the client can detect the end of the body before the end of the connection.
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
