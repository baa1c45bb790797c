// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One kind of failure that may come of a network that is gone, and why.
public struct OfflineRule: Sendable, Hashable {
    /// The kind of the failure.
    public let code: NetworkError.Code
    /// What it has to do with the network, as a sentence.
    public let reason: String

    /// A rule about a failure.
    public static func failure(_ code: NetworkError.Code, because reason: String) -> OfflineRule {
        OfflineRule(code: code, reason: reason)
    }
}

// The table. What is not in it has other causes, also while the network is gone: answers of a server, certificates,
// requests that are wrong, bodies that cannot be read.
extension OfflineRule {
    /// What an operation waits for the network after, unless you say otherwise.
    public static let standard: [OfflineRule] = [
        .failure(.notConnected, because: "The system knows no way to the host."),
        .failure(.cannotFindHost, because: "Names are looked up over the network."),
        .failure(.cannotConnect, because: "Without a network there are no connections."),
        .failure(.timedOut, because: "What was sent, or answered, went nowhere."),
        .failure(.connectionLost, because: "The connection broke when the network went."),
        .failure(.truncatedBody, because: "The response ended when the network went."),
    ]
}
