// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The status and the headers of a response.
public struct ResponseHead: Sendable, Hashable {
    /// The URL of the request that received this response.
    public let url: URL
    /// The status code of the response, from 100 to 999.
    public let status: Int
    /// The HTTP version of the response.
    ///
    /// For a response from a `URLSession`, the value is always HTTP/1.1, because Foundation does not provide the
    /// version.
    public let version: HTTPVersion
    /// The reason phrase after the status code, such as `Not Found`.
    ///
    /// The value is an empty string for HTTP/2 responses and for responses from a `URLSession`.
    public let reason: String
    /// The headers of the response, in the order in which the session received them.
    ///
    /// Foundation does not preserve this order, and joins or loses repeated headers. A `URLSession` therefore delivers
    /// the headers in alphabetical order.
    public let headers: HeaderFields
    /// A Boolean value that indicates whether the session decompresses the response body.
    ///
    /// If the value is `true`, the `Content-Length` header specifies the compressed length, and not the number of bytes
    /// that the session delivers.
    public let isDecoded: Bool

    /// Creates the status and the headers of a response, for custom sessions and tests.
    ///
    /// - Parameters:
    ///   - url: The URL of the request that received this response.
    ///   - status: The status code of the response, from 100 to 999.
    ///   - headers: The headers of the response. The default is an empty list.
    ///   - version: The HTTP version of the response. The default is HTTP/1.1.
    ///   - reason: The reason phrase, such as `Not Found`. The default is an empty string.
    ///   - isDecoded: A Boolean value that indicates whether the session decompresses the response body. The default is
    ///     `false`.
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

    /// The number of body bytes that the session will deliver, or `nil` if the number is not known in advance.
    ///
    /// However, for the response to a `HEAD` request, the value is the length of the body that a `GET` request would
    /// receive.
    public var expectedLength: Int64? {
        guard !isDecoded, !headers.contains("Transfer-Encoding"), let text = headers["Content-Length"],
            let length = Int64(text), length >= 0
        else { return nil }
        return length
    }

    /// Returns whether a response can have a body, regardless of its headers (RFC 9112, section 6.3).
    static func mayHaveBody(status: Int, method: String) -> Bool {
        switch status {
        case 204, 304: false
        default: method != "HEAD"
        }
    }
}

extension ResponseHead: CustomStringConvertible, CustomReflectable {
    private var place: String { RequestSummary(method: "GET", url: url).url }

    /// The status code, the URL and the headers of the response, without secrets.
    public var description: String { "\(status) from \(place) \(headers)" }

    /// A mirror without secrets, for debuggers and `dump`.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "url": place, "status": status, "version": version, "reason": reason.quoted(), "headers": headers,
                "isDecoded": isDecoded,
            ], displayStyle: .struct)
    }
}

extension ResponseHead {
    /// Returns the pause from now on that the server asks for in `Retry-After` (RFC 9110, section 10.2.3), or `nil` if
    /// the header is missing or invalid.
    ///
    /// If the response has several such headers, the longest pause counts. A date is compared with the `Date` header of
    /// the response, so that a wrong clock of the server or the client does no harm.
    func retryAfter(now: Date) -> Duration? {
        headers.values("Retry-After").compactMap { retryAfter($0, now: now) }.max()
    }

    private func retryAfter(_ field: String, now: Date) -> Duration? {
        let text = field.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty else { return nil }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that does not fit an `Int64` counts as the longest possible pause.
            return .seconds(Int64(text) ?? .max)
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let theirs = headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return .seconds(max(date.timeIntervalSince(theirs), 0))
    }
}

extension HTTPURLResponse {
    /// Creates Foundation's form of a response, in which headers with the same name are joined by commas.
    convenience init?(_ head: ResponseHead) {
        var fields: [String: String] = [:]
        fields.reserveCapacity(head.headers.count)
        for field in head.headers {
            // Foundation keeps only one of several names that differ in their case.
            let name = head.headers.first { $0.isNamed(field.name) }?.name ?? field.name
            guard let known = fields.updateValue(field.value, forKey: name) else { continue }
            fields[name] = "\(known), \(field.value)"
        }
        self.init(
            url: head.url, statusCode: head.status, httpVersion: head.version.description, headerFields: fields)
    }
}
