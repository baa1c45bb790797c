// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// By what a request is carried out.
enum Carrier: String {
    /// A task of the session, with a receiver that does what an operation does at the end.
    case task
    /// An operation in a `QueueManager`.
    case manager
    /// An operation in an `OperationQueue`.
    case queue
    /// An operation of a subclass that overrides `evaluate(result:response:)`, in a `QueueManager`.
    case subclass
    /// The operation of an endpoint, in a `QueueManager`: it decodes by itself, and needs no response object for that.
    case endpoint
    /// An operation in a `QueueManager` over the session that follows redirects, as the default one does.
    case exchange

    /// A session for so many requests at a time; the same for all but one.
    func makeSession(inFlight: Int) -> any NetworkSession {
        #if OPERATIONKIT_LIBCURL
            var configuration = CurlSession.Configuration()
            configuration.maximumConnectionsPerHost = inFlight
            configuration.maximumConnections = inFlight
            configuration.proxy = .none
            let session: any NetworkSession = CurlSession(configuration: configuration)
        #else
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpMaximumConnectionsPerHost = inFlight
            let session: any NetworkSession = URLSession(configuration: configuration)
        #endif
        return self == .exchange ? ExchangeSession(over: session) : session
    }

    /// Makes the operation for a request.
    func makeOperation(_ request: NetworkRequest, _ session: any NetworkSession) -> NetworkDataOperation<Album> {
        func made<Session: NetworkSession>(_ session: Session) -> NetworkDataOperation<Album> {
            if self == .endpoint { return Self.endpointOperation(request, session) }
            if self == .subclass { return AlbumOperation(request: request, urlSession: session) }
            return NetworkDataOperation(request: request, urlSession: session) { data, _ in try Album(data) }
        }
        return made(session)
    }
}

extension Carrier {
    private static func endpointOperation(
        _ request: NetworkRequest, _ session: any NetworkSession
    ) -> NetworkDataOperation<Album> {
        let base = NetworkBase(request.url) { base in
            base.session = session
            // The server does not say of what type it is.
            base.headers = ["Accept": "*/*"]
        }
        return base.get("", as: Album.self)
    }
}

/// What every answer is decoded to.
struct Album: Decodable, Sendable {
    let id: Int
    let title: String
    let artist: String
    let year: Int
    let isLive: Bool
    let minutes: Int

    init(_ data: Data) throws { self = try JSONDecoder().decode(Self.self, from: data) }
}

private final class AlbumOperation: NetworkDataOperation<Album>, @unchecked Sendable {
    // Sendable: it has no state.

    override func evaluate(result: Data, response: HTTPURLResponse) throws -> Album { try Album(result) }
}
