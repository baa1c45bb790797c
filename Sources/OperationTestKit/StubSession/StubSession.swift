// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// A session without a network for unit tests, which responds from closures and can simulate failures.
///
/// ```swift
/// import OperationTestKit
///
/// let session = StubSession()
/// session.route("GET", "/greeting") { _ in .text("Hello") }
/// session.route("POST", "/order") { _ in .failure(.connectionLost) }
/// ```
///
/// The session follows the same rules as the sessions with a network. Each task reports exactly one end, respects
/// `suspend()` and `hold()`, and ends as soon as it is canceled. The session has no time limits, no metrics and no
/// compression. To examine the data that is actually transferred, use a ``LoopbackServer``.
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
    /// The maximum number of bytes of a request body in memory, or nil for no limit.
    let keptBodyBytes: Int?
    let queue = DispatchQueue(label: "OperationKit.StubSession")
    private let state = Locked(State())
    private let seen = EventRecorder<StubRequest>()

    /// Creates a session that responds with the status 404 to all requests.
    ///
    /// - Parameter clock: The clock for pauses. The default is the system clock.
    public convenience init(clock: any OperationClock = .system) {
        self.init(clock: clock, keptBodyBytes: nil)
    }

    init(clock: any OperationClock, keptBodyBytes: Int?) {
        (self.clock, self.keptBodyBytes) = (clock, keptBodyBytes)
    }

    /// Defines the response to requests whose body was read completely.
    ///
    /// If several routes match a request, the last one that was added applies.
    ///
    /// - Parameters:
    ///   - method: The method of the requests, or `nil` for all methods.
    ///   - path: The path of the URL. A path that ends with `*` matches all paths with this prefix.
    ///   - answer: A closure that returns the response, which is called on the session's queue.
    public func route(
        _ method: String?, _ path: String, _ answer: @escaping @Sendable (StubRequest) -> StubAnswer
    ) {
        state.withLock { $0.routes.append(Route(method: method, path: path, answer: answer)) }
    }

    /// Defines the responses to consecutive requests, and repeats the last response.
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

    /// The sent requests in their order, including requests whose task was canceled later.
    public var requests: [StubRequest] { seen.events }

    /// Waits until a number of requests were sent, and returns the sent requests.
    ///
    /// If the task is canceled, the method returns the requests so far.
    public func requests(atLeast count: Int) async -> [StubRequest] { await seen.events(atLeast: count) }

    /// Creates a task that waits for its first `resume()`.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        StubTask(request, receiver, self)
    }

    /// Ends all tasks with `sessionClosed`, including tasks that are resumed later.
    public func close() {
        let running = state.withLock { state in
            state.isClosed = true
            return Array(state.running.values)
        }
        for task in running { task.sessionClosed() }
    }

    /// Removes the recorded requests.
    public func forget() { seen.forget() }

    /// Retains a task until its end, and returns false if the session is closed.
    func begin(_ task: StubTask) -> Bool {
        state.withLock { state in
            state.running[ObjectIdentifier(task)] = task
            return !state.isClosed
        }
    }

    func end(_ task: StubTask) {
        // This may be the last reference, which is released outside the lock.
        _ = state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(task)) }
    }

    func answer(to request: StubRequest) -> StubAnswer {
        // A playback session records the requests itself.
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

/// A response of a ``StubSession`` as a sequence of steps.
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
    /// A step that reports an event to the receiver, or that waits.
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

        /// Returns a step with complete headers, including the URL of the response.
        static func head(_ head: ResponseHead) -> Step { Step(kind: .wholeHead(head)) }

        /// Returns a step with a status and headers, which are informational if the status is below 200.
        public static func head(_ status: Int, _ headers: HeaderFields = [:]) -> Step {
            Step(kind: .head(status: status, headers))
        }

        /// Returns a step with bytes of the body, which the receiver gets in one call.
        public static func bytes(_ data: Data) -> Step { Step(kind: .bytes(data)) }

        /// Returns a step with text of the body, which the receiver gets in one call.
        public static func bytes(_ text: String) -> Step { .bytes(Data(text.utf8)) }

        /// Returns a step with the trailers after the body.
        public static func trailers(_ fields: HeaderFields) -> Step { Step(kind: .trailers(fields)) }

        /// Returns a step that waits until a gate is open.
        public static func stall(until gate: Gate) -> Step { Step(kind: .gate(gate)) }

        /// Returns a step that waits for a duration on the session's clock.
        public static func pause(_ duration: Duration) -> Step { Step(kind: .pause(duration)) }

        /// Returns a step that ends the task with an error code.
        public static func fail(_ code: NetworkError.Code) -> Step { Step(kind: .failure(code)) }

        /// Returns a step that ends the task with an error, to which the session adds the summary of the request if
        /// it is missing.
        public static func fail(_ error: NetworkError) -> Step { Step(kind: .error(error)) }
    }

    /// The steps in their order, after which the task ends.
    public var steps: [Step]

    /// Creates a response from steps.
    public init(_ steps: Step...) { self.steps = steps }

    /// Creates a response from an array of steps.
    public init(steps: [Step]) { self.steps = steps }

    /// Returns a response with a status, headers and no body.
    public static func status(_ status: Int, _ headers: HeaderFields = [:]) -> Self { Self(.head(status, headers)) }

    /// Returns a response with a body, its length and its content type.
    public static func data(_ data: Data, type: String, status: Int = 200) -> Self {
        Self(.head(status, ["Content-Type": type, "Content-Length": "\(data.count)"]), .bytes(data))
    }

    /// Returns a response with plain text.
    public static func text(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "text/plain; charset=utf-8", status: status)
    }

    /// Returns a response with JSON text, which is sent unchanged.
    public static func json(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "application/json", status: status)
    }

    /// Returns a response with a value encoded as JSON.
    ///
    /// If the value cannot be encoded, the response has the status 500 and contains the reason.
    public static func json(encoding value: some Encodable, status: Int = 200) -> Self {
        do {
            return .data(try JSONEncoder().encode(value), type: "application/json", status: status)
        } catch {
            return .text("The response of the test cannot be encoded: \(error)", status: 500)
        }
    }

    /// Returns a failure without a response.
    public static func failure(_ code: NetworkError.Code) -> Self { Self(.fail(code)) }

    /// Returns the response with one header set, which replaces all headers with this name.
    ///
    /// Informational responses stay unchanged.
    public func with(_ name: String, _ value: String) -> Self { changingHeads { $0[name] = value } }

    /// Returns the response with an additional header.
    ///
    /// Existing headers with the same name are kept. Informational responses stay unchanged.
    public func adding(_ name: String, _ value: String) -> Self { changingHeads { $0.add(name, value) } }

    private func changingHeads(_ change: (inout HeaderFields) -> Void) -> Self {
        Self(
            steps: steps.map { step in
                guard case .head(let status, var fields) = step.kind, status >= 200 else { return step }
                change(&fields)
                return .head(status, fields)
            })
    }

    /// Returns the response, delayed until a gate is open.
    public func after(_ gate: Gate) -> Self { Self(steps: [.stall(until: gate)] + steps) }

    /// Returns the response, delayed by a duration on the session's clock.
    public func after(_ duration: Duration) -> Self { Self(steps: [.pause(duration)] + steps) }

    /// Returns the response, followed by an error.
    public func failing(_ code: NetworkError.Code) -> Self { Self(steps: steps + [.fail(code)]) }
}

/// A request that a ``StubSession`` received.
public struct StubRequest: Sendable {
    /// The method of the request.
    public let method: String
    /// The URL of the request.
    public let url: URL
    /// The headers of the request, without the headers that a session with a network adds.
    public let headers: HeaderFields
    /// The body of the request, which is empty if there is none.
    public let body: Data
    /// The transfer options of the request.
    public let options: TransferOptions
    /// The number of bytes of the body, and their checksum if not all are kept.
    let bodyCount: Int
    let bodyHash: String

    /// The body as UTF-8 text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the value of the first header with a name.
    public subscript(_ name: String) -> String? { headers[name] }
}
