// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
// Users of this library also need the operations and the queues.
@_exported import OperationCore
import Synchronization

/// The settings that all requests to a service share, such as the URL, the headers and the rules for responses.
///
/// Create one base for each service, and set its properties in the closure of the initializer. For each request, call a
/// method such as `get` or `send`, and start the returned operation, for example with `run()`:
///
/// ```swift
/// struct Album: Codable, Sendable { let title: String }
///
/// let shop = NetworkBase(URL(string: "https://api.example.com/v1/")!) {
///     $0.headers["X-API-Key"] = "a key"
///     $0.retry = .standard
///     $0.offline = .standard
/// }
/// let albums: [Album] = try await shop.get("albums", ["page": 2]).run()
/// let new = Album(title: "One")
/// let added: Album = try await shop.send(new, to: "albums").run()
/// print(albums.count, added.title)
/// ```
///
/// By default, operations accept the status codes 200 to 299, ignore the state of the network, and do not retry. Most
/// services need some of these changes:
///
/// - Add headers that all requests need, such as an API key, to ``headers``. For a token that expires, call
///   ``authenticate(by:)``.
/// - To repeat failed requests, set ``retry``. To wait while the network is unavailable, set ``offline``.
/// - To change the timeouts of each request, set ``options``.
/// - To decode and encode JSON in another format, for example with snake_case keys, set ``makeDecoder`` and
///   ``makeEncoder``.
/// - In tests, set ``session`` to a session that needs no network.
///
/// When you create an operation, it copies the base. If you change the base later, the change affects only operations
/// that you create afterward. All copies of a base use the same objects, such as the session, the authenticators and
/// the rate limit.
///
/// Guide: `Docs/Guides/NetworkOperations.md`
public struct NetworkBase: Sendable {
    /// The URL of the service, to which operations append the paths of endpoints.
    ///
    /// If this URL has a query, each request to a path of the service contains this query, followed by the query of the
    /// endpoint. A request to a URL that you pass to ``Endpoint/at(_:allowsOtherOrigin:)`` does not contain this query.
    ///
    /// If this URL has a user name or a password, each request to its origin contains both in an `Authorization`
    /// header, unless the request or ``headers`` contain another value.
    public var url: URL {
        get { values.url }
        set { values.url = newValue }
    }
    /// The session that sends the requests.
    ///
    /// The default is ``DefaultNetworkSession/standard``.
    public var session: any NetworkSession {
        get { values.session }
        set { values.session = newValue }
    }
    /// The headers that every request to the service contains.
    ///
    /// A header of an endpoint replaces the headers in this property that have the same name.
    ///
    /// If neither this property nor the endpoint contains an `Accept` header, the request's `Accept` header lists the
    /// content types that the endpoint can decode. A `Content-Type` header in this property applies only to a body
    /// without its own content type, such as plain data. JSON, forms and multipart forms have their own content type. A
    /// request without a body does not contain this header.
    ///
    /// The default is an empty list.
    public var headers: HeaderFields {
        get { values.headers }
        set { values.headers = newValue }
    }
    /// The rules that a response must satisfy, such as the accepted status codes and content types.
    ///
    /// The default rules accept the status codes 200 to 299 and the content types in the `Accept` header of the
    /// request.
    public var rules: ResponseRules {
        get { values.rules ?? ResponseRules() }
        set { values.rules = newValue }
    }
    /// The transfer options of each request, such as its timeouts.
    ///
    /// The default is the default value of each option.
    public var options: TransferOptions {
        get { values.options }
        set { values.options = newValue }
    }
    /// The encoder that creates the text of queries and forms.
    ///
    /// The default is an encoder with the default settings of ``FormEncoder``.
    public var formEncoder: FormEncoder {
        get { values.formEncoder }
        set { values.formEncoder = newValue }
    }
    /// A closure that creates a JSON decoder for each response that an operation decodes from JSON.
    ///
    /// The default closure creates a `JSONDecoder` with its default settings. An operation can call the closure on any
    /// thread.
    public var makeDecoder: @Sendable () -> JSONDecoder {
        get { values.makeDecoder }
        set { values.makeDecoder = newValue }
    }
    /// A closure that creates a JSON encoder each time an operation encodes a request body.
    ///
    /// The default encoder sorts the keys alphabetically, so that every attempt sends the same body. For requests with
    /// an ``IdempotencyKey``, use an encoder that always creates the same bytes for the same value.
    ///
    /// An operation can call the closure on any thread.
    public var makeEncoder: @Sendable () -> JSONEncoder {
        get { values.makeEncoder }
        set { values.makeEncoder = newValue }
    }
    /// The retry behavior of the service's operations.
    ///
    /// The default is `nil`, which disables retries unless the operation's group has a retry behavior.
    public var retry: Retry? {
        get { values.retry }
        set { values.retry = newValue }
    }
    /// The limit on the number of requests to the service in a period of time.
    ///
    /// The default is `nil`, which applies only the session's limit, if the session has one.
    ///
    /// Retries and redirects count as requests. Bases that use the same ``RateLimit`` object share the limit.
    public var rateLimit: RateLimit? {
        get { values.rateLimit }
        set { values.rateLimit = newValue }
    }
    /// The policy that determines the behavior of the service's operations while the network is unavailable.
    ///
    /// The default is `nil`, which makes the operations ignore the state of the network unless their group has an
    /// offline policy.
    public var offline: OfflinePolicy? {
        get { values.offline }
        set { values.offline = newValue }
    }
    /// A closure that an operation of the service calls on its callback queue with each retry decision.
    ///
    /// The default is `nil`.
    public var retryHandler: (@Sendable (RetryEvent) -> Void)? {
        get { values.retryHandler }
        set { values.retryHandler = newValue }
    }
    /// A closure that an operation of the service calls on its callback queue when the operation begins to wait for the
    /// network.
    ///
    /// The default is `nil`.
    public var offlineHandler: (@Sendable () -> Void)? {
        get { values.offlineHandler }
        set { values.offlineHandler = newValue }
    }
    /// The realms of the authenticators that can add a credential to requests to the service.
    package var realms: [AuthenticationRealm] {
        get { values.realms }
        set { values.realms = newValue }
    }
    /// The list of paused operations, with a rule that decides which operations of the service to pause after a failed
    /// attempt.
    ///
    /// The default is `nil`, which disables pauses after failed attempts.
    public var postponed: PostponedOperations? {
        get { values.postponed }
        set { values.postponed = newValue }
    }
    /// The log that records the requests to the service and the responses.
    ///
    /// The default is `nil`, which disables the log.
    public var log: NetworkLog? {
        get { values.log }
        set { values.log = newValue }
    }
    /// The observers that receive the network events of the service's operations.
    ///
    /// The default is an empty array.
    public var observers: [any NetworkObserver] {
        get { values.observers }
        set { values.observers = newValue }
    }
    /// The dispatch queue on which the service's operations call their handlers, unless an operation has its own
    /// callback queue.
    ///
    /// The default is `nil`, which uses the callback queue of the operation's group or queue, or the default callback
    /// queue of the process. For details, see `TypedOperation.callbackQueue`.
    public var callbackQueue: DispatchQueue? {
        get { values.callbackQueue }
        set { values.callbackQueue = newValue }
    }

