// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Something that a client did against the rules of HTTP/1.1.
///
/// A test that expects ``LoopbackServer/violations`` to be empty finds requests that were smuggled, bodies that are
/// longer than was said, and heads that another server would read differently.
public struct LoopbackViolation: Hashable, Sendable, CustomStringConvertible {
    /// The kind of the violation.
    public let code: Code
    /// On which connection it was seen.
    public let connection: Int
    /// What was seen.
    public let detail: String

    /// The violation as a sentence.
    public var description: String { "Connection \(connection): \(code.explanation): \(detail)" }

    /// The kind of a violation.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        let explanation: String

        /// The first line is no request line.
        public static let requestLine = Code(
            description: "requestLine", explanation: "the first line is not a method, a target and HTTP/1.1")
        /// A line of the head is no header field.
        public static let field = Code(description: "field", explanation: "a line of the head is no header field")
        /// A line ends without carriage return, or has one in its middle.
        public static let lineEnd = Code(
            description: "lineEnd", explanation: "a line does not end in carriage return and line feed")
        /// The host is missing, empty, or there are two.
        public static let host = Code(description: "host", explanation: "there is not exactly one Host")
        /// The length of the body is unclear: two lengths, a length and chunks, or no number.
        public static let length = Code(description: "length", explanation: "the length of the body is unclear")
        /// The chunks of a body are wrong.
        public static let chunk = Code(description: "chunk", explanation: "the body's chunks are wrong")
        /// Bytes came behind the end of the request before it was answered: a body longer than was said, or a second
        /// request.
        public static let surplus = Code(
            description: "surplus", explanation: "bytes came behind the end of a request that was not yet answered")
        /// The head is longer than the server reads.
        public static let tooLong = Code(description: "tooLong", explanation: "the head has no end")
    }
}
