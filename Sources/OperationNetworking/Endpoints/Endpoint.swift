// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A value that describes a request to a service and how to decode the response.
///
/// For example, define the endpoints of a service as static functions of an enumeration:
///
/// ```swift
/// struct Album: Codable, Sendable { let title: String }
///
/// enum Shop {
///     static func album(_ id: Int) -> Endpoint<Album> { .get("albums/\(id)") }
///     static func add(_ album: Album) -> Endpoint<NoContent> {
///         .post("albums", json: album)
///     }
/// }
/// ```
///
/// The result type determines how the operation decodes the body of the response:
///
/// - For `Data`, the result is the unchanged body. For `String`, the result is the text of the body. For ``NoContent``,
///   the operation ignores the body. Endpoints with these result types accept responses of any content type.
/// - For any other type, the operation decodes the body from JSON and, by default, accepts only JSON responses.
/// - For an optional type, the result is `nil` if the response has no body.
public struct Endpoint<ResultType: Sendable>: Sendable {
    /// The HTTP method of the request.
    public var method: String {
        get { values.method }
        set { values.method = newValue }
    }
    /// The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///
    /// If you set this property, the path replaces a URL that you set with ``at(_:allowsOtherOrigin:)``.
    public var path: String {
        get { values.path }
        set { (values.path, values.place) = (newValue, nil) }
    }
    /// The query parameters of the request.
    ///
    /// The ``NetworkBase/formEncoder`` determines the format of arrays, nested values and `nil` values. By default, the
    /// operation omits each parameter whose value is `nil`. To send parameters without a value, set
    /// ``FormEncoder/nilText``.
    ///
    /// The default is an empty dictionary.
    public var query: [String: (any Sendable)?] {
        get { values.query }
        set { values.query = newValue }
    }
    /// The headers of the request, in addition to ``NetworkBase/headers``.
    ///
    /// A header in this property replaces the headers of the ``NetworkBase`` that have the same name.
    public var headers: HeaderFields {
        get { values.headers }
        set { values.headers = newValue }
    }
    /// The value of the `Accept` header, unless the headers of the endpoint or its ``NetworkBase`` contain that header.
    ///
    /// If the content type of the response does not match the `Accept` header, the operation fails, unless
    /// ``ResponseRules/contentTypes`` allows that type.
    public var accepts: String {
        get { values.accepts }
        set { values.accepts = newValue }
    }
    /// A closure that receives the ``NetworkBase`` and creates the body of the request.
    ///
    /// The operation calls the closure each time it creates the request, which happens at least once for each attempt.
    /// The closure runs on the thread that starts the operation, or later on any thread.
    public var makeBody: @Sendable (NetworkBase) throws -> RequestBody {
        get { values.makeBody }
        set { (values.makeBody, values.hasBodyInMemory) = (newValue, false) }
    }
    /// A closure that receives the response body, the `HTTPURLResponse` and the operation's ``NetworkBase``, and
    /// returns the result.
    ///
    /// The operation can call the closure on any thread.
    public var decode: @Sendable (Data, HTTPURLResponse, NetworkBase) throws -> ResultType {
        get { values.decode }
        set { (values.decode, values.read) = (newValue, nil) }
    }
    /// A closure that creates the result for a response without a body.
    ///
    /// The operation can call the closure on any thread. The default is `nil`, which passes an empty body to
    /// ``decode``.
    public var emptyResult: (@Sendable () -> ResultType)? {
        get { values.emptyResult }
        set { values.emptyResult = newValue }
    }

    private struct Values {
        var method: String
        var path: String
        var query: [String: (any Sendable)?]
        var headers: HeaderFields
        var accepts: String
        var makeBody: @Sendable (NetworkBase) throws -> RequestBody
        var hasBodyInMemory = false
        var decode: @Sendable (Data, HTTPURLResponse, NetworkBase) throws -> ResultType
        var read: (@Sendable (Data, ResponseHead, NetworkBase) throws -> ResultType)?
        /// The URL that replaces the path, if there is one.
        var place: EndpointPlace?
        var emptyResult: (@Sendable () -> ResultType)?
    }

    // Each operation has a copy of its endpoint, so a copy must cost little.
    @CopyOnWrite private var values: Values

    /// Whether it is certain that the body, if there is one, is in memory, so that no code of the user creates it.
    var hasBodyInMemory: Bool { values.hasBodyInMemory }
    /// The counterpart of ``decode`` that needs no `HTTPURLResponse`.
    ///
    /// Creating an `HTTPURLResponse` takes longer than decoding a small body.
    var read: (@Sendable (Data, ResponseHead, NetworkBase) throws -> ResultType)? { values.read }

