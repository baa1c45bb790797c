// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A validated HTTP request that a session can send.
///
/// The initializer validates the method, the URL, the headers, the body and the options. If a value is not valid, the
/// initializer throws a ``NetworkError`` that explains how to fix the value.
///
/// If the URL contains a user name or a password, the initializer removes both from the URL. Unless the headers contain
/// an `Authorization` header, the initializer creates this header from the user name and the password.
public struct NetworkRequest: Sendable {
    /// The contents in one immutable object, because a request is passed on many times and never changes.
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

    /// The HTTP method of the request.
    ///
    /// If you pass a standard method in lowercase, such as `get`, OperationKit converts the method to uppercase.
    public var method: String { content.method }
    /// The absolute URL of the request in a normalized form, without a user name, a password or a fragment.
    ///
    /// The scheme and the host are in lowercase, and the URL does not contain the default port of the scheme. A host
    /// with non-ASCII characters is in Punycode (`xn--`), and an IP address is in its standard form. Different
    /// spellings of a host therefore use the same credentials, connections, cookies and cached responses.
    ///
    /// An IPv6 address can contain the name of a network interface, as in `http://[fe80::1%25eth0]/` (RFC 6874).
    public var url: URL { content.url }
    /// The headers of the request, to which the session adds its own headers.
    public var headers: HeaderFields { content.headers }
    /// The body of the request.
    public var body: RequestBody { content.body }
    /// The options for the transfer of the request, such as its timeouts.
    public var options: TransferOptions { content.options }
    /// The scheme, the host and the port.
    package var origin: RequestOrigin { content.origin }

    /// Creates a request and validates its method, URL, headers, body and options.
    ///
    /// If the body has a content type or a content encoding, the initializer adds the `Content-Type` or
    /// `Content-Encoding` header, unless the headers already contain that header.
    ///
    /// The headers can contain `Content-Length` if the value is correct. For a stream of unknown length, this header
    /// specifies the length. The ``headers`` property does not include this header.
    ///
    /// - Parameters:
    ///   - method: The HTTP method of the request. The default is `GET`.
    ///   - url: An absolute URL with the scheme `http` or `https` and a host.
    ///   - headers: The headers of the request. The default is an empty list.
    ///   - body: The body of the request. The default is ``RequestBody/none``.
    ///   - options: The options for the transfer, such as its timeouts. By default, each option has its default value.
    /// - Throws: A ``NetworkError`` if the method, the URL, a header, the body or an option is not valid.
    public init(
        _ method: String = "GET", url: URL, headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = TransferOptions()
    ) throws(NetworkError) {
        let checks = RequestChecks(method: method, url: url)
        try checks.check(options)
        let method = try checks.checkedMethod()
        let target = try checks.checkedURL()
        var (fields, body) = try checks.checkedHeaders(headers, body)
        if let contentType = body.contentType, !fields.contains("Content-Type") {
            let field = HeaderFields.Field("Content-Type", contentType)
            fields.add(field.name, try checks.checkedValue(field))
        }
        if let encoding = body.contentEncoding, !fields.contains("Content-Encoding") {
            fields.add("Content-Encoding", encoding)
        }
        if let credentials = target.credentials, !fields.contains("Authorization") {
            fields.add("Authorization", credentials)
        }
        self.content = Content(method, target.url, target.origin, fields, body, options)
    }

    /// Creates a copy of a request with headers that were already validated.
    init(_ request: NetworkRequest, checkedHeaders headers: HeaderFields) {
        content = Content(request.method, request.url, request.origin, headers, request.body, request.options)
    }

    /// Creates a copy of a request with options that were already validated.
    init(_ request: NetworkRequest, checkedOptions options: TransferOptions) {
        content = Content(request.method, request.url, request.origin, request.headers, request.body, options)
    }

    /// Returns whether both values are unmodified copies of one request.
    func isSame(as other: NetworkRequest) -> Bool { content === other.content }

    /// The same request, which does not wait for other requests to its host.
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

    /// A summary of the request that contains the method and the URL, without secrets.
    public var summary: RequestSummary { summary(.secrets) }

    /// Returns the method and the URL, without the parts that the redaction leaves out.
    package func summary(_ redaction: LogRedaction) -> RequestSummary {
        RequestSummary(method: method, url: url, redaction)
    }