    fileprivate struct Values {
        var url: URL {
            didSet { (home, origin, account) = (Self.home(of: url), RequestOrigin(of: url), Self.account(of: url)) }
        }
        /// The URL with a slash at its end, or `nil` if the URL needs a parser.
        private(set) var home: String?
        private(set) var origin: RequestOrigin?
        /// The `Authorization` header for the user name and the password of the URL, or `nil` if it has neither.
        private(set) var account: String?
        var session: any NetworkSession = DefaultNetworkSession.standard
        var headers: HeaderFields = [:]
        // The operations of the service share the object with the rules.
        @Boxed var rules: ResponseRules?
        var options = TransferOptions.standard
        var formEncoder = FormEncoder()
        var makeDecoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
        var makeEncoder: @Sendable () -> JSONEncoder = { .sorting }
        var retry: Retry?
        var rateLimit: RateLimit?
        var offline: OfflinePolicy?
        var retryHandler: (@Sendable (RetryEvent) -> Void)?
        var offlineHandler: (@Sendable () -> Void)?
        var realms: [AuthenticationRealm] = []
        var postponed: PostponedOperations?
        var log: NetworkLog?
        var observers: [any NetworkObserver] = []
        var callbackQueue: DispatchQueue?
        /// The closures that the operations of the service call on the main actor.
        var mainActorCallbacks: [MainActorCallbacks.Callback] = []

        init(url: URL) {
            (self.url, home, origin) = (url, Self.home(of: url), RequestOrigin(of: url))
            account = Self.account(of: url)
        }

        private static func account(of url: URL) -> String? {
            guard url.absoluteString.utf8.contains(UInt8(ascii: "@")) else { return nil }
            return try? RequestChecks(method: "GET", url: url).checkedURL().credentials
        }

        private static func home(of url: URL) -> String? {
            let text = url.absoluteString
            guard url.baseURL == nil, RequestOrigin(ofPlain: text) != nil, !text.utf8.contains(UInt8(ascii: "?")) else {
                return nil
            }
            return text.utf8.last == UInt8(ascii: "/") ? text : text + "/"
        }
    }

