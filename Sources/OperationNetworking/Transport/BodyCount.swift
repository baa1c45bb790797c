// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How much of a response's body came, counted as it goes over the wire, and how much was promised.
package struct BodyCount: Equatable, Sendable {
    private enum Promise: Equatable {
        case nothing
        case bytes(Int64)
        /// Whoever reads the chunks, or waits for the end of the connection, notices where it is.
        case delimited
        case unknown
    }

    private let promise: Promise
    private var count: Int64 = 0

    /// Before the head is there, nothing is known.
    package init() { promise = .unknown }

    /// What a head promises.
    package init(_ head: ResponseHeadParser.Head, method: String) {
        if method == "HEAD" || head.status == 204 || head.status == 304 {
            promise = .nothing
        } else if head.version < .http2, head.fields.contains("Transfer-Encoding") {
            promise = .delimited
        } else if let length = head.fields["Content-Length"] {
            // The head was refused if it states several that differ.
            let first = Int64(length) ?? length.split(separator: ",").first.flatMap { Int64(String($0).trimmedBlanks) }
            promise = first.map { .bytes($0) } ?? .unknown
        } else {
            promise = head.version < .http2 ? .delimited : .unknown
        }
    }

    package mutating func add(_ bytes: Int) { count += Int64(bytes) }

    /// Whether nothing is missing, as far as can be told where whoever read the body says nothing of its end.
    package var isComplete: Bool {
        switch promise {
        case .nothing: true
        case .bytes(let length): count >= length
        case .delimited: count > 0
        case .unknown: false
        }
    }
}
