// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An event that a server sends in a stream of server-sent events.
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event, which is `message` unless the server specifies another type.
    public let kind: String
    /// The data of the event, which can consist of several lines.
    public let data: String
    /// The last event ID that the server has sent, or an empty string if the server has not sent an ID.
    public let id: String
}