    // Each operation has a copy of its base, so a copy must cost little.
    @CopyOnWrite fileprivate var values: Values

    /// Creates a base with the URL of a service and settings that you change in a closure.
    ///
    /// This initializer lets you store the base in a constant that closures on other threads can capture.
    ///
    /// ```swift
    /// func shop(at url: URL) -> NetworkBase {
    ///     NetworkBase(url) { shop in
    ///         shop.headers["X-Api-Key"] = "a key"
    ///         shop.retry = Retry()
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - url: The URL of the service.
    ///   - setUp: A closure that changes the settings. The initializer calls the closure on the current thread before
    ///     it returns. The default closure changes nothing.
    public init(_ url: URL, _ setUp: (inout NetworkBase) -> Void = { _ in }) {
        values = Values(url: url)
        setUp(&self)
    }

    /// Adds a closure that an operation of the service calls on the main actor with each retry decision.
    ///
    /// Operations also call the ``retryHandler`` and the closures that you added earlier.
    ///
    /// - Parameter body: A closure that receives the decision about a failed attempt.
    public mutating func onMainActor(retry body: @escaping @MainActor (RetryEvent) -> Void) {
        values.mainActorCallbacks.append { if case .decided(let event) = $1 { body(event) } }
    }

    /// Adds a closure that an operation of the service calls on the main actor when the operation begins to wait for
    /// the network.
    ///
    /// Operations also call the ``offlineHandler`` and the closures that you added earlier.
    ///
    /// - Parameter body: A closure that receives the operation that waits for the network.
    public mutating func onMainActor(offline body: @escaping @MainActor (any AnyNetworkOperation) -> Void) {
        values.mainActorCallbacks.append { if case .waitsForNetwork = $1 { body($0) } }
    }

    /// The settings that the requests of the service share.
    var service: NetworkOperationOptions.Service {
        NetworkOperationOptions.Service(
            origin: values.origin, headers: headersAtOrigin, session: session, options: options,
            makeDecoder: makeDecoder)
    }

    /// The headers, and the user name and the password of the URL, for requests to the origin of the base.
    var headersAtOrigin: HeaderFields {
        guard let account = values.account, !headers.contains("Authorization") else { return headers }
        var all = headers
        all.add("Authorization", account)
        return all
    }

    /// Creates an operation that sends an endpoint's request to the service.
    ///
    /// - Parameter endpoint: The request to send, and the closure that decodes the result.
    public func operation<ResultType: Sendable>(for endpoint: Endpoint<ResultType>) -> EndpointOperation<ResultType> {
        EndpointOperation(endpoint, at: self)
    }

