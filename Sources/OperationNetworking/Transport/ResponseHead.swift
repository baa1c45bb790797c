// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Status and header fields of a response.
public struct ResponseHead: Sendable, Hashable {
    /// The URL that was asked for.
    public let url: URL
    /// The status, from 100 to 999.
    public let status: Int
    /// The version in which the response came.
    public let version: HTTPVersion
    /// The words after the status; empty in HTTP/2.
    public let reason: String
    /// The header fields, in their order.
    public let headers: HeaderFields
    /// Whether the session decompresses the body, so that the lengths in the header fields are not those of the bytes.
    public let isDecoded: Bool

    /// Makes a head, for sessions of your own and for tests.
    public init(
        url: URL, status: Int, headers: HeaderFields = [:], version: HTTPVersion = .http1_1, reason: String = "",
        isDecoded: Bool = false
    ) {
        self.url = url
        self.status = status
        self.headers = headers
        self.version = version
        self.reason = reason
        self.isDecoded = isDecoded
    }

    /// How many bytes of the body will be handed over, as far as the head tells; nil if it does not.
    ///
    /// Of a response to HEAD it is what GET would give.
    public var expectedLength: Int64? {
        if isDecoded || headers.contains("Transfer-Encoding") { return nil }
        return headers["Content-Length"].flatMap { Int64($0) }.flatMap { $0 < 0 ? nil : $0 }
    }
}
