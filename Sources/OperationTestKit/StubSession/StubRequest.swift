// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A request that a ``StubSession`` was given.
public struct StubRequest: Sendable {
    /// The method.
    public let method: String
    /// The URL.
    public let url: URL
    /// The header fields, without those that a session with a network writes itself.
    public let headers: HeaderFields
    /// The body; empty if there is none.
    public let body: Data
    /// How it was to be transferred.
    public let options: TransferOptions
    /// How many bytes the body has, and their checksum where not all are kept.
    let bodyCount: Int
    let bodyHash: String

    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of the first header field of that name.
    public subscript(_ name: String) -> String? { headers[name] }
}
