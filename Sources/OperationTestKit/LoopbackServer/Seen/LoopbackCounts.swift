// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
