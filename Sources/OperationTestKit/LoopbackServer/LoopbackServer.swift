// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An HTTP/1.1 server inside of a test: on this machine only, and able to do everything that servers should not.
///
/// A test says by closures what is answered, and reads afterwards what was asked:
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
/// It has one thread of its own, on which the closures are called: they must return soon, and never wait. What shall
/// take long is a step of the answer (``LoopbackStep/stall(until:)``, ``LoopbackStep/pause(_:)``). It stops when it is let
/// go of.
public final class LoopbackServer: Sendable {
    /// Where it listens, with the ports that were chosen.
    public let addresses: [LoopbackAddress]

    private let journal: LoopbackJournal
    private let routes: LoopbackRouteTable
    private let mailbox: LoopbackMailbox
    private let ended = Gate()

    /// Starts a server.
    public init(_ options: Options = Options()) throws(LoopbackServerError) {
        let listeners = try LoopbackListeners(options)
        guard let mailbox = LoopbackMailbox() else {
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

    /// The port on which it listens; 0 if only at a path.
    public var port: UInt16 { addresses.first { $0.port != 0 }?.port ?? 0 }

    /// The URL of a target on this server, by its first address with a port.
    ///
    /// - Parameter target: The path and the query, percent-encoded, beginning with `/`.
    public func url(_ target: String = "/") -> URL {
        url(target, at: addresses.first { $0.port != 0 } ?? .ipv4)
    }

    /// The URL of a target on this server, by one of its addresses.
    public func url(_ target: String = "/", at address: LoopbackAddress) -> URL {
        guard let url = URL(string: "http://\(address)\(target)") else {
            preconditionFailure("\(target) is no target of a URL. Write it percent-encoded and beginning with a slash.")
        }
        return url
    }

    /// Says what is answered to a request, once it arrived whole.
    ///
    /// - Parameters:
    ///   - method: The method; all if left out. A route for GET also gets HEAD.
    ///   - path: The path without query; one that ends in `*` stands for all that begin so. Of several routes that fit,
    ///     the latest is taken; a request for which there is none gets a 404.
    ///   - answer: Called on the server's thread.
    public func route(
        _ method: String, _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        routes.change { $0.add(method, path, early: false, answer) }
    }

    /// Says what is answered to a request with any method, once it arrived whole.
    public func route(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        routes.change { $0.add(nil, path, early: false, answer) }
    }

    /// Says what is answered to the first request, the second, and so on; from the last answer on always that.
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

    /// Says what is answered to a request as soon as its head arrived; the body is read meanwhile.
    ///
    /// Steps such as ``LoopbackStep/awaitBody`` let the script wait for it.
    public func routeEarly(
        _ method: String, _ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        routes.change { $0.add(method, path, early: true, answer) }
    }

    /// Says what is answered to a request with any method as soon as its head arrived.
    public func routeEarly(_ path: String, _ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        routes.change { $0.add(nil, path, early: true, answer) }
    }

    /// Says what is done when a connection was taken, before anything was read from it; nil for nothing.
    ///
    /// When a script was played that leaves the connection open, requests are answered on it as on others.
    ///
    /// - Parameter script: Called on the server's thread with the number of the connection, 0 for the first.
    public func greet(_ script: @escaping @Sendable (Int) -> LoopbackAnswer?) {
        routes.change { $0.greeting = script }
    }

    /// Closes everything, and gives back the thread; returns at once.
    public func stop() { mailbox.post(.stop) }

    /// Closes everything, and waits until nothing is left of it.
    public func stopped() async {
        stop()
        await ended.passage()
    }

    /// Takes connections, or leaves them waiting in the system.
    public func setAccepting(_ accepts: Bool) { mailbox.post(.setAccepting(accepts)) }

    /// Ends the connections on which no request is being received or answered, as servers do after some time.
    public func endIdleConnections(by ending: LoopbackEnding = .close) {
        mailbox.post(.endConnections(ending, idleOnly: true))
    }

    /// Ends all connections; new ones are taken.
    public func endConnections(by ending: LoopbackEnding = .reset) {
        mailbox.post(.endConnections(ending, idleOnly: false))
    }
}

extension LoopbackServer {
    /// The requests that were seen, those included of which only the head arrived: the latest, as many as are kept.
    public var requests: [LoopbackRequest] { journal.requests }

    /// What clients did against the rules, the first thousand cases.
    public var violations: [LoopbackViolation] { journal.violations }

    /// How much was seen and done.
    public var counts: LoopbackCounts { journal.counts }

    /// Waits until so many requests arrived whole, and returns those that were seen.
    public func requests(atLeast count: Int) async -> [LoopbackRequest] {
        _ = await counts { $0.requests >= count }
        return requests
    }

    /// Waits until the heads of so many requests arrived, and returns the requests that were seen.
    public func heads(atLeast count: Int) async -> [LoopbackRequest] {
        _ = await counts { $0.heads >= count }
        return requests
    }

    /// Waits until the counts are as they should be; stops waiting when the task is cancelled.
    ///
    /// - Parameter isReached: Called again after each change, on the server's thread as a rule.
    @discardableResult
    public func counts(where isReached: @escaping @Sendable (LoopbackCounts) -> Bool) async -> LoopbackCounts {
        await journal.counts(where: isReached)
    }

    /// Forgets the requests and violations that were seen; the counts go on.
    ///
    /// So ``requests(atLeast:)`` and ``heads(atLeast:)`` still count those that were forgotten: add what ``counts`` said.
    public func forget() { journal.forget() }
}

extension LoopbackServer {
    /// How a ``LoopbackServer`` listens, and how much it keeps of what it saw.
    public struct Options: Sendable {
        /// Where it listens; 127.0.0.1 on a free port if not set.
        public var addresses: [LoopbackAddress] = [.ipv4]

        /// The time for drips, pauses and slow reading, and for the moments that are written down.
        public var clock: any OperationClock = .system

        /// How many connections the system may hold ready before the server takes them.
        public var backlog = 4_096

        /// Whether connections are taken from the beginning; see ``LoopbackServer/setAccepting(_:)``.
        public var accepts = true

        /// After how many requests a connection is closed; never if nil.
        public var requestsPerConnection: Int?

        /// Whether the last answer on a connection says `Connection: close` before ``requestsPerConnection`` closes it.
        public var announcesClosing = true

        /// Whether `100 Continue` is sent to a client that waits for it.
        public var sendsContinue = true

        /// The size of each connection's receive buffer in the system, in bytes; the system's choice if nil.
        ///
        /// Make it small to see a client wait that uploads to a server that reads slowly.
        public var receiveBufferSize: Int?

        /// The size of each connection's send buffer in the system, in bytes; the system's choice if nil.
        public var sendBufferSize: Int?

        /// How many requests are kept, the latest ones; all are counted.
        public var keptRequests = 10_000

        /// How many bytes of each request's body are kept; all are counted.
        public var keptBodyBytes = 1 << 20

        /// Makes the options that a server has if nothing is said.
        public init() {}
    }
}

/// Why a ``LoopbackServer`` could not start.
public struct LoopbackServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of the failure.
    public let code: Code
    /// The address that was to be listened on.
    public let address: LoopbackAddress
    /// The number of the system's error (`errno`), or 0.
    public let systemErrorNumber: Int32

    /// The failure as a sentence that says what to do.
    public var description: String {
        let number = systemErrorNumber == 0 ? "" : " (system error \(systemErrorNumber))"
        return "A loopback server cannot listen on \(address): \(code.explanation)\(number)"
    }

    /// The kind of a failure.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        let explanation: String

        /// Somebody listens there already.
        public static let addressInUse = Code(
            description: "addressInUse",
            explanation: "somebody else does already. Use port 0, which chooses a free port, or another path.")
        /// The machine has no such address.
        public static let addressNotAvailable = Code(
            description: "addressNotAvailable",
            explanation: "this machine has no such address. Listen on .ipv4 only, or switch IPv6 on.")
        /// The path of a socket is empty or too long for the system.
        public static let invalidPath = Code(
            description: "invalidPath",
            explanation: "the path is empty, too long for a socket (about 100 bytes), or its directory is missing. "
                + "Choose a short path in an existing directory.")
        /// The process has too many descriptors open.
        public static let tooManyOpenFiles = Code(
            description: "tooManyOpenFiles",
            explanation: "too many files are open. Stop servers that are not needed, or raise the limit (ulimit -n).")
        /// The process may not listen there.
        public static let permissionDenied = Code(
            description: "permissionDenied",
            explanation: "the program lacks the permission. Use port 0, or another path.")
        /// Anything else; the system's number says more.
        public static let systemFailed = Code(
            description: "systemFailed", explanation: "the system refused. Look up the error's number.")
    }
}

