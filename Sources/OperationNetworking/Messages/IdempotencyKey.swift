// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A key that a server uses to recognize repeated requests and to avoid processing a request twice.
///
/// Requests contain the key in the `Idempotency-Key` header. An operation sends the key of its first attempt in all
/// attempts, even if a hook later sets another key. If a hook, an encoder or an endpoint creates the body again for
/// each attempt, the body should always contain the same bytes, because servers may compare the bodies. An empty string
/// does not count as a key.
///
/// Set a key only if the server's documentation says that the server supports the header. Otherwise, the server might
/// process a repeated request twice.
public struct IdempotencyKey: Sendable, Hashable, CustomStringConvertible {
    static let field = "Idempotency-Key"

    /// The text of the key, which is the value of the `Idempotency-Key` header.
    package let text: String

    /// Creates a key from a string, for example from a key that you stored on disk.
    public init(_ text: String) {
        self.text = text
    }

    /// Returns a new, random key.
    public static func random() -> IdempotencyKey { IdempotencyKey(UUID().uuidString.lowercased()) }

    /// The text of the key, which is the value of the `Idempotency-Key` header.
    public var description: String { text }
}

extension NetworkRequest {
    /// The value of the `Idempotency-Key` header, or `nil` if the header is missing or empty.
    var idempotencyKey: String? {
        let key = headers[IdempotencyKey.field]?.trimmingCharacters(in: .whitespaces)
        return key?.isEmpty == false ? key : nil
    }
}
