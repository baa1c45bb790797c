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
    public var path: String
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

    func request(at base: NetworkBase) throws -> NetworkRequest {
        let body = try makeBody(base)
        var fields = base.headers
        // A body knows better what it is than the service does: the boundary of a form is in its type.
        if body.contentType != nil { fields["Content-Type"] = nil }
        if body.contentEncoding != nil { fields["Content-Encoding"] = nil }
        for field in headers { fields[field.name] = nil }
        fields = HeaderFields(Array(fields) + Array(headers))
        if !fields.contains("Accept") { fields.add("Accept", accepts) }
        return try NetworkRequest(
            method, url: base.address(of: path, query: query), headers: fields, body: body, options: base.options)
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