    /// Creates an endpoint from a method, a path and closures that create the body and decode the response.
    ///
    /// - Parameters:
    ///   - method: The HTTP method of the request.
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - headers: The headers of the request, in addition to ``NetworkBase/headers``. The default is an empty list.
    ///   - accepts: The value of the `Accept` header. The default is `*/*`, which accepts responses of any content
    ///     type.
    ///   - makeBody: A closure that creates the body of the request. The default closure creates no body.
    ///   - decode: A closure that receives the response body, the `HTTPURLResponse` and the operation's
    ///     ``NetworkBase``, and returns the result. The operation can call the closure on any thread.
    public init(
        _ method: String, _ path: String, query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        accepts: String = "*/*", makeBody: @escaping @Sendable (NetworkBase) throws -> RequestBody = { _ in .none },
        decode: @escaping @Sendable (Data, HTTPURLResponse, NetworkBase) throws -> ResultType
    ) {
        values = Values(
            method: method, path: path, query: query, headers: headers, accepts: accepts, makeBody: makeBody,
            decode: decode)
    }

    /// Returns a copy of the endpoint with the given headers, which replace any existing headers with the same names.
    ///
    /// - Parameter fields: The headers to add. If a name occurs more than once in the list, the request contains each
    ///   header with this name.
    package func adding(_ fields: HeaderFields) -> Self {
        guard !fields.isEmpty else { return self }
        var endpoint = self
        var own = headers
        for field in fields { own[field.name] = nil }
        endpoint.headers = HeaderFields(Array(own) + Array(fields))
        return endpoint
    }

    /// Returns a copy of the endpoint with a new value for one header.
    ///
    /// - Parameters:
    ///   - name: The name of the header, which is not case-sensitive.
    ///   - value: The value that replaces all values of the header. If the name or the value is not valid, the
    ///     operation fails when it creates the request.
    public func header(_ name: String, _ value: String) -> Self {
        var endpoint = self
        endpoint.headers[name] = value
        return endpoint
    }

    /// Returns a copy of the endpoint with a URL that replaces the path and the query of the endpoint.
    ///
    /// Use this method for a URL that the service returns, such as the next page of a list, a file or an upload target.
    ///
    /// ```swift
    /// struct Album: Codable, Sendable { let title: String }
    ///
    /// func add(_ album: Album, at url: URL, to shop: NetworkBase)
    ///     -> EndpointOperation<NoContent>
    /// {
    ///     let endpoint = Endpoint<NoContent>.post("albums", json: album)
    ///     return shop.operation(for: endpoint.at(url))
    /// }
    /// ```
    ///
    /// The operation resolves a relative URL against ``NetworkBase/url``. For example, the operation appends `songs/7`
    /// to the path of that URL and resolves `/songs/7` against the root of the host. The operation ignores the query of
    /// the base URL. If the URL contains a user name or a password, the operation removes both, and uses those of the
    /// base URL.
    ///
    /// If the scheme, host or port of the URL differs from that of the base URL, the operation fails with
    /// ``NetworkError/Code/otherOrigin`` before it sends a request. If you allow other origins, the following rules
    /// protect the secrets of the base in a request to another origin:
    ///
    /// - The operation does not send the headers of the base to that origin, because any header might be a credential.
    /// - The operation sends the existing headers of the endpoint, except the headers that a session always removes
    ///   when a redirect leads to another origin. For a list of these headers, see ``RedirectPolicy/secretHeaders``. If
    ///   you add names to that property, they apply only to redirects. The operation always sends headers that you add
    ///   to the endpoint after this call.
    /// - An authenticator adds its credential to the request only if ``AuthenticationOptions/origins`` contains that
    ///   origin.
    ///
    /// - Parameters:
    ///   - url: An absolute URL, or a URL that is relative to ``NetworkBase/url``.
    ///   - allowsOtherOrigin: A Boolean value that indicates whether the scheme, host or port of the URL can differ
    ///     from that of the base URL. The default is `false`.
    public func at(_ url: URL, allowsOtherOrigin: Bool = false) -> Self {
        var endpoint = self
        (endpoint.path, endpoint.query) = ("", [:])
        endpoint.values.place = EndpointPlace(url, allowsOtherOrigin: allowsOtherOrigin, headers)
        return endpoint
    }

