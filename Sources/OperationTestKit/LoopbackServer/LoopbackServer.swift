// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An HTTP/1.1 server for tests, which listens only on this machine and can simulate any failure of a server.
///
/// A test defines the responses with closures, and examines the requests afterward:
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
/// print(requests[0]["Accept"] ?? "none", server.violations)
/// ```
///
/// The server has its own thread, on which it calls the closures. A closure must return quickly and must never wait.
/// To delay a response, use a step such as ``LoopbackStep/stall(until:)`` or ``LoopbackStep/pause(_:)``. The server
/// stops when you release it.
public final class LoopbackServer: Sendable {
    /// The addresses on which the server listens, with the assigned ports.
    public let addresses: [LoopbackAddress]

    private let journal: LoopbackJournal
    private let routes: LoopbackRouteTable
    private let mailbox: LoopbackInbox
    private let ended = Gate()

    /// Starts a server.
    ///
    /// - Parameter options: The options of the server. The default listens on 127.0.0.1 with a free port.
    /// - Throws: A ``LoopbackServerError`` if the server cannot listen on an address.
    public init(_ options: Options = Options()) throws(LoopbackServerError) {
        let listeners = try LoopbackListeners(options)
        guard let mailbox = LoopbackInbox() else {
            listeners.close()
            throw LoopbackServerError(EMFILE, options.addresses.first ?? .ipv4)
        }
        addresses = listeners.addresses
        journal = LoopbackJournal(keptRequests: options.keptRequests)
        routes = LoopbackRouteTable()
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

    /// The port on which the server listens, or 0 if it listens only on a path.
    public var port: UInt16 { addresses.first { $0.port != 0 }?.port ?? 0 }

    /// Returns the URL of a target on this server, with its first address that has a port.
    ///
    /// - Parameter target: The percent-encoded path and query, which begin with `/`. The default is `/`.
    public func url(_ target: String = "/") -> URL {
        url(target, at: addresses.first { $0.port != 0 } ?? .ipv4)
    }

    /// Returns the URL of a target on this server, with one of its addresses.
    public func url(_ target: String = "/", at address: LoopbackAddress) -> URL {
        guard let url = URL(string: "http://\(address)\(target)") else {
            preconditionFailure(
                "\(target) is not a valid target of a URL. Begin it with a slash, and percent-encode it.")
        }
        return url
    }

    /// Defines the response to complete requests with a method and a path.
    ///
    /// If several routes match a request, the last one that was added applies. A request without a matching route
    /// receives the status 404.
    ///
    /// - Parameters:
    ///   - method: The method of the requests. A route for GET also applies to HEAD.
    ///   - path: The path without a query. A path that ends with `*` matches all paths with this prefix.
    ///   - answer: A closure that returns the response, which is called on the server's thread.
    public func route(
        _ method: String, _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        routes.change { $0.add(method, path, early: false, answer) }
    }

    /// Defines the response to complete requests with a path and any method.
    public func route(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        routes.change { $0.add(nil, path, early: false, answer) }
    }

    /// Defines the responses to consecutive requests, and repeats the last response.
    ///
    /// ```swift
    /// import OperationTestKit
    ///
    /// let server = try LoopbackServer()
    /// server.route("GET", "/songs", inTurn: .status(503), .reset, .json("[]"))
    /// ```
    public func route(_ method: String, _ path: String, inTurn first: LoopbackAnswer, _ others: LoopbackAnswer...) {
        let turns = AnswersInTurn(first, others)
        route(method, path) { _ in turns.next() }
    }

    /// Defines the response to requests whose headers have arrived.
    ///
    /// The server continues to read the body while the script runs. The script can wait for the body with steps such as
    /// ``LoopbackStep/awaitBody``.
    public func routeEarly(
        _ method: String, _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        routes.change { $0.add(method, path, early: true, answer) }
    }

    /// Defines the response to requests with any method whose headers have arrived.
    public func routeEarly(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        routes.change { $0.add(nil, path, early: true, answer) }
    }

    /// Defines a script for each new connection, which runs before the server reads from it.
    ///
    /// If the script leaves the connection open, the server then responds to requests as usual.
    ///
    /// - Parameter script: A closure that receives the number of the connection, starting at 0. The closure returns
    ///   `nil` for no script, and is called on the server's thread.
    public func greet(_ script: @escaping @Sendable (Int) -> LoopbackAnswer?) {
        routes.change { $0.greeting = script }
    }

    /// Closes all connections and ends the thread, without waiting for it.
    public func stop() { mailbox.post(.stop) }

    /// Closes all connections and waits until the thread has ended.
    public func stopped() async {
        stop()
        await ended.passage()
    }

    /// Accepts new connections, or leaves them waiting in the system.
    public func setAccepting(_ accepts: Bool) { mailbox.post(.setAccepting(accepts)) }

    /// Ends the connections without a request or response in progress, as servers do after some time.
    public func endIdleConnections(by ending: LoopbackEnding = .close) {
        mailbox.post(.endConnections(ending, idleOnly: true))
    }

    /// Ends all connections, but continues to accept new ones.
    public func endConnections(by ending: LoopbackEnding = .reset) {
        mailbox.post(.endConnections(ending, idleOnly: false))
    }
}

extension LoopbackServer {
    /// The most recent requests, including requests of which only the headers have arrived.
    ///
    /// The option ``LoopbackServer/Options/keptRequests`` limits their number.
    public var requests: [LoopbackRequest] { journal.requests }

