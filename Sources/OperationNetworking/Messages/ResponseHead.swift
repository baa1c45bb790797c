// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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

extension ResponseHead: CustomStringConvertible, CustomReflectable {
    private var place: String { RequestSummary(method: "GET", url: url).url }

    /// Status, URL and header fields, without secrets.
    public var description: String { "\(status) from \(place) \(headers)" }

    /// What debuggers and `dump` show: no secrets.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "url": place, "status": status, "version": version, "reason": reason.quoted(), "headers": headers,
                "isDecoded": isDecoded,
            ], displayStyle: .struct)
    }
}

extension HTTPURLResponse {
    /// The head as Foundation has it: fields of the same name are joined by commas.
    convenience init?(_ head: ResponseHead) {
        var fields: [String: String] = [:]
        fields.reserveCapacity(head.headers.count)
        for field in head.headers {
            guard let known = fields.updateValue(field.value, forKey: field.name) else { continue }
            fields[field.name] = "\(known), \(field.value)"
        }
        self.init(
            url: head.url, statusCode: head.status, httpVersion: head.version.description, headerFields: fields)
    }
}