    package func request(at base: NetworkBase) throws -> NetworkRequest {
        let body = try makeBody(base)
        var (fields, own) = (base.headersAtOrigin, headers)
        let url: URL
        if let place = values.place {
            let target = try base.address(of: place.url, adding: query, allowsOtherOrigin: place.allowsOtherOrigin)
            url = target.url
            if target.isElsewhere { (fields, own) = ([:], place.headersElsewhere(own)) }
        } else {
            url = try base.address(of: path, query: query)
        }
        // The body's own content type takes precedence over the headers of the base, because a form's type contains its
        // boundary. Some servers refuse a request that has a content type, but no body.
        if body.contentType != nil || body.isNone { fields["Content-Type"] = nil }
        if body.contentEncoding != nil { fields["Content-Encoding"] = nil }
        for field in own { fields[field.name] = nil }
        for field in own { fields.add(field.name, field.value) }
        if !fields.contains("Accept") { fields.add("Accept", accepts) }
        return try NetworkRequest(method, url: url, headers: fields, body: body, options: base.options)
    }
}

/// The URL of an endpoint that has a URL instead of a path.
private final class EndpointPlace: Sendable {
    let url: URL
    let allowsOtherOrigin: Bool
    /// The headers that the endpoint had before the URL was set.
    private let headers: HeaderFields

    init(_ url: URL, allowsOtherOrigin: Bool, _ headers: HeaderFields) {
        (self.url, self.allowsOtherOrigin, self.headers) = (url, allowsOtherOrigin, headers)
    }

    /// Returns the headers of the endpoint that are sent to an origin other than that of the base.
    func headersElsewhere(_ all: HeaderFields) -> HeaderFields {
        let harmless = headers.withoutSecrets()
        return HeaderFields(all.filter { !headers.contains($0) || harmless.contains($0) })
    }
}

extension Endpoint where ResultType: Decodable {
    /// Creates an endpoint that sends a GET request to a path of the service.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    public static func get(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        reading("GET", path, query)
    }

    /// Creates an endpoint that sends a DELETE request to a path of the service.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    public static func delete(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        reading("DELETE", path, query)
    }

    /// Creates an endpoint that sends a value as JSON in a POST request.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - value: The value to encode. The operation encodes the value with ``NetworkBase/makeEncoder`` each time it
    ///     creates the request.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("POST", path, query, json: value)
    }

    /// Creates an endpoint that sends a body in a POST request.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - body: The body of the request. The default is ``RequestBody/none``.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody = .none
    ) -> Self {
        sending("POST", path, query, body: body)
    }

    /// Creates an endpoint that sends a value as JSON in a PUT request.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - value: The value to encode. The operation encodes the value with ``NetworkBase/makeEncoder`` each time it
    ///     creates the request.
    public static func put(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("PUT", path, query, json: value)
    }

    /// Creates an endpoint that sends a value as JSON in a PATCH request.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - value: The value to encode. The operation encodes the value with ``NetworkBase/makeEncoder`` each time it
    ///     creates the request.
    public static func patch(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("PATCH", path, query, json: value)
    }

    /// Creates an endpoint that sends a value as JSON in a request with the HTTP method that you specify.
    ///
    /// - Parameters:
    ///   - method: The HTTP method of the request, such as `DELETE`.
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - value: The value to encode. The operation encodes the value with ``NetworkBase/makeEncoder`` each time it
    ///     creates the request.
    public static func sending(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?] = [:],
        json value: some Encodable & Sendable
    ) -> Self {
        reading(method, path, query) { try .json(value, encoder: $0.makeEncoder()) }
    }

    /// Creates an endpoint that sends a body in a request with the HTTP method that you specify.
    ///
    /// - Parameters:
    ///   - method: The HTTP method of the request, such as `PATCH`.
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - body: The body of the request.
    public static func sending(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody
    ) -> Self {
        var endpoint = reading(method, path, query) { _ in body }
        endpoint.values.hasBodyInMemory = body.isInMemory
        return endpoint
    }

    /// Creates an endpoint that decodes its result with ``DecodedBody``.
    private static func reading(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?],
        makeBody: (@Sendable (NetworkBase) throws -> RequestBody)? = nil
    ) -> Self {
        var endpoint = Endpoint(method, path, query: query, accepts: readable, makeBody: makeBody ?? { _ in .none }) {
            try DecodedBody.read($0, $1.contentType, $2.makeDecoder)
        }
        endpoint.values.read = { try DecodedBody.read($0, $1.contentType, $2.makeDecoder) }
        endpoint.values.hasBodyInMemory = makeBody == nil
        return endpoint
    }

    /// The content types that ``DecodedBody`` can decode into the result type.
    private static var readable: String {
        let takesAnything =
            ResultType.self == Data.self || ResultType.self == Data?.self || ResultType.self == String.self
            || ResultType.self == String?.self || ResultType.self == NoContent.self
            || ResultType.self == NoContent?.self
        return takesAnything ? "*/*" : "application/json"
    }
}

