// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A catalog service, with its URL, authentication and error format.
public struct Catalog: Sendable {
    public let base: NetworkBase

    /// Creates a catalog service.
    ///
    /// - Parameters:
    ///   - url: The URL of the service.
    ///   - session: The session that sends the requests, such as a `StubSession` in a test.
    ///   - token: The token that the app stored at the last sign-in.
    ///   - refresh: A closure that fetches a new token. The service calls the closure once, even if the server rejects
    ///     several requests.
    public init(
        at url: URL, session: any NetworkSession = DefaultNetworkSession.standard, token: String? = nil,
        refresh: @escaping @Sendable () async throws -> String
    ) {
        base = NetworkBase(url) { base in
            base.session = session
            base.headers["X-Client"] = "catalog/1"
            base.rules.decodeError = { body, _ in try CatalogProblem.read(body) }
            base.authenticate(
                by: Authenticator(token) { token, request in
                    try request.with("Authorization", "Bearer \(token)")
                } refresh: { _ in
                    try await refresh()
                })
        }
    }

    /// Creates a request to the service, with a percent-encoded path and query.
    public func request(
        _ path: String, method: String = "GET", query: [String: String] = [:], accepts: String = "application/json",
        body: RequestBody = .none
    ) throws -> NetworkRequest {
        let url = base.url.appending(path: path)
        var request = try NetworkRequest(method, url: url, headers: ["Accept": accepts], body: body)
        for (name, value) in query.sorted(by: { $0.key < $1.key }) {
            request = try request.with(query: name, value)
        }
        return request
    }

    /// Throws the error that a JSON body describes, even if the status code reports success.
    ///
    /// If the error says that the token has expired, the operation fetches a new token and sends its request again.
    public func check(_ head: ResponseHead, _ body: @autoclosure () throws -> Data) throws {
        guard head.headers["Content-Type"]?.hasPrefix("application/json") == true else { return }
        if let problem = try CatalogProblem.read(body()) { throw problem }
    }
}

/// An error in the format of the service, such as `{"error": "There is no such album."}`.
public struct CatalogProblem: Error, Decodable, Equatable {
    public let error: String

    public init(error: String) { self.error = error }

    /// Returns the error in a body, or `nil` if the body does not contain an error.
    static func read(_ body: Data) throws -> CatalogProblem? {
        guard let problem = try? JSONDecoder().decode(CatalogProblem.self, from: body) else { return nil }
        if problem.error == "token expired" { throw NetworkError(.credentialRejected) }
        return problem
    }
}

extension NetworkError {
    /// The error that the service described in the response, regardless of the status code.
    public var catalogProblem: CatalogProblem? { apiError as? CatalogProblem ?? cause as? CatalogProblem }
}
