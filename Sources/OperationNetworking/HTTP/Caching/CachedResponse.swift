// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A response as the cache stores it, without its body.
package struct CachedResponse: Hashable, Sendable, Codable {
    package struct Field: Hashable, Sendable, Codable {
        let name: String
        let value: String
    }

    package private(set) var status: Int
    package private(set) var reason: String
    private var fields: [Field]
    private var majorVersion: Int
    private var minorVersion: Int
    package private(set) var isDecoded: Bool
    /// The date at which the request was sent.
    package private(set) var requested: Date
    /// The date at which the response arrived.
    package private(set) var received: Date
    /// The request headers on which the response depends, with an empty array for a header that the request did not
    /// have.
    package private(set) var selecting: [String: [String]]

    /// Creates a stored response.
    ///
    /// - Parameter key: The key that hides the values of request headers.
    package init(
        _ head: ResponseHead, to request: HeaderFields, requested: Date, received: Date, key: CacheKey = .none
    ) {
        status = head.status
        reason = head.reason
        fields = Self.storable(head.headers).map { Field(name: $0.name, value: $0.value) }
        majorVersion = head.version.major
        minorVersion = head.version.minor
        isDecoded = head.isDecoded
        self.requested = requested
        self.received = received
        selecting = CacheSelection.fields(of: request, namedBy: head.headers, isDecoded: head.isDecoded, key: key)
    }

    package var headers: HeaderFields {
        HeaderFields(fields.map { HeaderFields.Field($0.name, $0.value) })
    }

    /// Returns the response headers to serve, with the given age.
    package func head(url: URL, age: Int, bodyLength: Int64) -> ResponseHead {
        var headers = headers
        headers["Age"] = String(age)
        if !isDecoded { headers["Content-Length"] = String(bodyLength) }
        return ResponseHead(
            url: url, status: status, headers: headers, version: HTTPVersion(majorVersion, minorVersion),
            reason: reason, isDecoded: isDecoded)
    }

    /// Returns the response after its server declared it still valid (RFC 9111, section 3.2).
    ///
    /// The response may now depend on other headers, whose values are taken from the given request.
    package func freshened(
        by head: ResponseHead, to request: HeaderFields, requested: Date, received: Date, key: CacheKey = .none
    ) -> CachedResponse {
        var copy = self
        var headers = headers
        let new = Self.storable(head.headers).filter { field in !Self.kept.contains { field.isNamed($0) } }
        for field in new { headers.remove(field.name) }
        for field in new { headers.add(field.name, field.value) }
        // The old age no longer applies.
        if !head.headers.contains("Age") { headers.remove("Age") }
        // Without a date, the time of arrival is the date.
        if !head.headers.contains("Date") { headers.remove("Date") }
        copy.fields = headers.map { Field(name: $0.name, value: $0.value) }
        if head.headers.contains("Vary") || head.headers.contains("Cache-Control") {
            copy.selecting = CacheSelection.fields(of: request, namedBy: headers, isDecoded: isDecoded, key: key)
        }
        copy.requested = requested
        copy.received = received
        return copy
    }

    /// Returns the headers without those of the connection (section 3.1) and without cookies.
    ///
    /// The jar got the cookies when they arrived, and a response from the cache must not set them again.
    private static func storable(_ headers: HeaderFields) -> [HeaderFields.Field] {
        let named = headers.values("Connection").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks }
        return headers.filter { field in !(unstored + named).contains { field.isNamed($0) } }
    }

    private static let unstored = [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
        "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Set-Cookie", "Set-Cookie2",
    ]

    /// The headers that describe the stored body.
    private static let kept = ["Content-Length", "Content-Encoding", "Content-Range", "Content-Type"]
}
