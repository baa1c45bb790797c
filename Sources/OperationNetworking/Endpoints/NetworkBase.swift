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

    /// What the requests of the service have in common.
    var service: OperationKnobs.Service {
        OperationKnobs.Service(
            origin: RequestOrigin(of: url), headers: headers, session: session, options: options,
            makeDecoder: makeDecoder)
    }

    /// Makes the operation of an endpoint.
    public func operation<ResultType: Sendable>(for endpoint: Endpoint<ResultType>) -> EndpointOperation<ResultType> {
        EndpointOperation(endpoint, at: self)
    }

    /// The address of a path beneath this one, with a query.
    func address(of path: String, query: [String: (any Sendable)?]) throws(NetworkError) -> URL {
        try Self.check(path)
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
        if !query.isEmpty { parts.percentEncodedQuery = try added(query, to: parts.percentEncodedQuery) }
        guard let address = parts.url else { throw Self.refusal(path) }
        return address
    }

    /// The query of a URL with values added at its end.
    private func added(
        _ query: [String: (any Sendable)?], to known: String?
    ) throws(NetworkError) -> String? {
        do {
            let text = try formEncoder.encode(query.mapValues { $0 as Any? })
            // Of nothing but nil there is nothing to be said.
            if text.isEmpty { return known }
            return (known.map { $0.isEmpty ? "" : "\($0)&" } ?? "") + text
        } catch {
            throw NetworkError(code: .invalidURL, phase: .checking, message: "The query: \(error.message)")
        }
    }

    /// Refuses a path that contains a URL, and reports a path that contains a query.
    private static func check(_ path: String) throws(NetworkError) {
        var (hasColon, hasQuestionMark) = (false, false)
        for byte in path.utf8 {
            if byte == UInt8(ascii: ":") { hasColon = true }
            if byte == UInt8(ascii: "?") { hasQuestionMark = true }
        }
        if hasColon, let scheme = ["http://", "https://"].first(where: path.asciiLowercased.contains) {
            throw NetworkError(
                code: .invalidURL, phase: .checking,
                message:
                    "The path contains “\(scheme)”, and a path is always appended to the base. Pass a URL instead of a "
                    + "string, as in get(url) and download(url), or use at(_:) of the endpoint.")
        }
        if hasQuestionMark {
            let name = LogRedaction.secrets.withoutSecrets(inPath: String(path.prefix { $0 != "?" })).quoted()
            OperationDiagnostics.report(
                .queryInPath, by: "NetworkBase",
                "The path “\(name)?…” contains a question mark, which is sent as %3F and begins no query. If you mean a "
                    + "query, pass it in the query parameter, as in get(\"albums\", [\"page\": 2]).")
        }
    }

    /// The address of a URL that was found on this service, with values added to its query.
    ///
    /// - Returns: The address, and whether it is at another origin than the base.
    func address(
        of reference: URL, adding query: [String: (any Sendable)?], allowsOtherOrigin: Bool
    ) throws(NetworkError) -> (url: URL, isElsewhere: Bool) {
        func refusal(_ code: NetworkError.Code, _ message: String) -> NetworkError {
            NetworkError(code: code, phase: .checking, message: message)
        }
        guard let home = WebAddress(url) else {
            throw refusal(.invalidURL, "The URL of the base is no web address. Begin it with https:// and a host.")
        }
        let text = reference.absoluteString
        // References are appended to the whole path of the base, as paths are.
        let isPath = !text.hasPrefix("?") && !text.hasPrefix("#")
        let folder = isPath && !home.path.hasSuffix("/") ? home.origin.description + home.path + "/" : home.text
        let address: WebAddress
        do {
            address = try WebAddress(text, foundAt: WebAddress(folder))
        } catch {
            // The zone of an IPv6 address, which no server may name, is allowed if it is the base's own.
            if let own = WebAddress(reference), own.origin == home.origin {
                address = own
            } else if case .scheme(let scheme) = error {
                throw refusal(.unsupportedScheme, "Only http and https can be sent, not “\(scheme.quoted(limit: 40))”.")
            } else {
                throw refusal(.invalidURL, "The URL is not valid: its host, its port or a character is wrong.")
            }
        }
        let isElsewhere = address.origin != home.origin
        guard allowsOtherOrigin || !isElsewhere else {
            throw refusal(
                .otherOrigin,
                "The URL is at \(address.origin), and the base is at \(home.origin). If the request may go there, pass "
                    + "allowsOtherOrigin: true. It is then sent without the headers and the credentials of the base.")
        }
        let known = query.isEmpty ? address.query : try added(query, to: address.query)
        guard let url = URL(string: address.origin.description + address.path + (known.map { "?" + $0 } ?? "")) else {
            throw refusal(.invalidURL, "The URL is not valid. Write it percent-encoded.")
        }
        return (url, isElsewhere)
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

    /// Sends a GET request to a URL of the service, such as the URL of the next page.
    ///
    /// ```swift
    /// func page(at url: URL, of shop: NetworkBase) -> EndpointOperation<[String]> {
    ///     shop.get(url)
    /// }
    /// ```
    ///
    /// The query of the base is not added. See ``Endpoint/at(_:allowsOtherOrigin:)`` for what is sent to another origin, and
    /// for requests with another method or a body.
    ///
    /// - Parameters:
    ///   - url: The URL, absolute or relative to the base.
    ///   - allowsOtherOrigin: Whether the URL may have another scheme, host or port than the base. The default is `false`,
    ///     which lets the operation fail with ``NetworkError/Code/otherOrigin`` in this case, before anything is sent.
    ///   - headers: Headers of this request. They are sent to any origin.
    ///   - type: The type of the result.
    public func get<ResultType: Decodable & Sendable>(
        _ url: URL, allowsOtherOrigin: Bool = false, headers: HeaderFields = [:],
        as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .get("").at(url, allowsOtherOrigin: allowsOtherOrigin).adding(headers))
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
    /// - A realm without ``AuthenticationOptions/origins`` gives its credential only to the origin of ``NetworkBase/url``.
    /// - The session is the base's, unless the operation was made with a session. `.shared` counts as one.
    /// - The ``NetworkBase/options`` count where neither the operation nor the request has options of its own.
    /// - An operation without an evaluator reads JSON with ``NetworkBase/makeDecoder``.
    ///
    /// The path and query of ``NetworkBase/url`` are not used.
    @discardableResult
    public final func using(_ base: NetworkBase) -> Self {
        guard maySet("base") else { return self }
        var service: OperationKnobs.Service? = base.service
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
