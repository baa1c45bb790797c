// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// A session for unit tests that gets its responses from closures instead of a network.
///
/// ```swift
/// import OperationTestKit
///
/// let session = StubSession()
/// session.route("GET", "/greeting") { _ in .text("Hello") }
/// session.route("POST", "/order") { _ in .failure(.connectionLost) }
/// ```
///
/// Tasks in this session behave like tasks in a session that uses a network. Each task reports its end exactly once,
/// respects `suspend()` and `hold()`, and ends immediately when it is canceled. The session does not support time
/// limits, metrics or compression. To test the data that is sent over a connection, use a ``LoopbackServer``.
///
/// Guide: `Docs/Guides/Testing.md`
public final class StubSession: NetworkSession {
    private struct State {
        var routes: [(method: String?, path: String, answer: @Sendable (StubRequest) -> StubAnswer)] = []
        var running: [ObjectIdentifier: StubTask] = [:]
        var isClosed = false
    }

    let clock: any OperationClock
    /// The maximum number of bytes of a request body in memory, or nil for no limit.
    let keptBodyBytes: Int?
    let queue = DispatchQueue(label: "OperationKit.StubSession")
    private let state = Locked(State())
    private let seen = EventRecorder<StubRequest>()

    /// Creates a session that responds with the status code 404 to each request that matches no route.
    ///
    /// - Parameter clock: The clock that measures the delays in responses. The default is the system clock.
    public convenience init(clock: any OperationClock = .system) {
        self.init(clock: clock, keptBodyBytes: nil)
    }

    init(clock: any OperationClock, keptBodyBytes: Int?) {
        (self.clock, self.keptBodyBytes) = (clock, keptBodyBytes)
    }

    /// Sets the response to requests with a given method and path.
    ///
    /// After the session has read the whole request body, it calls the closure. If several routes match a request, the
    /// session uses the route that you added last.
    ///
    /// - Parameters:
    ///   - method: The method of the requests, or `nil` for all methods.
    ///   - path: The percent-encoded path of the URL. A `*` at the end matches any text.
    ///   - answer: A closure that returns the response. The session calls the closure on a serial queue of the session.
    public func route(
        _ method: String?, _ path: String, _ answer: @escaping @Sendable (StubRequest) -> StubAnswer
    ) {
        // A request without a path is sent to the path "/".
        state.withLock { $0.routes.append((method, path.isEmpty ? "/" : path, answer)) }
    }

    /// Sets a series of responses to requests with a given method and path.
    ///
    /// Each request receives the next response in the series. At the end of the series, the session repeats the last
    /// response.
    ///
    /// ```swift
    /// import OperationTestKit
    ///
    /// let session = StubSession()
    /// session.route(
    ///     "GET", "/songs", inTurn: .status(503), .failure(.connectionLost),
    ///     .json("[]"))
    /// ```
    ///
    /// - Parameters:
    ///   - method: The method of the requests, or `nil` for all methods.
    ///   - path: The percent-encoded path of the URL. A `*` at the end matches any text.
    ///   - first: The response to the first request.
    ///   - others: The responses to the following requests, in order.
    public func route(_ method: String?, _ path: String, inTurn first: StubAnswer, _ others: StubAnswer...) {
        let turns = AnswersInTurn(first, others)
        route(method, path) { _ in turns.next() }
    }

    /// The requests that the session received, in order, including requests whose task was canceled later.
    public var requests: [StubRequest] { seen.events }

    /// Waits until the session has received at least `count` requests and returns all received requests.
    ///
    /// If the current task is canceled, the method returns the requests that the session has received so far, which may
    /// be fewer than `count`.
    ///
    /// - Parameter count: The number of requests to wait for, including earlier requests.
    public func requests(atLeast count: Int) async -> [StubRequest] { await seen.events(atLeast: count) }