    /// A Boolean value that indicates whether the method is idempotent, which means that two identical requests have
    /// the same effect as one.
    package var isIdempotent: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method) }

    /// Whether the session waits for a `100 Continue` response, which a request without content must not expect
    /// (RFC 9110, section 10.1.1).
    package var expectsContinue: Bool { options.expectsContinue && !body.isNone && body.length != 0 }
}

// Methods that return a modified copy and validate it again.
extension NetworkRequest {
    /// Returns a copy of the request with the given header, which replaces any existing headers with the same name.
    ///
    /// - Parameters:
    ///   - name: The name of the header, which is not case-sensitive.
    ///   - value: The new value of the header.
    /// - Throws: A ``NetworkError`` if the name or the value of the header is not valid, or if only the session can set
    ///   the header.
    public func with(_ name: String, _ value: String) throws(NetworkError) -> NetworkRequest {
        var headers = headers
        guard name.utf8.count != "Content-Length".utf8.count else {
            headers[name] = value
            return try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
        }
        // All other parts were validated before.
        headers[name] = try RequestChecks(method: method, url: url).checkedValue(HeaderFields.Field(name, value))
        return NetworkRequest(self, checkedHeaders: headers)
    }

    /// Returns a copy of the request with the given query parameter, which replaces any existing parameters with the
    /// same name.
    ///
    /// The rest of the query does not change.
    ///
    /// - Parameters:
    ///   - name: The unencoded name of the parameter.
    ///   - value: The unencoded value of the parameter. The method percent-encodes the name and the value.
    /// - Throws: A ``NetworkError`` if the resulting URL is not valid.
    public func with(query name: String, _ value: String) throws(NetworkError) -> NetworkRequest {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw NetworkError(code: .invalidURL, phase: .checking, message: "The URL cannot be parsed.")
        }
        // Split as text. Decoding and encoding the other parameters again would change plus signs, and would invalidate
        // a signature.
        let query = parts.percentEncodedQuery ?? ""
        let others =
            query.isEmpty
            ? []
            : query.split(separator: "&", omittingEmptySubsequences: false).filter { pair in
                let written = String(pair.prefix { $0 != "=" })
                // A form writes a space as a plus sign.
                let names = [written, written.replacing("+", with: "%20")].map(\.removingPercentEncoding)
                return !names.contains(name)
            }
        let own = FormEncoder.text(of: [(name, value)], writesPlus: false)
        parts.percentEncodedQuery = (others.map(String.init) + [own]).joined(separator: "&")
        return try NetworkRequest(method, url: parts.url ?? url, headers: headers, body: body, options: options)
    }

    /// Returns the request with other transfer options.
    func with(_ options: TransferOptions) throws(NetworkError) -> NetworkRequest {
        try RequestChecks(method: method, url: url).check(options)
        return NetworkRequest(self, checkedOptions: options)
    }

    /// Returns the request with additional headers, but keeps its own header if the names are the same.
    ///
    /// A request without a body gets no content type.
    func completed(by others: HeaderFields) throws(NetworkError) -> NetworkRequest {
        let (own, hasBody) = (headers, !body.isNone)
        let missing = others.filter { !own.contains($0.name) && (hasBody || !$0.isNamed("Content-Type")) }
        if missing.isEmpty { return self }
        return try NetworkRequest(
            method, url: url, headers: HeaderFields(Array(own) + missing), body: body, options: options)
    }

    /// Returns a copy of the request with a new body.
    ///
    /// - Parameter new: The new body. Its content type and content encoding replace those of the old body in the
    ///   headers of the request.
    /// - Throws: A ``NetworkError`` if the request is not valid with this body.
    public func with(body new: RequestBody) throws(NetworkError) -> NetworkRequest {
        var headers = headers
        // The headers that describe the old body do not apply to the new body.
        if headers["Content-Type"] == body.contentType { headers["Content-Type"] = nil }
        if headers["Content-Encoding"] == body.contentEncoding { headers["Content-Encoding"] = nil }
        return try NetworkRequest(method, url: url, headers: headers, body: new, options: options)
    }
}