    /// Returns the URL of a path under the base URL, with a query.
    func address(of path: String, query: [String: (any Sendable)?]) throws(NetworkError) -> URL {
        if query.isEmpty, let address = plainAddress(of: path) { return address }
        try Self.check(path)
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { throw Self.refusal(path) }
        let folder = parts.percentEncodedPath.hasSuffix("/") ? "" : "/"
        let names = path.drop { $0 == "/" }
        if !names.isEmpty {
            // A question mark or a number sign in a path is part of a name.
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

    /// Returns the URL of a path if neither the path nor the base URL needs a parser, as in most requests.
    private func plainAddress(of path: String) -> URL? {
        guard let home = values.home else { return nil }
        let names = path.utf8.drop { $0 == UInt8(ascii: "/") }
        // A path with two dots may leave the base, which the full check refuses.
        var (wasDot, needsParser) = (false, names.isEmpty)
        for byte in names {
            switch byte {
            case 0x2F, 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A, 0x2D, 0x7E: wasDot = false
            case 0x2E:
                if wasDot { needsParser = true }
                wasDot = true
            default: needsParser = true
            }
        }
        guard !needsParser else { return nil }
        return URL(string: home + Substring(names))
    }

    /// Returns the query of a URL with values added at its end.
    private func added(
        _ query: [String: (any Sendable)?], to known: String?
    ) throws(NetworkError) -> String? {
        do {
            let text = try formEncoder.text(of: query.mapValues { $0 as Any? })
            // A query of only `nil` values encodes to an empty text.
            if text.isEmpty { return known }
            return (known.map { $0.isEmpty ? "" : "\($0)&" } ?? "") + text
        } catch {
            throw NetworkError(
                code: .invalidURL, phase: .checking,
                message: "The query cannot be encoded. \(error.message)")
        }
    }

    /// Throws an error if the path contains a URL, and reports a notice if the path contains a query.
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
                    "The path contains “\(scheme)”, but a path is always appended to the base. Pass a URL instead of a "
                    + "string, as in get(url) and download(url), or use at(_:) of the endpoint.")
        }
        if hasQuestionMark {
            let name = LogRedaction.secrets.withoutSecrets(inPath: String(path.prefix { $0 != "?" })).quoted()
            OperationDiagnostics.report(
                .queryInPath, by: "NetworkBase",
                "The path “\(name)?…” contains a question mark, which is sent as %3F and does not begin a query. "
                    + "To send a query, pass it in the query parameter, as in get(\"albums\", [\"page\": 2]).")
        }
    }

    /// Returns the address of a URL that was found on this service, with values added to its query.
    ///
    /// - Returns: The address, and a Boolean value that indicates whether its origin differs from that of the base.
    func address(
        of reference: URL, adding query: [String: (any Sendable)?], allowsOtherOrigin: Bool
    ) throws(NetworkError) -> (url: URL, isElsewhere: Bool) {
        func refusal(_ code: NetworkError.Code, _ message: String) -> NetworkError {
            NetworkError(code: code, phase: .checking, message: message)
        }
        guard let home = WebAddress(url) else {
            throw refusal(.invalidURL, "The URL of the base is not a web address. Begin it with https:// and a host.")
        }
        let text = reference.absoluteString
        // A reference is appended to the whole path of the base, as a path is.
        let isPath = !text.hasPrefix("?") && !text.hasPrefix("#")
        let folder = isPath && !home.path.hasSuffix("/") ? home.origin.description + home.path + "/" : home.text
        let address: WebAddress
        do {
            address = try WebAddress(text, foundAt: WebAddress(folder))
        } catch {
            // A server may not name the zone of an IPv6 address. A URL with a zone is allowed if it is at the origin of
            // the base.
            if let own = WebAddress(reference), own.origin == home.origin {
                address = own
            } else if case .scheme(let scheme) = error {
                throw refusal(
                    .unsupportedScheme,
                    "The scheme “\(scheme.quoted(limit: 40))” is not supported. Use http or https.")
            } else {
                throw refusal(.invalidURL, "The URL is not valid: check its host, its port and its characters.")
            }
        }
        let isElsewhere = address.origin != home.origin
        guard allowsOtherOrigin || !isElsewhere else {
            throw refusal(
                .otherOrigin,
                "The URL is at \(address.origin), but the base is at \(home.origin). If the request may go there, pass "
                    + "allowsOtherOrigin: true. The request is then sent without the headers and the credentials of "
                    + "the base.")
        }
        let known = query.isEmpty ? address.query : try added(query, to: address.query)
        guard let url = URL(string: address.origin.description + address.path + (known.map { "?" + $0 } ?? "")) else {
            throw refusal(.invalidURL, "The URL is not valid. Percent-encode its special characters.")
        }
        return (url, isElsewhere)
    }

    private static func refusal(_ path: String) -> NetworkError {
        NetworkError(
            code: .invalidURL, phase: .checking,
            message: "The path cannot be appended to the base. Write it without `..` and without percent-encoding.")
    }
}

