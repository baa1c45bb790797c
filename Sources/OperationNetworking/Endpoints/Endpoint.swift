// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request of a service as a value: what is asked of it, and what its answer is made into.
///
/// Endpoints can be kept as static members, made by functions, or given by an enum, as you like:
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
/// `Data` as the result is the body as it came, `String` its text, ``NoContent`` whatever it is; all of these accept a
/// response of any type. Everything else is decoded from JSON, models that are classes included, and accepts nothing but
/// JSON. An optional of any of these is nil where there is no body.
public struct Endpoint<ResultType: Sendable>: Sendable {
    /// The method.
    public var method: String
    /// The path beneath the base, not percent-encoded.
    ///
    /// Setting it replaces a URL of ``at(_:allowsOtherOrigin:)``.
    public var path: String {
        didSet { place = nil }
    }
    /// What stands in the query; nil is left out, and arrays and nested values are written as the base's encoder says.
    public var query: [String: (any Sendable)?]
    /// Fields that are sent beside those of the base, and in the place of those of the same name.
    public var headers: HeaderFields
    /// Which types of a response are asked for, if neither ``headers`` nor the base have an `Accept` field.
    ///
    /// Unless ``ResponseRules/contentTypes`` says otherwise, no other types are accepted.
    public var accepts: String
    /// Makes the body.
    public var makeBody: @Sendable (NetworkBase) throws -> RequestBody
    /// Makes the result.
    public var decode: @Sendable (Data, HTTPURLResponse, NetworkBase) throws -> ResultType {
        didSet { read = nil }
    }
    /// The same as ``decode``, where that does not need Foundation's form of the response: to make one takes longer than to
    /// decode a small answer.
    private(set) var read: (@Sendable (Data, ResponseHead, NetworkBase) throws -> ResultType)?
    /// The URL that takes the place of the path, if there is one.
    private var place: EndpointPlace?
    /// The result of an answer without a body, in the place of ``decode``; if it is nil, that is asked for this, too.
    public var emptyResult: (@Sendable () -> ResultType)?

    /// Makes an endpoint of any kind, which accepts responses of any type unless you say which.
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

    /// The same endpoint with fields more, in the place of those of the same name.
    public func adding(_ fields: HeaderFields) -> Self {
        var endpoint = self
        for field in fields { endpoint.headers[field.name] = nil }
        endpoint.headers = HeaderFields(Array(endpoint.headers) + Array(fields))
        return endpoint
    }

    /// The same endpoint with a field more.
    public func header(_ name: String, _ value: String) -> Self {
        var endpoint = self
        endpoint.headers[name] = value
        return endpoint
    }

    /// Returns the same endpoint at a URL, which takes the place of the path and of the query.
    ///
    /// Use it for a URL that the service itself returns: the next page of a list, a file, a place for an upload.
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
    /// A relative URL is resolved against the URL of the base: `songs/7` is appended to the path of the base, and `/songs/7` begins at the
    /// host. The query of the base is not added. A name and a password in the URL are left out.
    ///
    /// A URL with another scheme, host or port than the base fails with ``NetworkError/Code/otherOrigin`` before anything is
    /// sent. If you allow another origin, the request gets none of the secrets of the base:
    ///
    /// - The headers of the base are not sent there, because any of them may be a credential.
    /// - The headers that the endpoint already has are sent there, except those that are secrets: see
    ///   ``RedirectPolicy/secretHeaders``, whose own names have no effect here. Headers that you add afterwards are always
    ///   sent.
    /// - A realm gives its credential only if ``AuthenticationOptions/origins`` names that origin.
    ///
    /// - Parameters:
    ///   - url: The URL, absolute or relative to the base.
    ///   - allowsOtherOrigin: Whether the URL may have another scheme, host or port than the base. The default is `false`.
    public func at(_ url: URL, allowsOtherOrigin: Bool = false) -> Self {
        var endpoint = self
        (endpoint.path, endpoint.query) = ("", [:])
        endpoint.place = EndpointPlace(url, allowsOtherOrigin: allowsOtherOrigin, headers)
        return endpoint
    }

    /// Makes the request of an operation, whose realms then keep their credentials from another origin.
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
        // A body knows better what it is than the service does: the boundary of a form is in its type.
        if body.contentType != nil { fields["Content-Type"] = nil }
        if body.contentEncoding != nil { fields["Content-Encoding"] = nil }
        for field in own { fields[field.name] = nil }
        fields = HeaderFields(Array(fields) + Array(own))
        if !fields.contains("Accept") { fields.add("Accept", accepts) }
        return try NetworkRequest(method, url: url, headers: fields, body: body, options: base.options)
    }
}

/// The URL of an endpoint that has one instead of a path.
private final class EndpointPlace: Sendable {
    let url: URL
    let allowsOtherOrigin: Bool
    /// The headers that the endpoint had before it got the URL.
    private let headers: HeaderFields

    init(_ url: URL, allowsOtherOrigin: Bool, _ headers: HeaderFields) {
        (self.url, self.allowsOtherOrigin, self.headers) = (url, allowsOtherOrigin, headers)
    }

    /// Returns those headers of the endpoint that are sent to another origin than that of the base.
    func headersElsewhere(_ all: HeaderFields) -> HeaderFields {
        let harmless = headers.withoutSecrets()
        return HeaderFields(all.filter { !headers.contains($0) || harmless.contains($0) })
    }
}

extension Endpoint where ResultType: Decodable {
    /// Asks for something.
    public static func get(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        reading("GET", path, query)
    }

    /// Deletes something.
    public static func delete(_ path: String, _ query: [String: (any Sendable)?] = [:]) -> Self {
        reading("DELETE", path, query)
    }

    /// Sends a value as JSON by POST.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("POST", path, query, json: value)
    }

    /// Sends a body by POST.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody = .none
    ) -> Self {
        sending("POST", path, query, body: body)
    }

    /// Sends a form by POST.
    public static func post(
        _ path: String, _ query: [String: (any Sendable)?] = [:], form: [String: (any Sendable)?]
    ) -> Self {
        reading("POST", path, query) { try .form(form.mapValues { $0 as Any? }, encoder: $0.formEncoder) }
    }

    /// Sends a value as JSON by PUT.
    public static func put(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("PUT", path, query, json: value)
    }

    /// Sends a body by PUT.
    public static func put(_ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody) -> Self {
        sending("PUT", path, query, body: body)
    }

    /// Sends a value as JSON by PATCH.
    public static func patch(
        _ path: String, _ query: [String: (any Sendable)?] = [:], json value: some Encodable & Sendable
    ) -> Self {
        sending("PATCH", path, query, json: value)
    }

    /// Sends a value as JSON by any method.
    public static func sending(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?] = [:],
        json value: some Encodable & Sendable
    ) -> Self {
        reading(method, path, query) { try .json(value, encoder: $0.makeEncoder()) }
    }

    /// Sends a body by any method.
    public static func sending(
        _ method: String, _ path: String, _ query: [String: (any Sendable)?] = [:], body: RequestBody
    ) -> Self {
        reading(method, path, query) { _ in body }
    }

    /// Makes its result as ``DecodedBody`` does.
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

    /// The types of a body of which ``DecodedBody`` can make the result.
    private static var readable: String {
        let all: [Any.Type] = [
            Data.self, String.self, NoContent.self, Data?.self, String?.self, NoContent?.self,
        ]
        let takesAnything = all.contains { $0 == ResultType.self }
        return takesAnything ? "*/*" : "application/json"
    }
}
