// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// Responses piece by piece, without an operation: address, fields, session, rules and options are those of the base, and
// nothing else is. No credentials of realms, no retry, no waiting for the network, no log.
extension NetworkBase {
    /// Asks for something, and gives its response as soon as the head came.
    ///
    /// ```swift
    /// func follow(_ shop: NetworkBase) async throws {
    ///     for try await line in try await shop.stream("orders/log", ["since": 7]).lines {
    ///         print(line)
    ///     }
    /// }
    /// ```
    ///
    /// The base's ``rules`` hold for status, type and the server's own errors; the bound on bytes in memory does not, for not
    /// more than about 64 KiB are kept. What only operations have is not there: ``realms``, ``retry``, ``offline`` and
    /// ``log``.
    public func stream(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:]
    ) async throws -> ResponseStream {
        try await stream(Endpoint<Data>.get(path, query).adding(headers))
    }

    /// Asks for what an endpoint says, with its method, its fields and its body; nothing is decoded.
    public func stream<ResultType: Sendable>(_ endpoint: Endpoint<ResultType>) async throws -> ResponseStream {
        try await session.withPolicy.stream(limited(endpoint.request(at: self)), rules: rules)
    }

    /// The events of a server at that path.
    ///
    /// ```swift
    /// func watch(_ shop: NetworkBase) async throws {
    ///     for try await event in try shop.events("orders", silence: .seconds(45)) {
    ///         print(event.kind, event.data)
    ///     }
    /// }
    /// ```
    ///
    /// Address, fields, session and options are those of the base, at each connection the same. Status and type are what
    /// ``ServerSentEvents`` says, and what only operations have is not there.
    public func events(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        silence: Duration? = nil
    ) throws -> ServerSentEvents {
        try events(Endpoint<Data>.get(path, query).adding(headers), silence: silence)
    }

    /// The events that a server sends when it is asked for what an endpoint says, with its method, its fields and its body.
    public func events<ResultType: Sendable>(
        _ endpoint: Endpoint<ResultType>, silence: Duration? = nil
    ) throws -> ServerSentEvents {
        ServerSentEvents(limited(try endpoint.request(at: self)), silence: silence, session: session.withPolicy)
    }

    /// Returns a request that waits for the rate limit of the base before the session sends it.
    private func limited(_ request: NetworkRequest) -> NetworkRequest {
        rateLimit.map { request.with(RatePass($0)) } ?? request
    }
}
