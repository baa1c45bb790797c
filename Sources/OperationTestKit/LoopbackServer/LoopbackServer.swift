// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An HTTP/1.1 server for tests that listens only on the local computer and can simulate server failures.
///
/// A test defines the responses with closures and examines the requests afterward:
///
/// ```swift
/// import OperationTestKit
///
/// let server = try LoopbackServer()
/// server.route("GET", "/greeting") { _ in .text("Hello") }
/// server.route("POST", "/broken") { _ in .json("{}").cut(at: 40, by: .reset) }
///
/// // … let the code under test talk to server.url("/greeting") …
///
/// let requests = await server.requests(atLeast: 1)
/// print(requests[0]["Accept"] ?? "none", server.counts.connections)
/// ```
///
/// The server calls the closures on its own thread. A closure must return quickly, because the server cannot handle
/// other connections during the call. To delay a response, use a step such as ``LoopbackStep/stall(until:)`` or
/// ``LoopbackStep/pause(_:)``. The server stops when you release it.
///
/// Guide: `Docs/Guides/Testing.md`
public final class LoopbackServer: Sendable {
    /// The addresses on which the server listens, including the ports that the system assigned.
    package let addresses: [LoopbackAddress]

    private let journal: LoopbackJournal
    private let routes = LoopbackRoutes()
    private let mailbox: LoopbackInbox
    private let ended = Gate()

    /// Creates and starts a server.
    ///
    /// - Parameter options: The options for the server. By default, the server listens on a free port on 127.0.0.1.
    /// - Throws: A ``LoopbackServerError`` if the server cannot listen on an address.
    public init(_ options: Options = Options()) throws(LoopbackServerError) {
        let listeners = try LoopbackListeners(options)
        guard let mailbox = LoopbackInbox() else {
            listeners.close()
            throw LoopbackServerError(EMFILE, options.addresses.first ?? .ipv4)
        }
        addresses = listeners.addresses
        journal = LoopbackJournal(keptRequests: options.keptRequests)
        self.mailbox = mailbox
        let (journal, routes, ended) = (journal, routes, ended)
        let thread = Thread {
            LoopbackLoop(options, listeners, mailbox, routes, journal).run()
            ended.open()
        }
        thread.name = "LoopbackServer"
        thread.start()
    }

    deinit { stop() }

    /// The port on which the server listens.
    public var port: UInt16 { addresses.first { $0.port != 0 }?.port ?? 0 }

    /// Returns the URL of a request target on the server.
    ///
    /// If the target is not valid, the program stops.
    ///
    /// - Parameter target: The percent-encoded path and query, which begin with `/`. The default is `/`.
    public func url(_ target: String = "/") -> URL {
        url(target, at: addresses.first { $0.port != 0 } ?? .ipv4)
    }

    /// Returns the URL of a request target at one of the server's addresses.
    ///
    /// If the target is not valid, the program stops.
    ///
    /// - Parameters:
    ///   - target: The percent-encoded path and query, which begin with `/`. The default is `/`.
    ///   - address: An IP address from ``addresses``.
    package func url(_ target: String = "/", at address: LoopbackAddress) -> URL {
        guard let url = URL(string: "http://\(address)\(target)") else {
            preconditionFailure(
                "\(target) is not a valid target of a URL. Begin it with a slash, and percent-encode it.")
        }
        return url
    }

    /// Sets the response to requests with a given method and path.
    ///
    /// The server calls the closure after it has received the whole request. If several routes match a request, the
    /// server uses the route that you added last. If no route matches, the server responds with the status code 404.
    ///
    /// - Parameters:
    ///   - method: The method of the requests. A route for GET also applies to HEAD.
    ///   - path: The path without a query. A `*` at the end matches any text.
    ///   - answer: A closure that returns the response. The server calls the closure on its thread.
    public func route(
        _ method: String, _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        routes.add(method, path, early: false, answer)
    }

    /// Sets the response to requests for a given path, regardless of their method.
    ///
    /// The server calls the closure after it has received the whole request.
    ///
    /// - Parameters:
    ///   - path: The path without a query. A `*` at the end matches any text.
    ///   - answer: A closure that returns the response. The server calls the closure on its thread.
    public func route(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        routes.add(nil, path, early: false, answer)
    }

