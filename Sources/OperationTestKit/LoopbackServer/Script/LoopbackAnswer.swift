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
