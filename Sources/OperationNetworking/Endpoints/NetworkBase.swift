// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import Synchronization

/// What all requests to one service have in common: where it is, what is always sent, how its answers are read.
///
/// ```swift
/// struct Album: Decodable, Sendable { let title: String }
///
/// func albums(of shop: NetworkBase) -> EndpointOperation<[Album]> {
///     shop.get("albums", ["page": 2])
/// }
/// ```
public struct NetworkBase: Sendable {
    /// The address beneath which the endpoints lie; its own query is sent with each.
    public var url: URL
    /// The session.
    public var session: any NetworkSession = DefaultNetworkSession.standard
    /// Fields that are sent with every request, unless an endpoint has one of the same name.
    ///
    /// Without an `Accept` field each endpoint says which types it can read. A `Content-Type` field goes with bodies that do
    /// not know by themselves what they are, such as plain data; JSON, forms and multipart forms do.
    public var headers: HeaderFields = [:]
    /// What is accepted as a response.
    public var rules = ResponseRules()
    /// How requests are transferred.
    public var options = TransferOptions.standard
    /// Writes queries and forms.
    public var formEncoder = FormEncoder()
    /// Makes what reads JSON; called for each answer.
    public var makeDecoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
    /// Makes what writes JSON; called for each attempt.
    ///
    /// The keys come in alphabetical order, so that the body is the same each time: see ``IdempotencyKey``.
    public var makeEncoder: @Sendable () -> JSONEncoder = { .sorting }
    /// How operations repeat what failed; not at all if nil.
    public var retry: Retry?
    /// The limit on how many requests of the service are sent in a time.
    ///
    /// The default is `nil`, so that the limit of the session applies if it has one.
    ///
    /// Retries and redirects count, too. Bases that share one object share the limit. See ``RateLimit``.
    public var rateLimit: RateLimit?
    /// What operations do while the network is gone; they take no notice if nil.
    public var offline: OfflinePolicy?
    /// Told of each decision about an attempt of the service that failed, on the callback queue.
    public var retryHandler: (@Sendable (RetryEvent) -> Void)?
    /// Told that an operation of the service waits since the network is gone, on the callback queue.
    public var offlineHandler: (@Sendable () -> Void)?
    /// What the operations of the service call on the main actor.
    private(set) var mainActorCallbacks: [MainActorCallbacks.Callback] = []
    /// Whose credentials the requests get: of the first one that covers the place of a request.
    ///
    /// See ``authenticate(by:)``.
    public var realms: [AuthenticationRealm] = []
    /// Where operations are put aside if its rule says so; nowhere if nil.
    public var postponed: PostponedOperations?
    /// Where requests and answers are written down; nowhere if nil.
    public var log: NetworkLog?
    /// Who is told what the operations of the service do.
    public var observers: [any NetworkObserver] = []
    /// The queue on which the handlers of the operations are called, unless an operation has a callback queue of its own.
    ///
    /// The default is `nil`, which leaves the choice to the group, the queue and the process: see `TypedOperation.callbackQueue`.
    public var callbackQueue: DispatchQueue?

    /// Makes a base with the stated defaults.
    public init(_ url: URL) {
        self.url = url
    }

    /// Makes a base and sets it up in one place: a constant, which closures that run elsewhere may use.
    ///
    /// ```swift
    /// func shop(at url: URL) -> NetworkBase {
    ///     NetworkBase(url) { shop in
    ///         shop.headers["X-Api-Key"] = "a key"
    ///         shop.retry = Retry()
    ///     }
    /// }
    /// ```
    public init(_ url: URL, _ setUp: (inout NetworkBase) -> Void) {
        self.init(url)
        setUp(&self)
    }

    /// Calls `body` on the main actor with each decision about an attempt of the service that failed.
    ///
    /// Each call of this method adds a closure, beside the ``retryHandler``.
    public mutating func onMainActor(retry body: @escaping @MainActor (RetryEvent) -> Void) {
        mainActorCallbacks.append { if case .decided(let event) = $1 { body(event) } }
    }

    /// Calls `body` on the main actor with the operation each time one of the service begins to wait for the network.
    ///
    /// Each call of this method adds a closure, beside the ``offlineHandler``.
    public mutating func onMainActor(offline body: @escaping @MainActor (any AnyNetworkOperation) -> Void) {
        mainActorCallbacks.append { if case .waitsForNetwork = $1 { body($0) } }
    }

    /// Makes the operation of an endpoint.
    public func operation<ResultType: Sendable>(for endpoint: Endpoint<ResultType>) -> EndpointOperation<ResultType> {
        EndpointOperation(endpoint, at: self)
    }

    /// The fields of a request whose answer may be of any type.
    var headersForAnyType: HeaderFields {
        var fields = headers
        if !fields.contains("Accept") { fields.add("Accept", "*/*") }
        return fields
    }