    /// Sets a series of responses to requests with a given method and path.
    ///
    /// Each request receives the next response in the series. At the end of the series, the server repeats the last
    /// response.
    ///
    /// ```swift
    /// import OperationTestKit
    ///
    /// let server = try LoopbackServer()
    /// server.route("GET", "/songs", inTurn: .status(503), .reset, .json("[]"))
    /// ```
    ///
    /// - Parameters:
    ///   - method: The method of the requests, such as `GET`.
    ///   - path: The path without a query. A `*` at the end matches any text.
    ///   - first: The response to the first request.
    ///   - others: The responses to the following requests, in order.
    public func route(_ method: String, _ path: String, inTurn first: LoopbackAnswer, _ others: LoopbackAnswer...) {
        let turns = AnswersInTurn(first, others)
        route(method, path) { _ in turns.next() }
    }

    /// Sets a response that can begin before the request body has arrived, for requests with a given method and path.
    ///
    /// The server calls the closure as soon as it has received the headers of a request. The server reads the body
    /// while it responds. To wait for the body, use a step such as ``LoopbackStep/awaitBody``.
    ///
    /// - Parameters:
    ///   - method: The method of the requests. A route for GET also applies to HEAD.
    ///   - path: The path without a query. A `*` at the end matches any text.
    ///   - answer: A closure that returns the response. The server calls the closure on its thread.
    public func routeEarly(
        _ method: String, _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        routes.add(method, path, early: true, answer)
    }

    /// Sets a response that can begin before the request body has arrived, for requests with a given path and any
    /// method.
    ///
    /// The server calls the closure as soon as it has received the headers of a request.
    ///
    /// - Parameters:
    ///   - path: The path without a query. A `*` at the end matches any text.
    ///   - answer: A closure that returns the response. The server calls the closure on its thread.
    package func routeEarly(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        routes.add(nil, path, early: true, answer)
    }

    /// Sets the steps that the server performs on each new connection before it reads a request.
    ///
    /// If the steps leave the connection open, the server then responds to requests as usual.
    ///
    /// - Parameter script: A closure that receives the number of the connection, starting at 0, and returns the steps,
    ///   or `nil` to perform no steps. The server calls the closure on its thread.
    package func greet(_ script: @escaping @Sendable (Int) -> LoopbackAnswer?) {
        routes.greeting = script
    }

    /// Stops the server and closes all connections, but does not wait until the server's thread has ended.
    public func stop() { mailbox.post(.stop) }

    /// Stops the server, closes all connections, and waits until the server's thread has ended.
    public func stopped() async {
        stop()
        await ended.passage()
    }

    /// Sets whether the server accepts new connections.
    ///
    /// If the value is `false`, connections that the server has not accepted yet wait in the system. A client that has
    /// just connected may have such a connection. After a response, the server has accepted it.
    package func setAccepting(_ accepts: Bool) { mailbox.post(.setAccepting(accepts)) }

    /// Ends all connections that have no request or response in progress, as a server does after a keep-alive timeout.
    ///
    /// By default, the server closes the connections.
    package func endIdleConnections(by ending: LoopbackEnding = .close) {
        mailbox.post(.endConnections(ending, idleOnly: true))
    }

    /// Ends all connections but continues to accept new connections.
    ///
    /// The server discards the rest of each response. If `ending` leaves a connection open, the server sends nothing
    /// more on the connection, but still reads from the client.
    ///
    /// - Parameter ending: The way in which the server ends the connections. The default is ``LoopbackEnding/reset``.
    public func endConnections(by ending: LoopbackEnding = .reset) {
        mailbox.post(.endConnections(ending, idleOnly: false))
    }
}

extension LoopbackServer {
    /// The most recent 10,000 requests that the server received, including requests that are still incomplete.
    public var requests: [LoopbackRequest] { journal.requests }

    /// The first 1,000 violations of HTTP/1.1 by clients.
    package var violations: [LoopbackViolation] { journal.violations }

    /// The current numbers of connections, requests and other events.
    public var counts: LoopbackCounts { journal.counts }