// Create the operation of a request in one line.
extension NetworkBase {
    /// Creates an operation that sends a GET request to a path of the service and decodes the response.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which OperationKit percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - headers: The headers of the request, which replace headers of the base that have the same name. The default
    ///     is an empty list.
    ///   - type: The type of the result. By default, the compiler infers the type from the context.
    public func get<ResultType: Decodable & Sendable>(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .get(path, query).adding(headers))
    }

    /// Creates an operation that sends a GET request to a URL of the service, such as the next page of a list.
    ///
    /// ```swift
    /// func page(at url: URL, of shop: NetworkBase) -> EndpointOperation<[String]> {
    ///     shop.get(url)
    /// }
    /// ```
    ///
    /// The operation ignores the query of ``NetworkBase/url``. To send a request with another method or with a body,
    /// use ``Endpoint/at(_:allowsOtherOrigin:)``. The documentation of that method also lists the headers that the
    /// operation sends to another origin.
    ///
    /// - Parameters:
    ///   - url: An absolute URL, or a URL that is relative to ``NetworkBase/url``.
    ///   - allowsOtherOrigin: A Boolean value that indicates whether the scheme, host or port of the URL can differ
    ///     from that of the base URL. The default is `false`. If the value is `false` and the origin of the URL
    ///     differs, the operation fails with ``NetworkError/Code/otherOrigin`` before it sends a request.
    ///   - headers: The headers of the request, which the operation also sends to another origin. The default is an
    ///     empty list.
    ///   - type: The type of the result. By default, the compiler infers the type from the context.
    public func get<ResultType: Decodable & Sendable>(
        _ url: URL, allowsOtherOrigin: Bool = false, headers: HeaderFields = [:],
        as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .get("").at(url, allowsOtherOrigin: allowsOtherOrigin).adding(headers))
    }

    /// Creates an operation that sends a value as JSON to a path of the service and decodes the response.
    ///
    /// - Parameters:
    ///   - value: The value to encode.
    ///   - path: The unencoded path, which OperationKit percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - method: The HTTP method. The default is `POST`.
    ///   - headers: The headers of the request, which replace headers of the base that have the same name. The default
    ///     is an empty list.
    ///   - type: The type of the result. By default, the compiler infers the type from the context.
    public func send<ResultType: Decodable & Sendable>(
        _ value: some Encodable & Sendable, to path: String, _ query: [String: (any Sendable)?] = [:],
        by method: String = "POST", headers: HeaderFields = [:], as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .sending(method, path, query, json: value).adding(headers))
    }

    /// Creates an operation that sends a body to a path of the service and decodes the response.
    ///
    /// - Parameters:
    ///   - body: The body to send.
    ///   - path: The unencoded path, which OperationKit percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - method: The HTTP method. The default is `POST`.
    ///   - headers: The headers of the request, which replace headers of the base that have the same name. The default
    ///     is an empty list.
    ///   - type: The type of the result. By default, the compiler infers the type from the context.
    public func send<ResultType: Decodable & Sendable>(
        body: RequestBody, to path: String, _ query: [String: (any Sendable)?] = [:], by method: String = "POST",
        headers: HeaderFields = [:], as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .sending(method, path, query, body: body).adding(headers))
    }

    /// Creates an operation that sends a DELETE request to a path of the service and decodes the response.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which OperationKit percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - headers: The headers of the request, which replace headers of the base that have the same name. The default
    ///     is an empty list.
    ///   - type: The type of the result. By default, the compiler infers the type from the context.
    public func delete<ResultType: Decodable & Sendable>(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        as type: ResultType.Type = ResultType.self
    ) -> EndpointOperation<ResultType> {
        operation(for: .delete(path, query).adding(headers))
    }
}