    /// Creates a task that starts when you first call its `resume()` method.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        StubTask(request, receiver, self)
    }

    /// Closes the session.
    ///
    /// All current and later tasks fail with the code `sessionClosed`.
    public func close() {
        let running = state.withLock { state in
            state.isClosed = true
            return Array(state.running.values)
        }
        for task in running { task.sessionClosed() }
    }

    /// Removes the recorded requests.
    ///
    /// Afterward, ``requests(atLeast:)`` counts only new requests.
    public func forget() { seen.forget() }

    /// Retains a task until its end, and returns false if the session is closed.
    func begin(_ task: StubTask) -> Bool {
        state.withLock { state in
            state.running[ObjectIdentifier(task)] = task
            return !state.isClosed
        }
    }

    func end(_ task: StubTask) {
        // The removed reference may be the last one, so release it outside the lock.
        _ = state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(task)) }
    }

    func answer(to request: StubRequest) -> StubAnswer {
        // A playback session records the requests itself.
        if keptBodyBytes == nil { seen.record(request) }
        let written = request.url.path(percentEncoded: true)
        let path = written.isEmpty ? "/" : written
        let route = state.withLock { state in
            state.routes.last { route in
                guard route.method == nil || route.method == request.method else { return false }
                return route.path.hasSuffix("*") ? path.hasPrefix(route.path.dropLast()) : path == route.path
            }
        }
        return route?.answer(request) ?? .status(404)
    }
}

/// A response from a ``StubSession``, described as a sequence of steps.
///
/// ```swift
/// import OperationTestKit
///
/// let session = StubSession(), goOn = Gate()
/// session.route("GET", "/songs") { _ in
///     .json(encoding: ["One", "Two"]).with("ETag", "\"1\"")
/// }
/// session.route("GET", "/late") { _ in .text("Hello").after(.seconds(5)) }
/// session.route("GET", "/half") { _ in
///     StubAnswer(
///         .head(200, ["Content-Length": "10"]), .bytes("Hello"),
///         .stall(until: goOn), .fail(.connectionLost))
/// }
/// ```
public struct StubAnswer: Sendable {
    /// A step that reports an event to a task's receiver, waits, or ends the task.
    public struct Step: Sendable {
        enum Kind: Sendable {
            case head(status: Int, HeaderFields)
            case wholeHead(ResponseHead)
            case bytes(Data)
            case trailers(HeaderFields)
            case gate(Gate)
            case pause(Duration)
            case end(StubEnd)
        }

        let kind: Kind

        /// Returns a step with complete headers, including the URL of the response.
        static func head(_ head: ResponseHead) -> Step { Step(kind: .wholeHead(head)) }

        /// Returns a step that reports a status code and headers.
        ///
        /// If the status code is below 200, the step reports an informational response.
        ///
        /// - Parameters:
        ///   - status: The status code.
        ///   - headers: The headers of the response. The default is an empty list.
        public static func head(_ status: Int, _ headers: HeaderFields = [:]) -> Step {
            Step(kind: .head(status: status, headers))
        }

        /// Returns a step that reports bytes of the body in a single call to the receiver.
        public static func bytes(_ data: Data) -> Step { Step(kind: .bytes(data)) }

        /// Returns a step that reports text of the body, encoded as UTF-8, in a single call to the receiver.
        public static func bytes(_ text: String) -> Step { .bytes(Data(text.utf8)) }

        /// Returns a step that reports trailers after the body.
        public static func trailers(_ fields: HeaderFields) -> Step { Step(kind: .trailers(fields)) }

        /// Returns a step that waits until a gate is open.
        public static func stall(until gate: Gate) -> Step { Step(kind: .gate(gate)) }

        /// Returns a step that waits for a duration on the session's clock.
        public static func pause(_ duration: Duration) -> Step { Step(kind: .pause(duration)) }

        /// Returns a step that ends the task with an error that has the given code.
        ///
        /// If the code describes a failure to connect, such as `cannotConnect`, and the step precedes the headers of
        /// the response, the request counts as unsent.
        public static func fail(_ code: NetworkError.Code) -> Step { Step(kind: .end(.code(code))) }

        /// Returns a step that ends the task with the given error.
        ///
        /// If the error does not contain a summary of the request, the session adds the summary.
        package static func fail(_ error: NetworkError) -> Step { Step(kind: .end(.error(error))) }
    }

    /// The steps that the session performs, in order.
    ///
    /// The task ends after the last step.
    package var steps: [Step]

    /// Creates a response from individual steps.
    public init(_ steps: Step...) { self.steps = steps }

