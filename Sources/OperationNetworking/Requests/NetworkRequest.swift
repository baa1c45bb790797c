// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A request that was looked at and may be sent.
///
/// Whatever could make a session write something else than was meant is refused when it is made, with a
/// ``NetworkError`` that says what to change; nothing has been sent then. A user and a password in the URL are taken out
/// of it and become an `Authorization` field, unless there is one.
public struct NetworkRequest: Sendable {
    /// The method; the usual ones in capital letters.
    public let method: String
    /// The URL, absolute, without user, password and fragment, its scheme in small letters.
    public let url: URL
    /// The header fields that are sent beside those of the session.
    public let headers: HeaderFields
    /// The body.
    public let body: RequestBody
    /// How it is to be transferred.
    public let options: TransferOptions
    /// Scheme, host and port.
    package let origin: RequestOrigin

    /// Checks the parts and makes a request of them.
    ///
    /// `Content-Length` may be among the headers if it is right; of a stream whose length is not known it states it. It is
    /// not kept in ``headers``. A body that knows what it is adds a `Content-Type` field, unless there is one, and one that
    /// is compressed a `Content-Encoding` field.
    public init(
        _ method: String = "GET", url: URL, headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) throws(NetworkError) {
        let checks = RequestChecks(method: method, url: url)
        try checks.check(options)
        self.method = try checks.checkedMethod()
        let target = try checks.checkedURL()
        let content = try checks.checkedHeaders(headers, body)
        var fields = content.headers
        if let contentType = content.body.contentType, !fields.contains("Content-Type") {
            let field = HeaderFields.Field("Content-Type", contentType)
            fields.add(field.name, try checks.checkedValue(field))
        }
        if let encoding = content.body.contentEncoding, !fields.contains("Content-Encoding") {
            fields.add("Content-Encoding", encoding)
        }
        if let credentials = target.credentials, !fields.contains("Authorization") {
            fields.add("Authorization", credentials)
        }
        self.url = target.url
        origin = target.origin
        self.headers = fields
        self.body = content.body
        self.options = options
    }

    /// The same request with header fields that were checked.
    init(_ request: NetworkRequest, checkedHeaders headers: HeaderFields) {
        (method, url, body, options) = (request.method, request.url, request.body, request.options)
        origin = request.origin
        self.headers = headers
    }

    /// Method and URL without secrets.
    public var summary: RequestSummary { RequestSummary(method: method, url: url) }

    /// Whether sending it twice has the effect of sending it once, by the rules of its method.
    public var isIdempotent: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method) }
}