extension NetworkRequest {
    /// Creates a request from a `URLRequest` and validates it.
    ///
    /// The `timeoutInterval` replaces the timeouts ``TransferTimeouts/firstByte`` and ``TransferTimeouts/idle`` of the
    /// options, unless the interval has its default value of 60 seconds. Apart from this interval and the method, URL,
    /// headers and body, the initializer ignores the properties of the request, such as the cache policy.
    ///
    /// - Parameters:
    ///   - request: The request to convert.
    ///   - options: The options for the transfer, such as its timeouts. By default, each option has its default value.
    /// - Throws: A ``NetworkError`` if the method, the URL, a header, the body or an option is not valid.
    public init(_ request: URLRequest, options: TransferOptions = TransferOptions()) throws(NetworkError) {
        try self.init(request, options: options, body: Self.body(of: request))
    }

    /// Creates a request from a `URLRequest` with another body, which the headers must describe.
    init(_ request: URLRequest, options: TransferOptions = .standard, body: RequestBody) throws(NetworkError) {
        let method = request.httpMethod ?? "GET"
        guard let url = request.url else {
            throw NetworkError(code: .invalidURL, phase: .checking, message: "The request has no URL. Set one.")
        }
        var options = options
        let interval = request.timeoutInterval
        guard interval.isFinite, interval > 0 else {
            throw NetworkError(
                code: .invalidLimit, phase: .checking,
                message: "The timeoutInterval of the request is not a finite number greater than zero. "
                    + "Set a positive number, or remove the limit in the options.",
                request: RequestSummary(method: method.isToken ? method : "(no method)", url: url))
        }
        // An interval longer than 30 years means no limit. A Duration could not hold every such interval.
        let limit: Duration? = interval < 1e9 ? .nanoseconds(max(Int64(interval * 1e9), 1)) : nil
        if interval != 60 {
            options.timeouts.firstByte = limit
            options.timeouts.idle = limit
        }
        var headers = HeaderFields()
        for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
            headers.add(name, value)
        }
        try self.init(method, url: url, headers: headers, body: body, options: options)
    }

    /// Returns the body in the properties of a `URLRequest`, or ``RequestBody/none``.
    static func body(of request: URLRequest) -> RequestBody {
        if let data = request.httpBody { return data.isEmpty ? .none : .data(data) }
        guard let stream = request.httpBodyStream else { return .none }
        // The copies of the URLRequest share the stream, as they do in Foundation. Only the first reader gets its
        // bytes.
        return .stream(once: Unchecked(stream))
    }
}

extension NetworkRequest: CustomStringConvertible, CustomReflectable {
    /// The method, the URL and the headers of the request, without secrets.
    public var description: String { "\(summary) \(headers)" }

    /// A mirror without secrets and without the body, for debuggers and `dump`.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["method": method, "url": summary.url, "headers": headers, "options": options],
            displayStyle: .struct)
    }
}

/// The options for the transfer of a request, such as timeouts, size limits and decompression.
///
/// These options do not control redirects, retries, credentials, cookies or the maximum size of the response body. For
/// these settings, see ``ExchangeConfiguration``, ``Retry``, ``Authenticator`` and ``ResponseRules``.
public struct TransferOptions: Sendable, Hashable {
    /// The timeouts for the phases of the transfer.
    public var timeouts: TransferTimeouts
    /// The maximum size of the response headers, in bytes, including the headers of informational responses.
    ///
    /// The default is 64 KiB. Most versions of libcurl accept at most 300 KiB, even if this value is larger.
    public var maximumHeaderSize: Int
    /// A Boolean value that indicates whether the session requests compressed response bodies and decompresses them.
    ///
    /// The default is `true`. If the request has its own `Accept-Encoding` header or a `Range` header, a `CurlSession`
    /// does not decompress the body. A `URLSession` decompresses every body whose encoding Foundation supports,
    /// regardless of this option.
    public var decodesContent: Bool
    /// The maximum ratio between the size of a decompressed response body and the number of received bytes.
    ///
    /// The default is 100. The limit applies only if the decompressed body is larger than 1 MiB. A `URLSession` applies
    /// the limit only if the response specifies its compressed length.
    public var maximumExpansion: Int
    /// A Boolean value that indicates whether the session waits for a `100 Continue` response before it sends the body.
    ///
    /// The default is `false`. If the value is `true`, the session waits for at most one second. The option has no
    /// effect if the body is empty. A `URLSession` ignores this option.
    public var expectsContinue: Bool
    /// The newest HTTP version that the session uses for the request.
    ///
    /// The default is ``HTTPVersion/http2``, which the session uses if the server agrees during the TLS handshake. A
    /// `URLSession` ignores this option, because Foundation chooses the version.
    public var newestVersion: HTTPVersion
    /// The priority of the request among the requests to the same host.
    ///
    /// The default is ``TransferPriority/normal``.
    public var priority: TransferPriority
    /// Whether the request bypasses the queue for its host, because the waiting requests may depend on its response.
    package var isAhead = false
    /// An object that a higher layer attached to the request.
    var companion: Companion?