extension NetworkOperation {
    /// Applies the settings of a service to the operation and returns the operation.
    ///
    /// ```swift
    /// func cover(at url: URL, of shop: NetworkBase) -> NetworkDownloadOperation<URL> {
    ///     NetworkDownloadOperation(url: url).using(shop)
    /// }
    /// ```
    ///
    /// Call this method before the operation starts. After the operation starts, the method has no effect. To override
    /// a setting of the service, set the property of the operation after this call. In a subclass, call the method
    /// after `super.init`. The method has these effects:
    ///
    /// - The operation copies the base's ``NetworkBase/rules``. The operation also copies `retry`, `rateLimit`,
    ///   `offline`, `postponed`, `log`, `observers`, the authenticators, the handlers and the callback queue, if you
    ///   have set them in the base.
    /// - The operation adds missing ``NetworkBase/headers`` to each request to the origin of ``NetworkBase/url``. The
    ///   operation does not send these headers to another origin, even if a hook or a
    ///   ``PostponedOperations/Change`` changes the URL of the request, because a header might be a credential.
    /// - An authenticator without ``AuthenticationOptions/origins`` adds its credential only to requests to the origin
    ///   of ``NetworkBase/url``. If the operation calls an endpoint of a base with another origin, the authenticator
    ///   adds no credential.
    /// - The operation uses the session of the base, unless you created the operation with another session, such as
    ///   `.shared`.
    /// - The operation uses the ``NetworkBase/options`` of the base, unless you set options for the operation or the
    ///   request.
    /// - An operation without an evaluator decodes JSON with ``NetworkBase/makeDecoder``.
    ///
    /// The operation ignores the path and the query of ``NetworkBase/url``.
    ///
    /// - Parameter base: The settings of the service.
    @discardableResult
    public final func using(_ base: NetworkBase) -> Self {
        guard maySet("base") else { return self }
        var service: NetworkOperationOptions.Service? = base.service
        settings.withLock { swap(&$0.service, &service) }
        hasService.store(true, ordering: .releasing)
        take(base)
        return self
    }

    /// Copies the settings that all operations of a service share.
    func take(_ base: NetworkBase) {
        setRules(base.values.$rules)
        if let queue = base.callbackQueue { setCallbackQueueOfBase(queue) }
        if let log = base.log { networkAttempts.add(log, of: self) }
        for observer in base.observers { networkAttempts.add(observer, of: self) }
        if let retry = base.retry { self.retry = retry }
        if let limit = base.rateLimit { rateLimit = limit }
        if let offline = base.offline { self.offline = offline }
        if let handler = base.retryHandler { retryHandler = handler }
        if let handler = base.offlineHandler { offlineHandler = handler }
        if !base.values.mainActorCallbacks.isEmpty {
            networkAttempts.reporter.mainActorCallbacks(of: self).set(ofBase: base.values.mainActorCallbacks)
        }
        if !base.realms.isEmpty { realms = base.realms }
        if let list = base.postponed { postponed = list }
    }
}

