// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A value that describes one request of a service and how to decode the response.
///
/// You can define endpoints as static members, as functions or as the cases of an enumeration:
///
/// ```swift
/// struct Album: Codable, Sendable { let title: String }
///
/// enum Shop {
///     static func album(_ id: Int) -> Endpoint<Album> { .get("albums/\(id)") }
///     static func add(_ album: Album) -> Endpoint<NoContent> { .post("albums", json: album) }
/// }
/// ```
///
/// The result type determines how the body is decoded:
///
/// - `Data` is the body without any changes, and `String` is its text. ``NoContent`` ignores the body. These types
///   accept a response of any content type.
/// - Every other type is decoded from JSON, including models that are classes, and accepts only JSON.
/// - An optional of any of these types is `nil` if the response has no body.
public struct Endpoint<ResultType: Sendable>: Sendable {
    /// The HTTP method.
    public var method: String
    /// The path relative to the base, without percent-encoding.
    ///
    /// If you set this property, the path replaces a URL from ``at(_:allowsOtherOrigin:)``.
    public var path: String {
        didSet { place = nil }
    }
    /// The query parameters.
    ///
    /// A `nil` value is omitted. The encoder of the base determines how arrays and nested values are encoded.
    public var query: [String: (any Sendable)?]
    /// The headers of the endpoint, which are sent in addition to the headers of the base.
    ///
    /// A header of the endpoint replaces the headers of the base with the same name.
    public var headers: HeaderFields
    /// The content types to request in the `Accept` header, if neither ``headers`` nor the base contains that header.
    ///
    /// Other content types are not accepted, unless ``ResponseRules/contentTypes`` allows them.
    public var accepts: String
    /// A closure that creates the request body.
    ///
    /// The operation calls the closure each time it creates the request, at least once for each attempt.
    public var makeBody: @Sendable (NetworkBase) throws -> RequestBody
    /// A closure that decodes the result.
    ///
    /// The operation calls the closure on the thread of the evaluation.
    public var decode: @Sendable (Data, HTTPURLResponse, NetworkBase) throws -> ResultType {
        didSet { read = nil }
    }
    /// The counterpart of ``decode`` that needs no `HTTPURLResponse`.
    ///
    /// Creating an `HTTPURLResponse` takes longer than decoding a small body.
    private(set) var read: (@Sendable (Data, ResponseHead, NetworkBase) throws -> ResultType)?
    /// The URL that replaces the path, if there is one.
    private var place: EndpointPlace?
    /// A closure that creates the result for a response without a body.
    ///
    /// The operation calls the closure on the thread of the evaluation. The default is `nil`, which passes an empty
    /// body to ``decode``.
    public var emptyResult: (@Sendable () -> ResultType)?

    /// Creates an endpoint from its parts.
    ///
    /// By default, the endpoint accepts responses of any content type.
    public init(
        _ method: String, _ path: String, query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        accepts: String = "*/*", makeBody: @escaping @Sendable (NetworkBase) throws -> RequestBody = { _ in .none },
        decode: @escaping @Sendable (Data, HTTPURLResponse, NetworkBase) throws -> ResultType
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.accepts = accepts
        self.makeBody = makeBody
        self.decode = decode
    }

    /// Returns the same endpoint with additional headers, which replace existing headers with the same name.
    public func adding(_ fields: HeaderFields) -> Self {
        var endpoint = self
        for field in fields { endpoint.headers[field.name] = nil }
        endpoint.headers = HeaderFields(Array(endpoint.headers) + Array(fields))
        return endpoint
    }

    /// Returns the same endpoint with the value of one header set.
    public func header(_ name: String, _ value: String) -> Self {
        var endpoint = self
        endpoint.headers[name] = value
        return endpoint
    }