    /// The first thousand violations of HTTP/1.1 by clients.
    public var violations: [LoopbackViolation] { journal.violations }

    /// The current counts of events.
    public var counts: LoopbackCounts { journal.counts }

    /// Waits until a number of requests are complete, and returns the recorded requests.
    ///
    /// If the task is canceled, the method returns the requests so far.
    public func requests(atLeast count: Int) async -> [LoopbackRequest] {
        _ = await counts { $0.requests >= count }
        return requests
    }

    /// Waits until the headers of a number of requests have arrived, and returns the recorded requests.
    ///
    /// If the task is canceled, the method returns the requests so far.
    public func heads(atLeast count: Int) async -> [LoopbackRequest] {
        _ = await counts { $0.heads >= count }
        return requests
    }

    /// Waits until the counts satisfy a condition, or until the task is canceled.
    ///
    /// - Parameter isReached: A closure that is called again after each change, usually on the server's thread.
    /// - Returns: The current counts.
    @discardableResult
    public func counts(where isReached: @escaping @Sendable (LoopbackCounts) -> Bool) async -> LoopbackCounts {
        await journal.counts(where: isReached)
    }

    /// Removes the recorded requests and violations, but does not reset the counts.
    ///
    /// So ``requests(atLeast:)`` and ``heads(atLeast:)`` still count the removed requests. Add the earlier ``counts``
    /// to the number that you wait for.
    public func forget() { journal.forget() }
}

extension LoopbackServer {
    /// A set of options that determine how a server listens and how much it records.
    public struct Options: Sendable {
        /// The addresses on which the server listens.
        ///
        /// The default is 127.0.0.1 with a free port.
        public var addresses: [LoopbackAddress] = [.ipv4]

        /// The clock for drips, pauses, slow reading and the recorded times.
        ///
        /// The default is the system clock.
        public var clock: any OperationClock = .system

        /// The maximum number of connections that wait in the system until the server accepts them.
        ///
        /// The default is 4,096.
        public var backlog = 4_096

        /// A Boolean value that indicates whether the server accepts connections from the start.
        ///
        /// The default is `true`. See ``LoopbackServer/setAccepting(_:)``.
        public var accepts = true

        /// The number of requests after which the server closes a connection.
        ///
        /// The default is `nil`, which never closes a connection for this reason.
        public var requestsPerConnection: Int?

        /// A Boolean value that indicates whether the last response before ``requestsPerConnection`` contains
        /// `Connection: close`.
        ///
        /// The default is `true`.
        public var announcesClosing = true

        /// A Boolean value that indicates whether the server sends `100 Continue` to a client that waits for it.
        ///
        /// The default is `true`.
        public var sendsContinue = true

        /// The size, in bytes, of the receive buffer of each connection.
        ///
        /// The default is `nil`, which leaves the size to the system. Use a small buffer to make a client wait while
        /// it uploads to a server that reads slowly.
        public var receiveBufferSize: Int?

        /// The size, in bytes, of the send buffer of each connection.
        ///
        /// The default is `nil`, which leaves the size to the system.
        public var sendBufferSize: Int?

