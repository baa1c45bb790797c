// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A request as a ``LoopbackServer`` received it.
public struct LoopbackRequest: Sendable {
    /// The number of the request on this server, starting at 0.
    public package(set) var number: Int
    /// The number of the connection on this server, starting at 0.
    public package(set) var connection: Int
    /// The number of the request on its connection, starting at 0.
    public package(set) var numberOnConnection: Int

    /// The method as it was received.
    public package(set) var method: String
    /// The target as it was received, usually a path and a query.
    public package(set) var target: String
    /// The version as it was received, such as `HTTP/1.1`.
    public package(set) var version: String
    /// The headers in their order, including repeated ones.
    public package(set) var fields: [LoopbackField]
    /// The bytes of the request line and all headers, including the final empty line.
    public package(set) var headBytes: [UInt8]

    /// The bytes of the body without the chunk framing, up to the number of bytes that the server keeps.
    public package(set) var body: [UInt8] = []
    /// The number of bytes of the body so far, without the chunk framing.
    public package(set) var bodyCount = 0
    /// The trailers after a chunked body.
    public package(set) var trailers: [LoopbackField] = []
    /// A Boolean value that indicates whether the request is complete.
    public package(set) var isComplete = false

    /// The time at which the headers were complete.
    public package(set) var headArrived: OperationInstant
    /// The time at which the request was complete, or `nil` before that.
    public package(set) var arrived: OperationInstant?

    /// The target before the question mark.
    public var path: String {
        target.firstIndex(of: "?").map { String(target[..<$0]) } ?? target
    }

    /// The target after the question mark, or `nil` if there is none.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The body as UTF-8 text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the values of all headers with a name, in their order.
    public func values(_ name: String) -> [String] { fields.values(name) }

    /// Returns the value of the first header with a name.
    public subscript(_ name: String) -> String? { fields.first(name) }
}

/// A header of a received request or of a response to send.
public struct LoopbackField: Hashable, Sendable, CustomStringConvertible {
    /// The name of the header, as it was received or will be sent.
    public var name: String
    /// The value of the header, without surrounding whitespace.
    public var value: String

    /// Creates a header, which is not validated, so that a server can send an invalid one.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The header as a line of text.
    public var description: String { "\(name): \(value)" }
}

extension [LoopbackField] {
    /// Returns the values of all headers with a name, in their order, regardless of case.
    public func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return filter { $0.name.utf8.count == wanted.utf8.count && $0.name.lowercased() == wanted }.map(\.value)
    }

    /// Returns the value of the first header with a name, regardless of case.
    public func first(_ name: String) -> String? { values(name).first }

    /// Replaces all headers with a name by one header, at the position of the first one or at the end.
    public mutating func set(_ name: String, _ value: String) {
        let wanted = name.lowercased()
        let place = firstIndex { $0.name.lowercased() == wanted } ?? endIndex
        removeAll { $0.name.lowercased() == wanted }
        insert(LoopbackField(name, value), at: place)
    }
}

/// A violation of HTTP/1.1 by a client.
///
/// If a test expects ``LoopbackServer/violations`` to be empty, it detects smuggled requests, bodies that exceed
/// their declared length, and headers that servers interpret differently.
public struct LoopbackViolation: Hashable, Sendable, CustomStringConvertible {
    /// The kind of the violation.
    public let code: Code
    /// The number of the connection.
    public let connection: Int
    /// A description of the invalid data.
    public let detail: String

    /// A description of the violation as a sentence.
    public var description: String { "Connection \(connection): \(code.explanation): \(detail)" }

    /// A kind of violation.
    ///
    /// Future versions may add kinds.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        let explanation: String

        /// The first line is not a request line.
        public static let requestLine = Code(
            description: "requestLine", explanation: "the first line is not a method, a target and HTTP/1.1")
        /// A line is not a header.
        public static let field = Code(description: "field", explanation: "a header line is not valid")
        /// A line does not end with a carriage return and a line feed, or contains a carriage return.
        public static let lineEnd = Code(
            description: "lineEnd", explanation: "a line does not end with a carriage return and a line feed")
        /// The `Host` header is missing or empty, or occurs more than once.
        public static let host = Code(
            description: "host", explanation: "the request does not have exactly one Host header")
        /// The length of the body is ambiguous, because of two lengths, a length and chunks, or an invalid number.
        public static let length = Code(description: "length", explanation: "the length of the body is ambiguous")
        /// The chunks of a body are invalid.
        public static let chunk = Code(description: "chunk", explanation: "the chunks of the body are not valid")
        /// Data arrived after the end of a request and before its response.
        ///
        /// The data is a body that exceeds its declared length, or a second request.
        public static let surplus = Code(
            description: "surplus", explanation: "bytes arrived after the end of a request and before its response")
        /// The headers are longer than the server accepts.
        public static let tooLong = Code(description: "tooLong", explanation: "the headers are too long")
    }
}