    /// Waits until at least `count` requests have arrived completely and returns the recorded requests.
    ///
    /// If the current task is canceled, the method returns the requests that have arrived so far.
    ///
    /// - Parameter count: The number of complete requests to wait for, including earlier requests.
    public func requests(atLeast count: Int) async -> [LoopbackRequest] {
        _ = await counts { $0.requests >= count }
        return requests
    }

    /// Waits until the headers of at least `count` requests have arrived and returns the recorded requests.
    ///
    /// If the current task is canceled, the method returns the requests that have arrived so far.
    ///
    /// - Parameter count: The number of requests to wait for, including earlier requests.
    public func heads(atLeast count: Int) async -> [LoopbackRequest] {
        _ = await counts { $0.heads >= count }
        return requests
    }

    /// Waits until the counts satisfy a condition or the current task is canceled.
    ///
    /// - Parameter isReached: A closure that returns whether the counts satisfy the condition. The method calls the
    ///   closure once before it waits. The closure is then called after each change, usually on the server's thread.
    /// - Returns: The counts at the end of the wait.
    @discardableResult
    public func counts(where isReached: @escaping @Sendable (LoopbackCounts) -> Bool) async -> LoopbackCounts {
        await journal.counts(where: isReached)
    }

    /// Removes the recorded requests but does not reset the counts.
    ///
    /// The ``requests(atLeast:)`` and ``heads(atLeast:)`` methods still count removed requests. To wait for *n* new
    /// requests, pass `counts.requests + n` to ``requests(atLeast:)``, or `counts.heads + n` to ``heads(atLeast:)``.
    /// Read ``counts`` before the new requests begin.
    public func forget() { journal.forget() }
}

extension LoopbackServer {
    /// A set of options that determine how a server listens and how much it records.
    public struct Options: Sendable {
        /// The addresses on which the server listens.
        ///
        /// The default is a free port on 127.0.0.1.
        package var addresses: [LoopbackAddress] = [.ipv4]

        /// The clock that the server uses for delays.
        ///
        /// The default is the system clock. Delays include steps such as ``LoopbackStep/pause(_:)``.
        public var clock: any OperationClock = .system

        /// The maximum number of connections that wait in the system until the server accepts them.
        ///
        /// The default is 4,096.
        package var backlog = 4_096

        /// A Boolean value that indicates whether the server accepts connections when it starts.
        ///
        /// The default is `true`. To change the value later, call ``LoopbackServer/setAccepting(_:)``.
        package var accepts = true

        /// The maximum number of requests on a connection, after which the server closes the connection.
        ///
        /// The default is `nil`, which sets no limit.
        package var requestsPerConnection: Int?

        /// A Boolean value that indicates whether the last response that ``requestsPerConnection`` allows contains
        /// `Connection: close`.
        ///
        /// The default is `true`.
        package var announcesClosing = true

        /// A Boolean value that indicates whether the server sends `100 Continue` if a request contains `Expect:
        /// 100-continue`.
        ///
        /// The default is `true`. For a route that you add with `routeEarly`, the server never sends `100 Continue`
        /// automatically.
        package var sendsContinue = true

        /// The size, in bytes, of the receive buffer of each connection.
        ///
        /// The default is `nil`, which uses the system's default size. With a small buffer, an uploading client must
        /// wait sooner if the server reads slowly.
        public var receiveBufferSize: Int?

        /// The size, in bytes, of the send buffer of each connection.
        ///
        /// The default is `nil`, which uses the system's default size.
        package var sendBufferSize: Int?

        /// The maximum number of recent requests that the server keeps.
        ///
        /// The default is 10,000. The ``LoopbackServer/counts`` property includes all requests.
        package var keptRequests = 10_000

        /// The maximum number of bytes of each request body that the server keeps.
        ///
        /// The default is 1 MiB. The ``LoopbackRequest/bodyCount`` property includes all bytes.
        package var keptBodyBytes = 1 << 20

        /// Creates options with the default values.
        public init() {}
    }
}

