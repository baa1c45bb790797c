// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A request that a ``LoopbackServer`` received.
public struct LoopbackRequest: Sendable {
    /// The number of the request among all requests to the server, starting at 0.
    public package(set) var number: Int
    /// The number of the connection on which the request arrived, starting at 0.
    public package(set) var connection: Int
    /// The number of the request among all requests on its connection, starting at 0.
    package var numberOnConnection: Int

    /// The method, exactly as the client sent it.
    public package(set) var method: String
    /// The request target, exactly as the client sent it, usually a path and a query.
    public package(set) var target: String
    /// The HTTP version, exactly as the client sent it, such as `HTTP/1.1`.
    public package(set) var version: String
    /// The headers in the order in which they arrived, including repeated headers.
    public package(set) var fields: [LoopbackField]
    /// The bytes of the request line and all headers, including the final empty line.
    package var headBytes: [UInt8]

    /// The received bytes of the body without chunk framing, up to 1 MiB.
    public package(set) var body: [UInt8] = []
    /// The number of body bytes that have arrived, without chunk framing.
    public package(set) var bodyCount = 0
    /// The trailers after a chunked body.
    public package(set) var trailers: [LoopbackField] = []
    /// A Boolean value that indicates whether the whole request has arrived.
    public package(set) var isComplete = false

    /// The time, on the server's clock, at which all headers had arrived.
    package var headArrived: OperationInstant
    /// The time, on the server's clock, at which the whole request had arrived, or `nil` if the request is incomplete.
    package var arrived: OperationInstant?

    /// The path of the request, which is the part of the target before the question mark.
    public var path: String {
        target.firstIndex(of: "?").map { String(target[..<$0]) } ?? target
    }

    /// The query of the request, which is the part of the target after the question mark, or `nil` if there is none.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The body, decoded as UTF-8 text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns, in order, the values of all headers with the given name, which is not case-sensitive.
    public func values(_ name: String) -> [String] { fields.values(name) }

    /// Returns the value of the first header with the given name, or `nil` if the request has no header with this name.
    public subscript(_ name: String) -> String? { fields.first(name) }
}

/// A header in a request that a ``LoopbackServer`` receives, or in a response that the server sends.
public struct LoopbackField: Hashable, Sendable, CustomStringConvertible {
    /// The name of the header, in its original case.
    public var name: String
    /// The value of the header, which has no surrounding whitespace if the server received the header.
    public var value: String

    /// Creates a header without validation, so that a server can send an invalid header.
    ///
    /// - Parameters:
    ///   - name: The name of the header.
    ///   - value: The value of the header.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The header in the form `name: value`.
    public var description: String { "\(name): \(value)" }
}

extension [LoopbackField] {
    /// Returns, in order, the values of all headers with the given name, which is not case-sensitive.
    package func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return filter { $0.name.utf8.count == wanted.utf8.count && $0.name.lowercased() == wanted }.map(\.value)
    }

    /// Returns the value of the first header with the given name, which is not case-sensitive, or `nil` if no header
    /// has this name.
    package func first(_ name: String) -> String? { values(name).first }

    /// Replaces all headers that have the given name with one header.
    ///
    /// The new header has the position of the first replaced header. If no header has this name, the method adds the
    /// header at the end.
    ///
    /// - Parameters:
    ///   - name: The name of the header, which is not case-sensitive.
    ///   - value: The value of the new header.
    package mutating func set(_ name: String, _ value: String) {
        let wanted = name.lowercased()
        let place = firstIndex { $0.name.lowercased() == wanted } ?? endIndex
        removeAll { $0.name.lowercased() == wanted }
        insert(LoopbackField(name, value), at: place)
    }
}

/// A violation of HTTP/1.1 by a client.
///
/// To detect request smuggling, bodies that exceed their declared length, and ambiguous headers, check at the end of a
/// test that ``LoopbackServer/violations`` is empty.
package struct LoopbackViolation: Hashable, Sendable, CustomStringConvertible {
    /// The kind of the violation.
    package let code: Code
    /// The number of the connection on which the violation occurred, starting at 0.
    package let connection: Int
    /// A description of the invalid data.
    package let detail: String

    /// A description of the violation, with the number of the connection and the invalid data.
    package var description: String { "Connection \(connection): \(code.rawValue): \(detail)" }

    /// A kind of violation, with its explanation.
    package enum Code: String, Sendable {
        /// The first line of a request is not a valid request line.
        case requestLine = "the first line is not a method, a target and HTTP/1.1"
        /// A line in the headers is not a valid header.
        case field = "a header line is not valid"
        /// A line does not end with a carriage return and a line feed, or contains another carriage return.
        case lineEnd = "a line does not end with a carriage return and a line feed"
        /// The `Host` header is missing or empty, or occurs more than once.
        case host = "the request does not have exactly one Host header"
        /// The length of the body is ambiguous.
        ///
        /// For example, the request contains two lengths, or a length and a chunked body, or the length is not a
        /// number.
        case length = "the length of the body is ambiguous"
        /// The chunk framing of a body is not valid.
        case chunk = "the chunks of the body are not valid"
        /// The client sent more data after the end of a request and before the response.
        ///
        /// The data belongs either to a body that exceeds its declared length or to a second request.
        case surplus = "bytes arrived after the end of a request and before its response"
        /// The headers of a request are longer than the server accepts.
        case tooLong = "the headers are too long"
    }
}

/// The numbers of connections, requests and other events that a ``LoopbackServer`` has counted.
public struct LoopbackCounts: Hashable, Sendable {
    /// The number of connections that the server has accepted.
    public package(set) var connections = 0
    /// The number of connections that are open.
    public package(set) var openConnections = 0
    /// The number of open connections that have no request or response in progress.
    public package(set) var idleConnections = 0
    /// The number of requests whose headers have arrived.
    public package(set) var heads = 0
    /// The number of requests that have arrived completely.
    public package(set) var requests = 0
    /// The number of requests to which the server has sent a complete response.
    package var answers = 0
    /// The number of request body bytes that the server has received.
    package var bodyBytes = 0
    /// The number of bytes that the server has passed to the system for sending.
    package var sentBytes = 0
    /// The number of HTTP/1.1 violations by clients.
    package var violations = 0
    /// The number of connections that the client closed before the response was complete.
    public package(set) var abandoned = 0
}

/// The records of a server, which its thread writes, and which tests read and await.
final class LoopbackJournal: Sendable {
    private struct State {
        var counts = LoopbackCounts()
        var requests: [LoopbackRequest] = []
        var violations: [LoopbackViolation] = []
        var waiting: [(isReached: @Sendable (LoopbackCounts) -> Bool, answer: FirstAnswer<Void>)] = []
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
            if state.requests.count / 2 >= keptRequests { state.requests.removeFirst(keptRequests) }
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
        let answer = FirstAnswer<Void>()
        let counts = state.withLock { state in
            state.waiting.append((isReached, answer))
            return state.counts
        }
        if isReached(counts) { answer.give(()) }
        await answer.valueUnlessCancelled(or: ())
        state.withLock { state in state.waiting.removeAll { $0.answer === answer } }
        return self.counts
    }

    private func note(_ change: (inout State) -> Void) {
        let (waiting, counts) = state.withLock { state in
            change(&state)
            return (state.waiting, state.counts)
        }
        // The condition is code of the test, so it is called outside the lock.
        for waiter in waiting where waiter.isReached(counts) { waiter.answer.give(()) }
    }
}