    /// An object that is compared by identity.
    struct Companion: Sendable, Hashable {
        let object: any AnyObject & Sendable

        static func == (left: Companion, right: Companion) -> Bool { left.object === right.object }

        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(object)) }
    }

    /// Creates options with the given timeouts and with default values for all other options.
    ///
    /// - Parameter timeouts: The timeouts of the transfer. The default is the default value of each timeout.
    public init(timeouts: TransferTimeouts = TransferTimeouts()) {
        self.timeouts = timeouts
        maximumHeaderSize = 64 << 10
        decodesContent = true
        maximumExpansion = 100
        expectsContinue = false
        newestVersion = .http2
        priority = .normal
    }

    /// Transfer options with the default values.
    package static let standard = TransferOptions()
}

/// A priority that determines the order in which a session sends waiting requests to a host.
///
/// If the number of requests to a host exceeds the session's limit, the session sends requests with a higher priority
/// first. However, requests with a lower priority do not wait indefinitely. Over HTTP/2, the priority also determines
/// the weight of the stream, which a server can use to order its responses.
public struct TransferPriority: Sendable, Hashable {
    /// The rank of the priority.
    ///
    /// The lowest rank is 0.
    let rank: Int

    /// The priority for requests whose results no user is waiting for.
    public static let low = TransferPriority(rank: 0)
    /// The default priority of requests.
    public static let normal = TransferPriority(rank: 1)
    /// The priority for requests whose results a user is waiting for.
    public static let high = TransferPriority(rank: 2)

    static let count = 3

    /// The weight of an HTTP/2 stream, from 1 to 256.
    ///
    /// The default weight is 16.
    package var streamWeight: Int { [2, 16, 128][rank] }

    /// The priority of a task in Foundation.
    var foundation: Float { [0.25, 0.5, 0.75][rank] }
}

/// The timeouts for the phases of a transfer.
///
/// A value of `nil` disables a timeout. The timeouts do not include the time for which a request waits for other
/// requests in the session, or for which its network task is suspended or paused. The resolution of the timeouts is one
/// millisecond.
public struct TransferTimeouts: Sendable, Hashable {
    /// The maximum time for establishing a connection, including the name lookup and TLS.
    ///
    /// The default is 10 seconds. The time does not include a wait for a connection that other requests use. In a
    /// `URLSession`, the time for establishing a connection counts toward ``firstByte`` instead.
    public var connect: Duration?
    /// The maximum time for which the session waits for the first byte of the response after the connection is ready.
    ///
    /// The default is 60 seconds. If the request has a body, the session restarts this timeout after it has sent the
    /// body. During the upload, ``idle`` applies. An informational response also restarts the timeout.
    public var firstByte: Duration?
    /// The maximum time between consecutive bytes of a request body or a response body.
    ///
    /// The default is 60 seconds.
    public var idle: Duration?
    /// The maximum duration of a transfer.
    ///
    /// The default is `nil`, which does not limit the duration. Each redirect begins a new transfer, to which the
    /// timeout applies separately. To limit the duration of an operation, set its `timeout` property.
    public var total: Duration?

    /// Creates timeouts for the phases of a transfer.
    ///
    /// To disable a timeout, pass `nil`.
    ///
    /// - Parameters:
    ///   - connect: The maximum time for establishing a connection. The default is 10 seconds.
    ///   - firstByte: The maximum time for which the session waits for the first byte of the response. The default is
    ///     60 seconds.
    ///   - idle: The maximum time between consecutive bytes of a body. The default is 60 seconds.
    ///   - total: The maximum duration of a transfer. The default is `nil`, which does not limit the duration.
    public init(
        connect: Duration? = .seconds(10), firstByte: Duration? = .seconds(60), idle: Duration? = .seconds(60),
        total: Duration? = nil
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
    }

    /// A value that disables all timeouts.
    public static let none = TransferTimeouts(connect: nil, firstByte: nil, idle: nil, total: nil)
}