/// Where a ``LoopbackServer`` listens: on this machine only.
public struct LoopbackAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case ipv4
        case ipv6
        case unixSocket(path: String)
    }

    package let kind: Kind
    package let port: UInt16

    /// 127.0.0.1 on a free port.
    public static let ipv4 = LoopbackAddress(kind: .ipv4, port: 0)
    /// [::1] on a free port: that of ``ipv4`` if the server listens on both.
    public static let ipv6 = LoopbackAddress(kind: .ipv6, port: 0)

    /// 127.0.0.1 on this port; 0 chooses a free one.
    public static func ipv4(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv4, port: port) }

    /// [::1] on this port; 0 chooses a free one.
    public static func ipv6(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: .ipv6, port: port) }

    /// A Unix-domain socket at this path, which must not exist; it is removed when the server stops.
    public static func unixSocket(path: String) -> LoopbackAddress {
        LoopbackAddress(kind: .unixSocket(path: path), port: 0)
    }

    /// The address as it stands in a URL, or the path.
    public var description: String {
        switch kind {
        case .ipv4: "127.0.0.1:\(port)"
        case .ipv6: "[::1]:\(port)"
        case .unixSocket(let path): path
        }
    }

    func with(port: UInt16) -> LoopbackAddress { LoopbackAddress(kind: kind, port: port) }
}

/// Which requests are answered by which closure.
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
    /// What is done when a connection was taken, before anything was read from it.
    var greeting: (@Sendable (Int) -> LoopbackAnswer?)?

    /// Adds a route; a later one for the same comes first.
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