        /// The number of most recent requests that the server keeps.
        ///
        /// The default is 10,000. All requests are counted.
        public var keptRequests = 10_000

        /// The number of bytes that the server keeps of each request body.
        ///
        /// The default is 1 MiB. All bytes are counted.
        public var keptBodyBytes = 1 << 20

        /// Creates options with the default values.
        public init() {}
    }
}

/// An error that explains why a ``LoopbackServer`` could not start.
public struct LoopbackServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The code of the error.
    public let code: Code
    /// The address on which the server could not listen.
    public let address: LoopbackAddress
    /// The error number of the system (`errno`), or 0.
    public let systemErrorNumber: Int32

    /// A sentence that describes the error and its solution.
    public var description: String {
        let number = systemErrorNumber == 0 ? "" : " (system error \(systemErrorNumber))"
        return "A loopback server cannot listen on \(address): \(code.explanation)\(number)"
    }

    /// A code that identifies an error.
    ///
    /// Future versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code.
        public let description: String
        let explanation: String

        /// Another server already listens on the address.
        public static let addressInUse = Code(
            description: "addressInUse",
            explanation: "another server already uses it. Use port 0, which chooses a free port, or another path.")
        /// The machine does not have the address.
        public static let addressNotAvailable = Code(
            description: "addressNotAvailable",
            explanation: "this machine does not have this address. Listen on .ipv4 only, or enable IPv6.")
        /// The path of a socket is empty or too long for the system.
        public static let invalidPath = Code(
            description: "invalidPath",
            explanation: "the path is empty, too long for a socket (about 100 bytes), or its directory is missing. "
                + "Choose a short path in an existing directory.")
        /// The process has too many open files.
        public static let tooManyOpenFiles = Code(
            description: "tooManyOpenFiles",
            explanation: "too many files are open. Stop servers that are not needed, or raise the limit (ulimit -n).")
        /// The process does not have the permission to listen on the address.
        public static let permissionDenied = Code(
            description: "permissionDenied",
            explanation: "the program does not have permission. Use port 0, or another path.")
        /// Another error, which the error number of the system identifies.
        public static let systemFailed = Code(
            description: "systemFailed", explanation: "the system reported an error. Look up its number.")
    }
}

/// An address on which a ``LoopbackServer`` listens, which is only reachable on this machine.
public struct LoopbackAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case ipv4
        case ipv6
        case unixSocket(path: String)
    }

    package let kind: Kind
    package let port: UInt16

    /// The address 127.0.0.1 with a free port.
    public static let ipv4 = LoopbackAddress(kind: .ipv4, port: 0)
    /// The address [::1] with a free port, which is the same as the port of ``ipv4`` if the server listens on both.
    public static let ipv6 = LoopbackAddress(kind: .ipv6, port: 0)

    /// Returns the address 127.0.0.1 with a given port, where 0 selects a free port.
    public static func ipv4(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv4, port: port) }

    /// Returns the address [::1] with a given port, where 0 selects a free port.
    public static func ipv6(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv6, port: port) }

    /// Returns the address of a Unix domain socket at a path that must not exist.
    ///
    /// The server removes the socket when it stops.
    public static func unixSocket(path: String) -> LoopbackAddress {
        LoopbackAddress(kind: .unixSocket(path: path), port: 0)
    }

    /// The address as in a URL, or the path.
    public var description: String {
        switch kind {
        case .ipv4: "127.0.0.1:\(port)"
        case .ipv6: "[::1]:\(port)"
        case .unixSocket(let path): path
        }
    }

    func with(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: kind, port: port) }
}

/// The routes that assign closures to requests.
struct LoopbackRoutes: Sendable {
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

    private var routes: [Route] = []
    /// The script for each new connection, which runs before the server reads from it.
    var greeting: (@Sendable (Int) -> LoopbackAnswer?)?

    /// Adds a route, which takes precedence over earlier routes.
    mutating func add(_ method: String?, _ path: String, early: Bool, _ handler: @escaping Handler) {
        let isPrefix = path.hasSuffix("*")
        routes.append(
            Route(
                method: method, path: isPrefix ? String(path.dropLast()) : path, isPrefix: isPrefix,
                answersEarly: early, handler: handler))
    }

    func route(_ method: String, _ path: String) -> Route? {
        routes.last { $0.matches(method, path) }
    }
}
