// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How a ``LoopbackServer`` ends a connection, or leaves it hanging.
///
/// More cases may be added.
public enum LoopbackEnding: Hashable, Sendable, CaseIterable {
    /// The connection is closed (FIN).
    case close
    /// The connection is closed for sending (FIN), and what the client sends is still read.
    case closeSending
    /// The connection is broken off (RST).
    case reset
    /// Nothing more is sent, and the connection stays open.
    case stall
}
