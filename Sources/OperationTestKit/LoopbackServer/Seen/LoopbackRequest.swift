// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A request as a ``LoopbackServer`` received it.
public struct LoopbackRequest: Sendable {
    /// Which request of the server it is: 0 for the first.
    public package(set) var number: Int
    /// Which connection it came on: 0 for the first.
    public package(set) var connection: Int
    /// Which request of its connection it is: 0 for the first.
    public package(set) var numberOnConnection: Int

    /// The method as it was written.
    public package(set) var method: String
    /// The target as it was written: path and query, as a rule.
    public package(set) var target: String
    /// The version as it was written: `HTTP/1.1`.
    public package(set) var version: String
    /// The header fields in their order, with those that occur twice.
    public package(set) var fields: [LoopbackField]
    /// All bytes of the head, with the empty line at its end.
    public package(set) var headBytes: [UInt8]

    /// The bytes of the body, without the framing of chunks: the first of them, if there were more than the server keeps.
    public package(set) var body: [UInt8] = []
    /// How many bytes the body had so far, without the framing of chunks.
    public package(set) var bodyCount = 0
    /// The fields behind a body in chunks.
    public package(set) var trailers: [LoopbackField] = []
    /// Whether the request arrived whole.
    public package(set) var isComplete = false

    /// When the head had arrived.
    public package(set) var headArrived: OperationInstant
    /// When the request had arrived whole.
    public package(set) var arrived: OperationInstant?

    /// The target up to its question mark.
    public var path: String {
        target.firstIndex(of: "?").map { String(target[..<$0]) } ?? target
    }

    /// The target behind its question mark.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The values of all fields with this name, in their order.
    public func values(_ name: String) -> [String] { fields.values(name) }

    /// The value of the first field with this name.
    public subscript(_ name: String) -> String? { fields.first(name) }
}
