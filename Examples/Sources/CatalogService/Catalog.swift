// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// The service: its address, how a user signs in, and how it describes its errors.
public struct Catalog: Sendable {
    public let base: NetworkBase

    /// - Parameters:
    ///   - url: The address of the service.
    ///   - session: The session that sends the requests, such as a `StubSession` in a test.
    ///   - token: The token that was stored at the last sign-in.
    ///   - refresh: Fetches a new token. It is called once, however many requests were rejected.
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

    /// Makes a request of the service, and encodes its path and its query.
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

    /// Throws the error that the body of a response describes, although its status is a success.
    ///
    /// The error of a token that has expired makes the operation fetch a new one and send its request again.
    public func check(_ head: ResponseHead, _ body: @autoclosure () throws -> Data) throws {
        guard head.headers["Content-Type"]?.hasPrefix("application/json") == true else { return }
        if let problem = try CatalogProblem.read(body()) { throw problem }
    }
}

/// An error as the service describes it: `{"error": "There is no such album."}`.
public struct CatalogProblem: Error, Decodable, Equatable {
    public let error: String

    public init(error: String) { self.error = error }

    /// Reads the error in a body; `nil` if there is none.
    static func read(_ body: Data) throws -> CatalogProblem? {
        guard let problem = try? JSONDecoder().decode(CatalogProblem.self, from: body) else { return nil }
        if problem.error == "token expired" { throw NetworkError(.credentialRejected) }
        return problem
    }
}

extension NetworkError {
    /// What the service itself said about the failure, with whatever status.
    public var catalogProblem: CatalogProblem? { apiError() ?? cause as? CatalogProblem }
}
