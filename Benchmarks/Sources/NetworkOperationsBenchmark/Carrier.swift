// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The way in which a request is sent.
enum Carrier: String {
    /// A task of the session, with a receiver that does the same as an operation at the end.
    case task
    /// An operation in a `QueueManager`.
    case manager
    /// An operation in an `OperationQueue`.
    case queue
    /// An operation of a subclass that overrides `evaluate(result:response:)`, in a `QueueManager`.
    case subclass
    /// The operation of an endpoint in a `QueueManager`, which decodes the body and needs no response object.
    case endpoint
    /// An operation in a `QueueManager` over the session that follows redirects, as in the default session.
    case exchange
    /// An operation in a `QueueManager` over the default session.
    case standard

    /// Returns a session for a number of simultaneous requests, which sends the requests over the same kind of
    /// connections in all cases.
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
        switch self {
        case .exchange: return ExchangeSession(over: session)
        case .standard:
            // Without the limits of a real default session, which would not send all requests at the same time.
            DefaultNetworkSession.standard.session = ExchangeSession(over: session)
            return DefaultNetworkSession.standard
        case .task, .manager, .queue, .subclass, .endpoint: return session
        }
    }

    /// Returns an operation for a request.
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
            // The server does not send the content type.
            base.headers = ["Accept": "*/*"]
        }
        return base.get("", as: Album.self)
    }
}

/// The result that each response is decoded to.
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
    // Sendable: the class has no state.

    override func evaluate(result: Data, response: HTTPURLResponse) throws -> Album { try Album(result) }
}
