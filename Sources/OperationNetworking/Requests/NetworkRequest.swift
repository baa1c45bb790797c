// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A request that was looked at and may be sent.
///
/// Whatever could make a session write something else than was meant is refused when it is made, with a
/// ``NetworkError`` that says what to change; nothing has been sent then. A user and a password in the URL are taken out
/// of it and become an `Authorization` field, unless there is one.
public struct NetworkRequest: Sendable {
    /// All of it, in one place: a request is handed on many times and never changed.
    private let content: Content

    private final class Content: Sendable {
        let method: String
        let url: URL
        let headers: HeaderFields
        let body: RequestBody
        let options: TransferOptions
        let origin: RequestOrigin

        init(
            _ method: String, _ url: URL, _ origin: RequestOrigin, _ headers: HeaderFields, _ body: RequestBody,
            _ options: TransferOptions
        ) {
            (self.method, self.url, self.origin, self.headers) = (method, url, origin, headers)
            (self.body, self.options) = (body, options)
        }
    }

    /// The method; the usual ones in capital letters.
    public var method: String { content.method }
    /// The URL in the form in which it is sent: absolute, without user, password and fragment.
    ///
    /// The scheme and the host are in lowercase, and the default port of the scheme is left out. A host with letters
    /// outside of ASCII is written in punycode (`xn--`), and an IP address in its usual form. So two spellings of one
    /// host are the same host for credentials, connections, retry budgets, cookies and the cache.
    ///
    /// An IPv6 address may name an interface of this machine, as in `http://[fe80::1%25eth0]/` (RFC 6874).
    public var url: URL { content.url }
    /// The header fields that are sent beside those of the session.
    public var headers: HeaderFields { content.headers }
    /// The body.
    public var body: RequestBody { content.body }
    /// How it is to be transferred.
    public var options: TransferOptions { content.options }
    /// Scheme, host and port.
    package var origin: RequestOrigin { content.origin }

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
        let method = try checks.checkedMethod()
        let target = try checks.checkedURL()
        let checked = try checks.checkedHeaders(headers, body)
        var fields = checked.headers
        if let contentType = checked.body.contentType, !fields.contains("Content-Type") {
            let field = HeaderFields.Field("Content-Type", contentType)
            fields.add(field.name, try checks.checkedValue(field))
        }
        if let encoding = checked.body.contentEncoding, !fields.contains("Content-Encoding") {
            fields.add("Content-Encoding", encoding)
        }
        if let credentials = target.credentials, !fields.contains("Authorization") {
            fields.add("Authorization", credentials)
        }
        self.content = Content(method, target.url, target.origin, fields, checked.body, options)
    }

    /// The same request with header fields that were checked.
    init(_ request: NetworkRequest, checkedHeaders headers: HeaderFields) {
        content = Content(request.method, request.url, request.origin, headers, request.body, request.options)
    }

    /// The same request with options that were checked.
    init(_ request: NetworkRequest, checkedOptions options: TransferOptions) {
        content = Content(request.method, request.url, request.origin, request.headers, request.body, options)
    }

    /// Whether the two are copies of one request, none of which was changed.
    func isSame(as other: NetworkRequest) -> Bool { content === other.content }

    /// The same request, which waits for no other one to its host.
    var ahead: NetworkRequest { with { $0.isAhead = true } }

    /// An object that a higher layer attached to the request.
    var companion: (any AnyObject & Sendable)? { content.options.companion?.object }

    /// Returns the same request with an object of a higher layer.
    func with(companion: any AnyObject & Sendable) -> NetworkRequest {
        with { $0.companion = TransferOptions.Companion(object: companion) }
    }

    private func with(_ change: (inout TransferOptions) -> Void) -> NetworkRequest {
        var options = options
        change(&options)
        return NetworkRequest(self, checkedOptions: options)
    }

    /// Method and URL without secrets.
    public var summary: RequestSummary { summary(.secrets) }

    /// Returns the method and the URL without what the redaction leaves out.
    func summary(_ redaction: LogRedaction) -> RequestSummary {
        RequestSummary(method: method, url: url, redaction)
    }

    /// Whether sending it twice has the effect of sending it once, by the rules of its method.
    public var isIdempotent: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method) }
}
