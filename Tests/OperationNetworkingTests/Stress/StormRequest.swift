// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A kind of request in a storm of operations: the response of the server, and the expected outcome.
enum StormRequest: String, CaseIterable {
    /// A response that is decoded to a model.
    case album
    /// A response that a subclass with hooks decodes to a model.
    case signed
    /// A 404 response.
    case missing
    /// A truncated body.
    case broken
    /// A response that cannot be decoded.
    case nonsense
    /// A request without a response, which is canceled.
    case silent

    struct Album: Decodable, Sendable { let year: Int }

    /// Creates the kind for a number.
    ///
    /// Two of three numbers succeed.
    init(_ number: Int) {
        let others = StormRequest.allCases.dropFirst()
        self = number.isMultiple(of: 3) ? others[others.startIndex + number / 3 % others.count] : .album
    }

    /// Adds the routes of all kinds.
    static func serve(on server: LoopbackServer) {
        server.route("/album") { _ in .json(#"{"year":1959}"#) }
        server.route("/signed") { .json(#"{"year":\#($0["X-Year"] ?? "0")}"#) }
        server.route("/missing") { _ in .status(404) }
        server.route("/broken") { _ in .repeating(TestPattern.block, count: 1_000).cut(at: 500) }
        server.route("/nonsense") { _ in .text("nonsense") }
        server.route("/silent") { _ in .silence }
    }

    func makeOperation(_ server: LoopbackServer, _ session: some NetworkSession) -> NetworkDataOperation<Album> {
        let url = server.url("/\(rawValue)")
        if self == .signed { return Signed(url: url, urlSession: session) }
        return NetworkDataOperation(url: url, urlSession: session) { data, _ in try Album(data) }
    }

    func isRight(_ outcome: OperationOutcome<Album, NetworkError>?) -> Bool {
        switch self {
        case .album, .signed: outcome?.result?.year == 1959
        case .missing: outcome?.error?.status == 404
        case .broken: outcome?.error?.code == .truncatedBody
        case .nonsense: outcome?.error?.code == .undecodableResult
        case .silent: outcome?.cancellationCause?.code == .requested
        }
    }

    private final class Signed: NetworkDataOperation<Album>, @unchecked Sendable {
        // Sendable: the class has no state.

        override func prepareRequest(_ request: URLRequest) -> URLRequest {
            var request = request
            request.setValue("1959", forHTTPHeaderField: "X-Year")
            return request
        }

        override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
            await Task.yield()
            return request
        }

        override func evaluate(result: Data, response: HTTPURLResponse) throws -> Album { try Album(result) }
    }
}

extension StormRequest.Album {
    init(_ data: Data) throws { self = try JSONDecoder().decode(Self.self, from: data) }
}