    /// Creates a response from an array of steps.
    public init(steps: [Step]) { self.steps = steps }

    /// Returns a response with a status code, headers and no body.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - headers: The headers of the response. The default is an empty list.
    public static func status(_ status: Int, _ headers: HeaderFields = [:]) -> Self { Self(.head(status, headers)) }

    /// Returns a response with the given body and its `Content-Type` and `Content-Length` headers.
    ///
    /// - Parameters:
    ///   - data: The body of the response.
    ///   - type: The value of the `Content-Type` header.
    ///   - status: The status code. The default is 200.
    public static func data(_ data: Data, type: String, status: Int = 200) -> Self {
        Self(.head(status, ["Content-Type": type, "Content-Length": "\(data.count)"]), .bytes(data))
    }

    /// Returns a response whose body is plain text in UTF-8.
    ///
    /// - Parameters:
    ///   - text: The text of the body.
    ///   - status: The status code. The default is 200.
    public static func text(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "text/plain; charset=utf-8", status: status)
    }

    /// Returns a response whose body is the given JSON text.
    ///
    /// - Parameters:
    ///   - text: The body, which the session delivers without checking that it is valid JSON.
    ///   - status: The status code. The default is 200.
    public static func json(_ text: String, status: Int = 200) -> Self {
        .data(Data(text.utf8), type: "application/json", status: status)
    }

    /// Returns a response whose body is a value encoded as JSON.
    ///
    /// If the value cannot be encoded, the response has the status code 500 and its body describes the error.
    ///
    /// - Parameters:
    ///   - value: The value to encode with a `JSONEncoder`.
    ///   - status: The status code. The default is 200.
    public static func json(encoding value: some Encodable, status: Int = 200) -> Self {
        do {
            return .data(try JSONEncoder().encode(value), type: "application/json", status: status)
        } catch {
            return .text("The response of the test cannot be encoded: \(error)", status: 500)
        }
    }

    /// Returns a response that ends the task with an error that has the given code, without headers or a body.
    ///
    /// If the code describes a failure to connect, such as `cannotConnect`, the request counts as unsent.
    public static func failure(_ code: NetworkError.Code) -> Self { Self(.fail(code)) }

    /// Returns a copy of the response in which the given header replaces all headers with the same name.
    ///
    /// The method does not change informational responses.
    ///
    /// - Parameters:
    ///   - name: The name of the header, which is not case-sensitive.
    ///   - value: The new value of the header.
    public func with(_ name: String, _ value: String) -> Self { changingHeads { $0[name] = value } }

    /// Returns a copy of the response with an additional header.
    ///
    /// The method keeps headers with the same name and does not change informational responses.
    ///
    /// - Parameters:
    ///   - name: The name of the header.
    ///   - value: The value of the header.
    package func adding(_ name: String, _ value: String) -> Self { changingHeads { $0.add(name, value) } }

    private func changingHeads(_ change: (inout HeaderFields) -> Void) -> Self {
        Self(
            steps: steps.map { step in
                guard case .head(let status, var fields) = step.kind, status >= 200 else { return step }
                change(&fields)
                return .head(status, fields)
            })
    }

    /// Returns a copy of the response that begins only after a gate is open.
    public func after(_ gate: Gate) -> Self { Self(steps: [.stall(until: gate)] + steps) }

    /// Returns a copy of the response that begins after a delay on the session's clock.
    public func after(_ duration: Duration) -> Self { Self(steps: [.pause(duration)] + steps) }
}

/// A request that a ``StubSession`` received.
public struct StubRequest: Sendable {
    /// The method of the request.
    public let method: String
    /// The URL of the request.
    public let url: URL
    /// The headers of the request, without the headers that a network session adds.
    public let headers: HeaderFields
    /// The body of the request, which is empty if the request has no body.
    public let body: Data
    /// The transfer options of the request.
    public let options: TransferOptions
    /// The number of bytes of the body, and their checksum if not all are kept.
    let bodyCount: Int
    let bodyHash: String

    /// The body, decoded as UTF-8 text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the value of the first header with the given name, or `nil` if the request has no header with this name.
    public subscript(_ name: String) -> String? { headers[name] }
}