/// An error that explains why a ``LoopbackServer`` could not start.
public struct LoopbackServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The code that identifies the cause of the error.
    package let code: Code
    /// The address on which the server could not listen.
    package let address: LoopbackAddress
    /// The system's error number (`errno`), or 0 if there is none.
    package let systemErrorNumber: Int32

    /// A description of the error that includes a possible solution.
    public var description: String {
        let number = systemErrorNumber == 0 ? "" : " (system error \(systemErrorNumber))"
        return "A loopback server cannot listen on \(address): \(code.rawValue)\(number)"
    }

    /// A code that identifies why a server could not start, with an explanation and a possible solution.
    package enum Code: String, Sendable {
        /// Another server already listens on the address.
        case addressInUse =
            "another server already uses it. Use port 0, which chooses a free port, or another path."
        /// The address is not assigned to the local computer.
        case addressNotAvailable = "this machine does not have this address. Listen on .ipv4 only, or enable IPv6."
        /// The path of a Unix domain socket is empty, too long, or in a missing directory.
        case invalidPath = """
            the path is empty, too long for a socket (about 100 bytes), or its directory is missing. Choose a short \
            path in an existing directory.
            """
        /// The process has too many open files.
        case tooManyOpenFiles =
            "too many files are open. Stop servers that are not needed, or raise the limit (ulimit -n)."
        /// The process does not have permission to listen on the address.
        case permissionDenied = "the program does not have permission. Use port 0, or another path."
        /// The system reported another error, which ``LoopbackServerError/systemErrorNumber`` identifies.
        case systemFailed = "the system reported an error. Look up its number."
    }
}

/// An address of a ``LoopbackServer`` that only programs on the same computer can reach.
package struct LoopbackAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case ipv4
        case ipv6
        case unixSocket(path: String)
    }

    package let kind: Kind
    package let port: UInt16

    /// The IPv4 address 127.0.0.1 with a free port.
    package static let ipv4 = LoopbackAddress(kind: .ipv4, port: 0)
    /// The IPv6 address `::1` with a free port.
    ///
    /// If the server also listens on ``ipv4``, both addresses use the same port.
    package static let ipv6 = LoopbackAddress(kind: .ipv6, port: 0)

    /// Returns the IPv4 address 127.0.0.1 with the specified port, or with a free port if `port` is 0.
    package static func ipv4(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv4, port: port) }

    /// Returns the address of a Unix domain socket at a path.
    ///
    /// If a file already exists at the path, the server cannot start. The server removes the socket when it stops.
    package static func unixSocket(path: String) -> LoopbackAddress {
        LoopbackAddress(kind: .unixSocket(path: path), port: 0)
    }

    /// The IP address and port in the form that a URL uses, or the path of the Unix domain socket.
    package var description: String {
        switch kind {
        case .ipv4: "127.0.0.1:\(port)"
        case .ipv6: "[::1]:\(port)"
        case .unixSocket(let path): path
        }
    }

    func with(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: kind, port: port) }
}

/// The routes that assign closures to requests, which tests can change while the server's thread reads them.
final class LoopbackRoutes: Sendable {
    typealias Handler = @Sendable (LoopbackRequest) -> LoopbackAnswer

    struct Route: Sendable {
        let method: String?
        let path: String
        let isPrefix: Bool
        let answersEarly: Bool
        let handler: Handler

        func matches(_ method: String, _ path: String) -> Bool {
            if let wanted = self.method, wanted != method, !(wanted == "GET" && method == "HEAD") { return false }
            return isPrefix ? path.hasPrefix(self.path) : path == self.path
        }
    }

    typealias Greeting = @Sendable (Int) -> LoopbackAnswer?

    private let state = Locked((routes: [Route](), greeting: Greeting?.none))

    /// The script for each new connection, which runs before the server reads from it.
    var greeting: Greeting? {
        get { state.withLock { $0.greeting } }
        set { state.withLock { $0.greeting = newValue } }
    }

    /// Adds a route, which takes precedence over earlier routes.
    func add(_ method: String?, _ path: String, early: Bool, _ handler: @escaping Handler) {
        let isPrefix = path.hasSuffix("*")
        let route = Route(
            method: method, path: isPrefix ? String(path.dropLast()) : path, isPrefix: isPrefix, answersEarly: early,
            handler: handler)
        state.withLock { $0.routes.append(route) }
    }

    func route(_ method: String, _ path: String) -> Route? {
        state.withLock { $0.routes }.last { $0.matches(method, path) }
    }
}
