// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A response as the cache keeps it, but for its body.
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
    /// When the request was sent.
    package private(set) var requested: Date
    /// When the response came.
    package private(set) var received: Date
    /// The request's fields that the response depends on; nothing for those that it did not have.
    package private(set) var selecting: [String: [String]]

    /// - Parameter key: What the values of the request's fields are hidden with.
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

    /// The head that is served, as old as it is.
    package func head(url: URL, age: Int, bodyLength: Int64) -> ResponseHead {
        var headers = headers
        headers["Age"] = String(age)
        if !isDecoded { headers["Content-Length"] = String(bodyLength) }
        return ResponseHead(
            url: url, status: status, headers: headers, version: HTTPVersion(majorVersion, minorVersion),
            reason: reason, isDecoded: isDecoded)
    }

    /// The same response after the server said that it still holds (RFC 9111, section 3.2), to a request for which it is
    /// selected anew: the fields that it depends on may be others now.
    package func freshened(
        by head: ResponseHead, to request: HeaderFields, requested: Date, received: Date, key: CacheKey = .none
    ) -> CachedResponse {
        var copy = self
        var headers = headers
        let new = Self.storable(head.headers).filter { field in !Self.kept.contains { field.isNamed($0) } }
        for field in new { headers.remove(field.name) }
        for field in new { headers.add(field.name, field.value) }
        // How old it was then says nothing any more.
        if !head.headers.contains("Age") { headers.remove("Age") }
        copy.fields = headers.map { Field(name: $0.name, value: $0.value) }
        if head.headers.contains("Vary") || head.headers.contains("Cache-Control") {
            copy.selecting = CacheSelection.fields(of: request, namedBy: headers, isDecoded: isDecoded, key: key)
        }
        copy.requested = requested
        copy.received = received
        return copy
    }

    /// Without what concerns the connection (section 3.1), and without cookies: those were given to the jar when they
    /// came, and are not set again by each hit.
    private static func storable(_ headers: HeaderFields) -> [HeaderFields.Field] {
        let named = headers.values("Connection").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks }
        return headers.filter { field in !(unstored + named).contains { field.isNamed($0) } }
    }

    private static let unstored = [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
        "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Set-Cookie", "Set-Cookie2",
    ]

    /// What describes the body that is kept.
    private static let kept = ["Content-Length", "Content-Encoding", "Content-Range", "Content-Type"]
}