    /// Returns the same endpoint at a URL, which replaces the path and the query.
    ///
    /// Use this method for a URL that the service returns, such as the next page of a list, a file or an upload target.
    ///
    /// ```swift
    /// struct Album: Codable, Sendable { let title: String }
    ///
    /// func add(_ album: Album, at url: URL, to shop: NetworkBase) -> EndpointOperation<NoContent> {
    ///     let endpoint = Endpoint<NoContent>.post("albums", json: album)
    ///     return shop.operation(for: endpoint.at(url))
    /// }
    /// ```
    ///
    /// A relative URL is resolved against the URL of the base. `songs/7` is appended to the path of the base, and
    /// `/songs/7` is relative to the root of the host. The query of the base is not added. A user name and a password
    /// in the URL are removed.
    ///
    /// A URL that differs from the base in its scheme, host or port fails with ``NetworkError/Code/otherOrigin`` before
    /// anything is sent. If you allow another origin, the request gets none of the secrets of the base:
    ///
    /// - The headers of the base are not sent to that origin, because any of them may be a credential.
    /// - The headers that the endpoint already has are sent, except secret headers. For a list of secret headers, see
    ///   ``RedirectPolicy/secretHeaders``. The names that you add to that property have no effect here. Headers that
    ///   you add to the endpoint after this call are always sent.
    /// - A realm adds its credential only if ``AuthenticationOptions/origins`` contains that origin.
    ///
    /// - Parameters:
    ///   - url: The URL, absolute or relative to the base.
    ///   - allowsOtherOrigin: A Boolean value that indicates whether the URL may differ from the base in its scheme,
    ///     host or port. The default is `false`.
    public func at(_ url: URL, allowsOtherOrigin: Bool = false) -> Self {
        var endpoint = self
        (endpoint.path, endpoint.query) = ("", [:])
        endpoint.place = EndpointPlace(url, allowsOtherOrigin: allowsOtherOrigin, headers)
        return endpoint
    }

    /// Creates the request of an operation, and keeps the credentials of its realms from other origins.
    func request(at base: NetworkBase, for attempts: NetworkAttempts) throws -> NetworkRequest {
        if let place, place.allowsOtherOrigin {
            attempts.keepCredentials(at: RequestOrigin(of: base.url))
        }
        return try request(at: base)
    }

    func request(at base: NetworkBase) throws -> NetworkRequest {
        let body = try makeBody(base)
        var (fields, own) = (base.headers, headers)
        let url: URL
        if let place {
            let target = try base.address(of: place.url, adding: query, allowsOtherOrigin: place.allowsOtherOrigin)
            url = target.url
            if target.isElsewhere { (fields, own) = ([:], place.headersElsewhere(own)) }
        } else {
            url = try base.address(of: path, query: query)
        }
        // The body's own content type takes precedence over the headers of the base, because a form's type contains its
        // boundary.
        if body.contentType != nil { fields["Content-Type"] = nil }
        if body.contentEncoding != nil { fields["Content-Encoding"] = nil }
        for field in own { fields[field.name] = nil }
        fields = HeaderFields(Array(fields) + Array(own))
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
    /// Creates a GET endpoint.
    public static func get(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        reading("GET", path, query)
    }

    /// Creates a DELETE endpoint.
    public static func delete(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        reading("DELETE", path, query)
    }

    /// Creates a POST endpoint that sends a value as JSON.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("POST", path, query, json: value)
    }

    /// Creates a POST endpoint that sends a body.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody = .none
    ) -> Self {
        sending("POST", path, query, body: body)
    }

    /// Creates a POST endpoint that sends a form.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], form: [String: (any Sendable)?]
    ) -> Self {
        reading("POST", path, query) { try .form(form.mapValues { $0 as Any? }, encoder: $0.formEncoder) }
    }

    /// Creates a PUT endpoint that sends a value as JSON.
    public static func put(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("PUT", path, query, json: value)
    }

    /// Creates a PUT endpoint that sends a body.
    public static func put(_ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody) -> Self {
        sending("PUT", path, query, body: body)
    }

    /// Creates a PATCH endpoint that sends a value as JSON.
    public static func patch(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("PATCH", path, query, json: value)
    }

    /// Creates an endpoint with any method that sends a value as JSON.
    public static func sending(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?] = [:],
        json value: some Encodable & Sendable
    ) -> Self {
        reading(method, path, query) { try .json(value, encoder: $0.makeEncoder()) }
    }

    /// Creates an endpoint with any method that sends a body.
    public static func sending(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody
    ) -> Self {
        reading(method, path, query) { _ in body }
    }

    /// Creates an endpoint that decodes its result with ``DecodedBody``.
    private static func reading(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?],
        makeBody: @escaping @Sendable (NetworkBase) throws -> RequestBody = { _ in .none }
    ) -> Self {
        var endpoint = Endpoint(method, path, query: query, accepts: readable, makeBody: makeBody) {
            try DecodedBody.read($0, $1.contentType, $2.makeDecoder)
        }
        endpoint.read = { try DecodedBody.read($0, $1.contentType, $2.makeDecoder) }
        return endpoint
    }

    /// The content types that ``DecodedBody`` can decode into the result type.
    private static var readable: String {
        let all: [Any.Type] = [
            Data.self, String.self, NoContent.self, Data?.self, String?.self, NoContent?.self,
        ]
        let takesAnything = all.contains { $0 == ResultType.self }
        return takesAnything ? "*/*" : "application/json"
    }
}