    /// The address of a path beneath this one, with a query.
    func address(of path: String, query: [String: (any Sendable)?]) throws(NetworkError) -> URL {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { throw Self.refusal(path) }
        let folder = parts.percentEncodedPath.hasSuffix("/") ? "" : "/"
        let names = path.drop { $0 == "/" }
        if !names.isEmpty {
            // A question mark or a number sign in a path is a part of a name.
            guard let encoded = names.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) else {
                throw Self.refusal(path)
            }
            guard !encoded.split(separator: "/").contains("..") else { throw Self.refusal(path) }
            parts.percentEncodedPath += folder + encoded
        }
        if !query.isEmpty {
            do {
                let text = try formEncoder.encode(query.mapValues { $0 as Any? })
                let known = parts.percentEncodedQuery.map { $0.isEmpty ? "" : "\($0)&" } ?? ""
                // Of nothing but nil there is nothing to be said.
                if !text.isEmpty { parts.percentEncodedQuery = known + text }
            } catch {
                throw NetworkError(code: .invalidURL, phase: .checking, message: "The query: \(error.message)")
            }
        }
        guard let address = parts.url else { throw Self.refusal(path) }
        return address
    }

    private static func refusal(_ path: String) -> NetworkError {
        NetworkError(
            code: .invalidURL, phase: .checking,
            message: "The path cannot be appended to the base. Write it without `..`, and not percent-encoded.")
    }
}

// Requests in one line.
extension NetworkBase {
    /// Asks for something.
    public func get<ResultType: Decodable & Sendable>(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .get(path, query).adding(headers))
    }

    /// Sends a value as JSON, by POST unless you name another method.
    public func send<ResultType: Decodable & Sendable>(
        _ value: some Encodable & Sendable, to path: String, _ query: [String: (any Sendable)?] = [:],
        by method: String = "POST", headers: HeaderFields = [:], as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .sending(method, path, query, json: value).adding(headers))
    }

    /// Sends a body, by POST unless you name another method.
    public func send<ResultType: Decodable & Sendable>(
        body: RequestBody, to path: String, _ query: [String: (any Sendable)?] = [:], by method: String = "POST",
        headers: HeaderFields = [:], as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .sending(method, path, query, body: body).adding(headers))
    }

    /// Deletes something.
    public func delete<ResultType: Decodable & Sendable>(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .delete(path, query).adding(headers))
    }
}

extension NetworkOperation {
    /// Applies what all operations of a service have in common, and returns the operation.
    ///
    /// ```swift
    /// func cover(at url: URL, of shop: NetworkBase) -> NetworkDownloadOperation<URL> {
    ///     NetworkDownloadOperation(url: url).using(shop)
    /// }
    /// ```
    ///
    /// In a subclass, call it after `super.init`. Call it before the operation starts, and set afterwards what differs from
    /// the base. After the start it has no effect.
    ///
    /// - The operation gets the base's ``NetworkBase/rules``, `retry`, `rateLimit`, `offline`, `realms`, `postponed`, `log`,
    ///   `observers`, handlers and callback queue.
    /// - Each request gets the ``NetworkBase/headers`` that it does not have itself, if it goes to the origin of
    ///   ``NetworkBase/url``. A request to another origin gets none, because a header may be a credential. If a hook sends the
    ///   request to another origin, the headers are removed again.
    /// - The session is the base's, unless the operation was made with a session other than `.shared`.
    /// - The ``NetworkBase/options`` count where neither the operation nor the request has options of its own.
    /// - An operation without an evaluator reads JSON with ``NetworkBase/makeDecoder``.
    ///
    /// The path and query of ``NetworkBase/url`` are not used.
    @discardableResult
    public final func using(_ base: NetworkBase) -> Self {
        guard state == .notStarted else {
            OperationDiagnostics.report(
                .timing, by: self, "It was given a base after the start, which has no effect. Call using(_:) before.")
            return self
        }
        var service: OperationKnobs.Service? = OperationKnobs.Service(
            origin: RequestOrigin(of: base.url), headers: base.headers, session: base.session, options: base.options,
            makeDecoder: base.makeDecoder)
        knobs.withLock { swap(&$0.service, &service) }
        hasService.store(true, ordering: .releasing)
        take(base)
        return self
    }

    /// Takes over what all operations of a service have in common.
    func take(_ base: NetworkBase) {
        responseRules = base.rules
        if let queue = base.callbackQueue { setCallbackQueueOfBase(queue) }
        if let log = base.log { networkAttempts.add(log, of: self) }
        for observer in base.observers { networkAttempts.add(observer, of: self) }
        if let retry = base.retry { self.retry = retry }
        if let limit = base.rateLimit { rateLimit = limit }
        if let offline = base.offline { self.offline = offline }
        if let handler = base.retryHandler { retryHandler = handler }
        if let handler = base.offlineHandler { offlineHandler = handler }
        if !base.mainActorCallbacks.isEmpty {
            networkAttempts.teller.mainActorCallbacks(of: self).set(ofBase: base.mainActorCallbacks)
        }
        if !base.realms.isEmpty { realms = base.realms }
        if let list = base.postponed { postponed = list }
    }
}
