// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why a monitor knows nothing of the network: what the system refused, and what to do about it.
public struct ConnectivityMonitorError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The system's number for it (`errno`).
    public let number: Int32
    /// What happened, and what to do about it, as a sentence to show to a person.
    public let message: String

    init(_ number: Int32, _ message: String) {
        self.number = number
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