// Responses that are read piece by piece, without an operation. These requests use the URL, headers, session, rules,
// options and rate limit of the base. Credentials of realms, retry, waiting for the network and the log are not used.
extension NetworkBase {
    /// Sends a GET request to a path of the service and returns a stream as soon as the response headers arrive.
    ///
    /// ```swift
    /// func follow(_ shop: NetworkBase) async throws {
    ///     let log = try await shop.stream("orders/log", ["since": 7])
    ///     for try await line in log.lines {
    ///         print(line)
    ///     }
    /// }
    /// ```
    ///
    /// The ``rules`` of the base apply to the status, the content type and error bodies.
    /// ``ResponseRules/maximumBytesInMemory`` does not apply, because the stream buffers at most about 64 KiB. The
    /// settings for operations, such as authenticators, ``retry``, ``offline`` and ``log``, have no effect.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which OperationKit percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - headers: The headers of the request, which replace headers of the base that have the same name. The default
    ///     is an empty list.
    /// - Throws: A ``NetworkError`` if the request is not valid, if the transfer fails, or if the rules reject the
    ///   response.
    public func stream(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:]
    ) async throws -> ResponseStream {
        try await stream(Endpoint<Data>.get(path, query).adding(headers))
    }

    /// Sends an endpoint's request and returns a stream as soon as the response headers arrive.
    ///
    /// The stream provides the body without calling the endpoint's ``Endpoint/decode`` closure. For details, see
    /// ``stream(_:_:headers:)``.
    ///
    /// - Parameter endpoint: The endpoint whose request to send.
    /// - Throws: A ``NetworkError`` if the request is not valid, if the transfer fails, or if the rules reject the
    ///   response.
    public func stream<ResultType: Sendable>(_ endpoint: Endpoint<ResultType>) async throws -> ResponseStream {
        try await sessionOfStreams.stream(limited(endpoint.request(at: self)), rules: rules)
    }

    /// Returns the server-sent events that the service sends in response to a GET request to a path of the service.
    ///
    /// ```swift
    /// func watch(_ shop: NetworkBase) async throws {
    ///     for try await event in try shop.events("orders", silence: .seconds(45)) {
    ///         print(event.kind, event.data)
    ///     }
    /// }
    /// ```
    ///
    /// For each connection, the sequence uses the URL, the headers, the session, the options and the rate limit of the
    /// base. The settings for operations, such as ``retry`` and ``offline``, have no effect. For the accepted status
    /// and content type, see ``ServerSentEvents``.
    ///
    /// - Parameters:
    ///   - path: The unencoded path, which OperationKit percent-encodes and appends to ``NetworkBase/url``.
    ///   - query: The query parameters, encoded as described in ``Endpoint/query``. The default is an empty dictionary.
    ///   - headers: The headers of the request, which replace headers of the base that have the same name. The default
    ///     is an empty list.
    ///   - silence: The time without data after which the sequence opens a new connection. The default is `nil`, which
    ///     applies the request's ``TransferTimeouts/idle`` timeout. If that timeout has its default value, the time is
    ///     not limited.
    /// - Throws: A ``NetworkError`` if the request is not valid.
    public func events(
        _ path: String, _ query: [String: (any Sendable)?] = [:], headers: HeaderFields = [:],
        silence: Duration? = nil
    ) throws -> ServerSentEvents {
        try events(Endpoint<Data>.get(path, query).adding(headers), silence: silence)
    }

    /// Returns the server-sent events that the service sends in response to an endpoint's request.
    ///
    /// For details, see ``events(_:_:headers:silence:)``.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint whose request the sequence sends for each connection. The sequence does not use the
    ///     ``Endpoint/decode`` closure.
    ///   - silence: The time without data after which the sequence opens a new connection. The default is `nil`, which
    ///     applies the request's ``TransferTimeouts/idle`` timeout. If that timeout has its default value, the time is
    ///     not limited.
    /// - Throws: A ``NetworkError`` if the request is not valid.
    public func events<ResultType: Sendable>(
        _ endpoint: Endpoint<ResultType>, silence: Duration? = nil
    ) throws -> ServerSentEvents {
        ServerSentEvents(limited(try endpoint.request(at: self)), silence: silence, session: sessionOfStreams)
    }

    /// The session that sends the requests of streams, which respects the rate limit of the base.
    private var sessionOfStreams: any NetworkSession {
        let session = session.followingRedirects
        // Only an exchange waits for the limit that a request carries.
        guard rateLimit != nil, session.exchange == nil else { return session }
        var configuration = ExchangeConfiguration()
        configuration.redirects = .stop
        return ExchangeSession(over: session, configuration: configuration)
    }

    /// Returns a request that waits for the rate limit of the base before the session sends it.
    private func limited(_ request: NetworkRequest) -> NetworkRequest {
        rateLimit.map { request.with(RatePass($0)) } ?? request
    }
}

extension NetworkBase {
    /// Adds an authenticator, which adds its credential to requests to the service.
    ///
    /// If you add several authenticators, a request gets the credential of the first one that applies to the request's
    /// origin. A base without authenticators adds no credentials, unless the operation's group has authenticators.
    ///
    /// - Parameter authenticator: The authenticator to add.
    public mutating func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        realms.append(authenticator.realm)
    }
}
