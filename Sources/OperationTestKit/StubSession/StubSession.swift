// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// A session without a network, for unit tests: it answers from closures, and fails as it is told to.
///
/// ```swift
/// import OperationTestKit
///
/// let session = StubSession()
/// session.route("GET", "/greeting") { _ in .text("Hello") }
/// session.route("POST", "/order") { _ in .failure(.connectionLost) }
/// ```
///
/// It keeps to the same rules as the sessions with a network: each task tells one end, both brakes hold, a cancel is
/// exact. What belongs to a network it does not have: there are no time limits, no metrics, and no compression. To see
/// what really goes over the wire, use a ``LoopbackServer``.
public final class StubSession: NetworkSession {
    private struct Route {
        let method: String?
        let path: String
        let answer: @Sendable (StubRequest) -> StubAnswer
    }

    private struct State {
        var routes: [Route] = []
        var running: [ObjectIdentifier: StubTask] = [:]
        var isClosed = false
    }

    let clock: any OperationClock
    /// How many bytes of a request's body are kept in memory; all if nil.
    let keptBodyBytes: Int?
    let queue = DispatchQueue(label: "OperationKit.StubSession")
    private let state = Locked(State())
    private let seen = EventRecorder<StubRequest>()

    /// Makes a session that answers 404 to everything; the clock is for pauses.
    public convenience init(clock: any OperationClock = .system) {
        self.init(clock: clock, keptBodyBytes: nil)
    }

    init(clock: any OperationClock, keptBodyBytes: Int?) {
        (self.clock, self.keptBodyBytes) = (clock, keptBodyBytes)
    }

    /// Says what is answered to a request once its body was read.
    ///
    /// - Parameters:
    ///   - method: The method; all if nil.
    ///   - path: The path of the URL; one that ends in `*` stands for all that begin so. Of several routes that fit, the
    ///     latest is taken.
    ///   - answer: Called on a queue of the session's own.
    public func route(
        _ method: String?, _ path: String, _ answer: @escaping @Sendable (StubRequest) -> StubAnswer
    ) {
        state.withLock { $0.routes.append(Route(method: method, path: path, answer: answer)) }
    }

    /// Says what is answered to the first request, the second, and so on; from the last answer on always that.
    ///
    /// ```swift
    /// import OperationTestKit
    ///
    /// let session = StubSession()
    /// session.route("GET", "/songs", inTurn: .status(503), .failure(.connectionLost), .json("[]"))
    /// ```
    public func route(_ method: String?, _ path: String, inTurn first: StubAnswer, _ others: StubAnswer...) {
        let turns = AnswersInTurn(first, others)
        route(method, path) { _ in turns.next() }
    }

    /// The requests that were sent, in their order, those of tasks that were cancelled later included.
    public var requests: [StubRequest] { seen.events }

    /// Waits until so many requests were sent.
    public func requests(atLeast count: Int) async -> [StubRequest] { await seen.events(atLeast: count) }

    /// Makes a task that waits for its first `resume()`.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        StubTask(request, receiver, self)
    }

    /// Ends all tasks with `sessionClosed`, and those that are resumed later, too.
    public func close() {
        let running = state.withLock { state in
            state.isClosed = true
            return Array(state.running.values)
        }
        for task in running { task.sessionClosed() }
    }

    /// Forgets the requests that were sent.
    public func forget() { seen.forget() }

    /// Keeps a task until its end; false if the session is closed.
    func begin(_ task: StubTask) -> Bool {
        state.withLock { state in
            state.running[ObjectIdentifier(task)] = task
            return !state.isClosed
        }
    }

    func end(_ task: StubTask) {
        // The last reference may go here, outside the lock.
        _ = state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(task)) }
    }

    func answer(to request: StubRequest) -> StubAnswer {
        // Whoever plays a recording back keeps account by himself.
        if keptBodyBytes == nil { seen.record(request) }
        let path = request.url.path(percentEncoded: true)
        let route = state.withLock { state in
            state.routes.last { route in
                guard route.method == nil || route.method == request.method else { return false }
                return route.path.hasSuffix("*") ? path.hasPrefix(route.path.dropLast()) : path == route.path
            }
        }
        return route?.answer(request) ?? .status(404)
    }
}