extension Endpoint where ResultType == ImageData {
    /// Creates a GET endpoint for an image.
    public static func image(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        image(path, query) { $0 }
    }
}

extension Endpoint {
    /// Creates a GET endpoint for an image that a closure decodes.
    ///
    /// For example, the result can be an image type of another library, a thumbnail or a size.
    ///
    /// - Parameters:
    ///   - path: The path relative to the base.
    ///   - query: The query parameters.
    ///   - decode: A closure that decodes the image. The operation calls the closure on the thread of the evaluation.
    public static func image(
        _ path: String, _ query: [String: (any Sendable)?] = [:],
        decode: @escaping @Sendable (ImageData) throws -> ResultType
    ) -> Self {
        Endpoint("GET", path, query: query, headers: ["Accept": "image/*"]) { data, _, _ in
            try decode(try ImageData(data))
        }
    }
}

extension NetworkBase {
    /// Returns an operation that requests an image.
    public func image(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> EndpointOperation<ImageData> {
        operation(for: .image(path, query))
    }
}

#if canImport(ImageIO)
    extension Endpoint where ResultType == DecodedImage {
        /// Creates a GET endpoint for an image that the system decodes on the thread of the evaluation.
        public static func decodedImage(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
            image(path, query) { try $0.decoded() }
        }
    }
#endif

/// A download from a service.
///
/// The base creates its request.
final class EndpointDownload: NetworkDownloadOperation<URL>, @unchecked Sendable {
    // Sendable: the class adds no mutable state.

    private let makeEndpointRequest: @Sendable (NetworkBase, NetworkAttempts) throws -> NetworkRequest
    private let base: NetworkBase

    init<Ignored: Sendable>(_ endpoint: Endpoint<Ignored>, at base: NetworkBase) {
        (makeEndpointRequest, self.base) = ({ try endpoint.request(at: $0, for: $1) }, base)
        super.init(RequestDraft(head: .none), base.session, nil)
        take(base)
    }

    package override var isPlain: Bool { true }

    override func makeRequest() throws -> NetworkRequest { try makeEndpointRequest(base, networkAttempts) }

    override var inheritedTransferOptions: TransferOptions { base.options }
}

extension NetworkBase {
    /// Returns an operation that downloads a file to disk.
    ///
    /// ```swift
    /// func cover(of album: Int, from shop: NetworkBase, into folder: URL) -> NetworkDownloadOperation<URL> {
    ///     shop.download("albums/\(album)/cover", to: .folder(folder))
    /// }
    /// ```
    ///
    /// The result is the URL of the file. A temporary file remains until you remove it.
    public func download(
        _ path: String, _ query: [String: (any Sendable)?] = [:], to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        download(Endpoint<Data>.get(path, query), to: destination)
    }

    /// Returns an operation that downloads a file from a URL of the service to disk.
    ///
    /// The result is the URL of the file. A temporary file remains until you remove it.
    ///
    /// - Parameters:
    ///   - url: The URL, absolute or relative to the base. For details, see ``Endpoint/at(_:allowsOtherOrigin:)``.
    ///   - allowsOtherOrigin: A Boolean value that indicates whether the URL may differ from the base in its scheme,
    ///     host or port. An example is a file on a content delivery network. The default is `false`. The headers and
    ///     the credentials of the base are not sent to another origin.
    ///   - destination: The destination of the file.
    public func download(
        _ url: URL, allowsOtherOrigin: Bool = false, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        download(Endpoint<Data>.get("").at(url, allowsOtherOrigin: allowsOtherOrigin), to: destination)
    }

    /// Returns an operation that downloads the response of an endpoint to disk, using the method, headers and body of
    /// the endpoint.
    ///
    /// The operation decodes nothing. The result is the URL of the file. A temporary file remains until you remove it.
    public func download<ResultType: Sendable>(
        _ endpoint: Endpoint<ResultType>, to destination: DownloadDestination = .temporary
    ) -> NetworkDownloadOperation<URL> {
        let operation = EndpointDownload(endpoint, at: self)
        operation.destination = destination
        return operation
    }
}