/// The counts of the events on a ``LoopbackServer``.
public struct LoopbackCounts: Hashable, Sendable {
    /// The number of accepted connections.
    public package(set) var connections = 0
    /// The number of open connections.
    public package(set) var openConnections = 0
    /// The number of open connections without a request or response in progress.
    public package(set) var idleConnections = 0
    /// The number of requests whose headers arrived.
    public package(set) var heads = 0
    /// The number of complete requests.
    public package(set) var requests = 0
    /// The number of requests whose response was sent completely.
    public package(set) var answers = 0
    /// The number of received body bytes.
    public package(set) var bodyBytes = 0
    /// The number of bytes that were passed to the system for sending.
    public package(set) var sentBytes = 0
    /// The number of violations.
    public package(set) var violations = 0
    /// The number of connections that the client closed before the end of a response.
    public package(set) var abandoned = 0

    /// The number of connections that the client or the server closed.
    public var closedConnections: Int { connections - openConnections }
}

/// The records of a server, which its thread writes, and which tests read and await.
final class LoopbackJournal: Sendable {
    private struct Waiter: Sendable {
        let id: Int
        let isReached: @Sendable (LoopbackCounts) -> Bool
        let pass: @Sendable () -> Void
    }

    private struct State {
        var counts = LoopbackCounts()
        var requests: [LoopbackRequest] = []
        var violations: [LoopbackViolation] = []
        var waiters: [Waiter] = []
        var lastWaiter = 0
    }

    private let state = Locked(State())
    private let keptRequests: Int
    private let keptViolations = 1_000

    init(keptRequests: Int) {
        self.keptRequests = max(keptRequests, 1)
    }

    var counts: LoopbackCounts { state.withLock { $0.counts } }
    var violations: [LoopbackViolation] { state.withLock { $0.violations } }

    var requests: [LoopbackRequest] { state.withLock { Array($0.requests.suffix(keptRequests)) } }

    /// Changes the counts, and wakes the tests that wait for them.
    func count(_ change: (inout LoopbackCounts) -> Void) {
        note { change(&$0.counts) }
    }

    func begin(_ request: LoopbackRequest) {
        note { state in
            state.counts.heads += 1
            // The array holds up to twice the number, so that old elements need not be removed each time.
            if state.requests.count >= 2 * keptRequests { state.requests.removeFirst(keptRequests) }
            state.requests.append(request)
        }
    }

    func end(_ request: LoopbackRequest) {
        note { state in
            if request.isComplete { state.counts.requests += 1 }
            guard let first = state.requests.first?.number else { return }
            let index = request.number - first
            if state.requests.indices.contains(index) { state.requests[index] = request }
        }
    }

    func add(_ violation: LoopbackViolation) {
        note { state in
            state.counts.violations += 1
            if state.violations.count < keptViolations { state.violations.append(violation) }
        }
    }

    func forget() {
        note { state in
            state.requests = []
            state.violations = []
        }
    }

    /// Waits until `isReached` returns true for the counts, or until the task is canceled.
    func counts(where isReached: @escaping @Sendable (LoopbackCounts) -> Bool) async -> LoopbackCounts {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(id: id, isReached: isReached, pass: { continuation.resume() })
                let counts = state.withLock { state in
                    state.waiters.append(waiter)
                    return state.counts
                }
                if Task.isCancelled || isReached(counts) { wake(id) }
            }
        } onCancel: {
            wake(id)
        }
        return counts
    }

    private func wake(_ id: Int) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.pass()
    }

    private func note(_ change: (inout State) -> Void) {
        let (waiters, counts) = state.withLock { state in
            change(&state)
            return (state.waiters, state.counts)
        }
        // The condition is code of the test, so it is called outside the lock.
        for waiter in waiters where waiter.isReached(counts) { wake(waiter.id) }
    }
}