extension Endpoint where ResultType == ImageData {
    /// Creates an endpoint that requests the data of an image with a GET request.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    public static func image(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        Endpoint("GET", path, query: query, headers: ["Accept": "image/*"]) { data, _, _ in try ImageData(data) }
    }
}

extension NetworkBase {
    /// Creates an operation that requests the data of an image with a GET request.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    public func image(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> EndpointOperation<ImageData> {
        operation(for: .image(path, query))
    }
}

#if canImport(ImageIO)
    extension Endpoint where ResultType == DecodedImage {
        /// Creates an endpoint that requests an image with a GET request and decodes the image with Image I/O.
        ///
        /// - Parameters:
        ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
        ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty
        ///     dictionary.
        public static func decodedImage(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
            Endpoint("GET", path, query: query, headers: ["Accept": "image/*"]) { data, _, _ in
                try ImageData(data).decoded()
            }
        }
    }
#endif

/// A download from a service.
///
/// The base creates its request.
final class EndpointDownload: NetworkDownloadOperation<URL>, @unchecked Sendable {
    // Sendable: the class adds no mutable state.

    private let makeEndpointRequest: @Sendable (NetworkBase) throws -> NetworkRequest
    private let base: NetworkBase

    init<Ignored: Sendable>(_ endpoint: Endpoint<Ignored>, at base: NetworkBase) {
        (makeEndpointRequest, self.base) = ({ try endpoint.request(at: $0) }, base)
        super.init(RequestDraft(head: .none), base.session, nil)
        take(base)
    }

    package override var isOfOwnClass: Bool { true }

    override func makeRequest() throws -> NetworkRequest { try makeEndpointRequest(base) }

    override var serviceOfHooks: NetworkOperationOptions.Service? { base.service }

    override var inheritedTransferOptions: TransferOptions { base.options }
}

extension NetworkBase {
    /// Creates an operation that downloads a file from a path of the service to disk.
    ///
    /// ```swift
    /// func cover(of album: Int, from shop: NetworkBase, into folder: URL)
    ///     -> NetworkDownloadOperation<URL>
    /// {
    ///     shop.download("albums/\(album)/cover", to: .folder(folder))
    /// }
    /// ```
    ///
    /// The result of the operation is the URL of the file. If the destination is ``DownloadDestination/temporary``, the
    /// file remains until you remove it.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which the operation percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - destination: The location where the operation stores the file. The default is
    ///     ``DownloadDestination/temporary``.
    public func download(
        _ path: String, _ query: [String: (any Sendable)?] = [:], to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        download(Endpoint<Data>.get(path, query), to: destination)
    }

    /// Creates an operation that downloads a file from a URL of the service to disk.
    ///
    /// The result of the operation is the URL of the file. If the destination is ``DownloadDestination/temporary``, the
    /// file remains until you remove it.
    ///
    /// - Parameters:
    ///   - url: An absolute URL, or a URL that is relative to ``NetworkBase/url``. For details, see
    ///     ``Endpoint/at(_:allowsOtherOrigin:)``.
    ///   - allowsOtherOrigin: A Boolean value that indicates whether the scheme, host or port of the URL can differ
    ///     from that of the base URL, for example for a content delivery network. The default is `false`. The operation
    ///     does not send the headers of the base to another origin.
    ///   - destination: The location of the file on disk. The default is ``DownloadDestination/temporary``.
    public func download(
        _ url: URL, allowsOtherOrigin: Bool = false, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        download(Endpoint<Data>.get("").at(url, allowsOtherOrigin: allowsOtherOrigin), to: destination)
    }

    /// Creates an operation that sends an endpoint's request and downloads the response body to disk.
    ///
    /// The operation stores the body in the file and ignores the ``Endpoint/decode`` closure. The result of the
    /// operation is the URL of the file. If the destination is ``DownloadDestination/temporary``, the file remains
    /// until you remove it.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint whose request the operation sends.
    ///   - destination: The location where the operation stores the file. The default is
    ///     ``DownloadDestination/temporary``.
    public func download<ResultType: Sendable>(
        _ endpoint: Endpoint<ResultType>, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        let operation = EndpointDownload(endpoint, at: self)
        operation.destination = destination
        return operation
    }
}
