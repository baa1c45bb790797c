// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A request as a ``LoopbackServer`` received it.
public struct LoopbackRequest: Sendable {
    /// Which request of the server it is: 0 for the first.
    public package(set) var number: Int
    /// Which connection it came on: 0 for the first.
    public package(set) var connection: Int
    /// Which request of its connection it is: 0 for the first.
    public package(set) var numberOnConnection: Int

    /// The method as it was written.
    public package(set) var method: String
    /// The target as it was written: path and query, as a rule.
    public package(set) var target: String
    /// The version as it was written: `HTTP/1.1`.
    public package(set) var version: String
    /// The header fields in their order, with those that occur twice.
    public package(set) var fields: [LoopbackField]
    /// All bytes of the head, with the empty line at its end.
    public package(set) var headBytes: [UInt8]

    /// The bytes of the body, without the framing of chunks: the first of them, if there were more than the server keeps.
    public package(set) var body: [UInt8] = []
    /// How many bytes the body had so far, without the framing of chunks.
    public package(set) var bodyCount = 0
    /// The fields behind a body in chunks.
    public package(set) var trailers: [LoopbackField] = []
    /// Whether the request arrived whole.
    public package(set) var isComplete = false

    /// When the head had arrived.
    public package(set) var headArrived: OperationInstant
    /// When the request had arrived whole.
    public package(set) var arrived: OperationInstant?

    /// The target up to its question mark.
    public var path: String {
        target.firstIndex(of: "?").map { String(target[..<$0]) } ?? target
    }

    /// The target behind its question mark.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The values of all fields with this name, in their order.
    public func values(_ name: String) -> [String] { fields.values(name) }

    /// The value of the first field with this name.
    public subscript(_ name: String) -> String? { fields.first(name) }
}

/// One header field: of a request as it came, or of an answer as it is sent.
public struct LoopbackField: Hashable, Sendable, CustomStringConvertible {
    /// The name as it was written.
    public var name: String
    /// The value without the blanks around it.
    public var value: String

    /// Makes a field; nothing is checked, so that a server can send what is wrong.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The field as it stands in a head.
    public var description: String { "\(name): \(value)" }
}

extension [LoopbackField] {
    /// The values of all fields with this name, in their order; upper and lower case are the same.
    public func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return filter { $0.name.utf8.count == wanted.utf8.count && $0.name.lowercased() == wanted }.map(\.value)
    }

    /// The value of the first field with this name.
    public func first(_ name: String) -> String? { values(name).first }

    /// Puts a field where the first of this name stands, or at the end, in the place of all of that name.
    public mutating func set(_ name: String, _ value: String) {
        let wanted = name.lowercased()
        let place = firstIndex { $0.name.lowercased() == wanted } ?? endIndex
        removeAll { $0.name.lowercased() == wanted }
        insert(LoopbackField(name, value), at: place)
    }
}

/// Something that a client did against the rules of HTTP/1.1.
///
/// A test that expects ``LoopbackServer/violations`` to be empty finds requests that were smuggled, bodies that are
/// longer than was said, and heads that another server would read differently.
public struct LoopbackViolation: Hashable, Sendable, CustomStringConvertible {
    /// The kind of the violation.
    public let code: Code
    /// On which connection it was seen.
    public let connection: Int
    /// What was seen.
    public let detail: String

    /// The violation as a sentence.
    public var description: String { "Connection \(connection): \(code.explanation): \(detail)" }

    /// The kind of a violation.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        let explanation: String

        /// The first line is no request line.
        public static let requestLine = Code(
            description: "requestLine", explanation: "the first line is not a method, a target and HTTP/1.1")
        /// A line of the head is no header field.
        public static let field = Code(description: "field", explanation: "a line of the head is no header field")
        /// A line ends without carriage return, or has one in its middle.
        public static let lineEnd = Code(
            description: "lineEnd", explanation: "a line does not end in carriage return and line feed")
        /// The host is missing, empty, or there are two.
        public static let host = Code(description: "host", explanation: "there is not exactly one Host")
        /// The length of the body is unclear: two lengths, a length and chunks, or no number.
        public static let length = Code(description: "length", explanation: "the length of the body is unclear")
        /// The chunks of a body are wrong.
        public static let chunk = Code(description: "chunk", explanation: "the body's chunks are wrong")
        /// Bytes came behind the end of the request before it was answered: a body longer than was said, or a second
        /// request.
        public static let surplus = Code(
            description: "surplus", explanation: "bytes came behind the end of a request that was not yet answered")
        /// The head is longer than the server reads.
        public static let tooLong = Code(description: "tooLong", explanation: "the head has no end")
    }
}

/// How much a ``LoopbackServer`` has seen and done.
public struct LoopbackCounts: Hashable, Sendable {
    /// Connections that were taken.
    public package(set) var connections = 0
    /// Connections that are open now.
    public package(set) var openConnections = 0
    /// Open connections on which no request is being received or answered.
    public package(set) var idleConnections = 0
    /// Requests whose head arrived.
    public package(set) var heads = 0
    /// Requests that arrived whole.
    public package(set) var requests = 0
    /// Requests whose script was played to its end.
    public package(set) var answers = 0
    /// Bytes of bodies that arrived.
    public package(set) var bodyBytes = 0
    /// Bytes that were handed to the system to be sent.
    public package(set) var sentBytes = 0
    /// Violations.
    public package(set) var violations = 0
    /// Connections whose client went away while it was owed an answer.
    public package(set) var abandoned = 0

    /// Connections that were closed by either side.
    public var closedConnections: Int { connections - openConnections }
}

/// What a loopback server saw: written by its thread, read and waited for by tests.
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

    /// Changes the counts, and wakes those who waited for that.
    func count(_ change: (inout LoopbackCounts) -> Void) {
        note { change(&$0.counts) }
    }

    func begin(_ request: LoopbackRequest) {
        note { state in
            state.counts.heads += 1
            // Twice as many are kept as were asked for, so that the first need not be taken away each time.
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

    /// Waits until `isReached` says so of the counts; a task that is cancelled does not wait on.
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
        // A condition is the test's own code, so it is asked outside the lock.
        for waiter in waiters where waiter.isReached(counts) { wake(waiter.id) }
    }
}
