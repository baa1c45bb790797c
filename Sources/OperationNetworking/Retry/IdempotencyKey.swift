// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A text by which a server knows that a request which comes again is the same, and does not carry it out twice.
///
/// It goes into the field `Idempotency-Key`, the same in all attempts of an operation: that of the first one, also where a
/// hook says another one later. The body should be the same, too, for servers compare: a hook, an encoder or an endpoint of
/// yours that makes it anew for each attempt must make the same bytes. A text of no characters is no key. Servers that know nothing of it
/// carry out what comes twice: give an operation a key only where the server says that it heeds it.
public struct IdempotencyKey: Sendable, Hashable, CustomStringConvertible {
    static let field = "Idempotency-Key"

    /// The key as it is sent.
    public let text: String

    /// A key of your own, such as one that outlives the program.
    public init(_ text: String) {
        self.text = text
    }

    /// A new key, which nobody else has.
    public static func random() -> IdempotencyKey { IdempotencyKey(UUID().uuidString.lowercased()) }

    /// The key as it is sent.
    public var description: String { text }
}

extension NetworkRequest {
    /// The key by which the server knows it again; one of no characters is none.
    var idempotencyKey: String? {
        let key = headers[IdempotencyKey.field]?.trimmingCharacters(in: .whitespaces)
        return key?.isEmpty == false ? key : nil
    }
}
