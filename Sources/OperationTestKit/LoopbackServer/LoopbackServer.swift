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
