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

/// What a ``StubSession`` tells of a task, step by step.
///
/// ```swift
/// import OperationTestKit
///
/// let session = StubSession(), goOn = Gate()
/// session.route("GET", "/songs") { _ in .json(encoding: ["One", "Two"]).with("ETag", "\"1\"") }
/// session.route("GET", "/late") { _ in .text("Hello").after(.seconds(5)) }
/// session.route("GET", "/half") { _ in
///     StubAnswer(.head(200, ["Content-Length": "10"]), .bytes("Hello"), .stall(until: goOn), .fail(.connectionLost))
/// }
/// ```
public struct StubAnswer: Sendable {
    /// One thing that is told, or waited for.
    public struct Step: Sendable {
        enum Kind: Sendable {
            case head(status: Int, HeaderFields)
            case wholeHead(ResponseHead)
            case bytes(Data)
            case trailers(HeaderFields)
            case gate(Gate)
            case pause(Duration)
            case failure(NetworkError.Code)
            case error(NetworkError)
        }

        let kind: Kind

        /// The whole head, with the address that answered.
        static func head(_ head: ResponseHead) -> Step { Step(kind: .wholeHead(head)) }

        /// A head; informational if the status is below 200.
        public static func head(_ status: Int, _ headers: HeaderFields = [:]) -> Step {
            Step(kind: .head(status: status, headers))
        }

        /// Bytes of the body, handed over in one call.
        public static func bytes(_ data: Data) -> Step { Step(kind: .bytes(data)) }

        /// Bytes of the body, handed over in one call.
        public static func bytes(_ text: String) -> Step { .bytes(Data(text.utf8)) }

        /// Fields behind the body.
        public static func trailers(_ fields: HeaderFields) -> Step { Step(kind: .trailers(fields)) }

        /// Goes on when the gate is open.
        public static func stall(until gate: Gate) -> Step { Step(kind: .gate(gate)) }

        /// Goes on after this time on the session's clock.
        public static func pause(_ duration: Duration) -> Step { Step(kind: .pause(duration)) }

        /// Ends the task with an error of this kind.
        public static func fail(_ code: NetworkError.Code) -> Step { Step(kind: .failure(code)) }

        /// Ends the task with this error, which gets the request's summary if it has none.
        public static func fail(_ error: NetworkError) -> Step { Step(kind: .error(error)) }
    }

    /// What is told, in this order; then comes the end.
    public var steps: [Step]

    /// Makes an answer of steps.
    public init(_ steps: Step...) { self.steps = steps }

    /// Makes an answer of steps.
    public init(steps: [Step]) { self.steps = steps }

    /// A status without a body.
    public static func status(_ status: Int, _ headers: HeaderFields = [:]) -> Self { Self(.head(status, headers)) }

    /// A body with its length and its type.
    public static func data(_ data: Data, type: String, status: Int = 200) -> Self {
        Self(.head(status, ["Content-Type": type, "Content-Length": "\(data.count)"]), .bytes(data))
    }

    /// A text.
    public static func text(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "text/plain; charset=utf-8", status: status)
    }

    /// JSON, as it is.
    public static func json(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "application/json", status: status)
    }

    /// A value as JSON; status 500 and the reason where it cannot be encoded.
    public static func json(encoding value: some Encodable, status: Int = 200) -> Self {
        do {
            return .data(try JSONEncoder().encode(value), type: "application/json", status: status)
        } catch {
            return .text("The test's own answer cannot be encoded: \(error)", status: 500)
        }
    }

    /// An error before anything was answered.
    public static func failure(_ code: NetworkError.Code) -> Self { Self(.fail(code)) }

    /// The same answer with that field in each of its final heads, in the place of all of that name.
    public func with(_ name: String, _ value: String) -> Self { changingHeads { $0[name] = value } }

    /// The same answer with a field more in each of its final heads, beside those of that name.
    public func adding(_ name: String, _ value: String) -> Self { changingHeads { $0.add(name, value) } }

    private func changingHeads(_ change: (inout HeaderFields) -> Void) -> Self {
        Self(
            steps: steps.map { step in
                guard case .head(let status, var fields) = step.kind, status >= 200 else { return step }
                change(&fields)
                return .head(status, fields)
            })
    }

    /// The same answer, given when the gate is open.
    public func after(_ gate: Gate) -> Self { Self(steps: [.stall(until: gate)] + steps) }

    /// The same answer, given after this time on the session's clock.
    public func after(_ duration: Duration) -> Self { Self(steps: [.pause(duration)] + steps) }

    /// The same answer with an error in the place of its end.
    public func failing(_ code: NetworkError.Code) -> Self { Self(steps: steps + [.fail(code)]) }
}

/// A request that a ``StubSession`` was given.
public struct StubRequest: Sendable {
    /// The method.
    public let method: String
    /// The URL.
    public let url: URL
    /// The header fields, without those that a session with a network writes itself.
    public let headers: HeaderFields
    /// The body; empty if there is none.
    public let body: Data
    /// How it was to be transferred.
    public let options: TransferOptions
    /// How many bytes the body has, and their checksum where not all are kept.
    let bodyCount: Int
    let bodyHash: String

    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of the first header field of that name.
    public subscript(_ name: String) -> String? { headers[name] }
}
