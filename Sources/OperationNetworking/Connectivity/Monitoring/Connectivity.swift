// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is known of the network at one moment: whether it is there, and by what it is reached.
///
/// That it is there means that requests may leave this machine, and not that a server answers: only a
/// ``ProbeMonitor`` looks so far.
public struct Connectivity: Sendable, Hashable {
    /// Whether requests may leave this machine.
    ///
    /// No case will be added.
    public enum Status: String, Sendable, Hashable {
        /// There is a way out.
        case satisfied
        /// There is none: requests would fail.
        case unsatisfied
        /// Nobody could say, or nobody has said yet. It is treated as if there were a way out.
        case unknown
    }

    /// Whether requests may leave this machine.
    public var status: Status
    /// The kinds of the interfaces by which there is a way out, the one that the system prefers first; as far as known.
    public var interfaces: [Interface]
    /// Whether the user pays for each byte, as with a phone's network; nil where the system does not say.
    public var isExpensive: Bool?
    /// Whether the user asked to use little of it; nil where the system does not say.
    public var isConstrained: Bool?
    /// Whether somebody else's page answers in place of the network, where one has to sign in: only a probe finds that.
    public var isCaptive = false

    /// Makes what a monitor tells.
    public init(
        _ status: Status, interfaces: [Interface] = [], isExpensive: Bool? = nil, isConstrained: Bool? = nil
    ) {
        self.status = status
        self.interfaces = interfaces
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// There is a way out.
    public static let satisfied = Connectivity(.satisfied)
    /// There is none.
    public static let unsatisfied = Connectivity(.unsatisfied)
    /// Nobody could say.
    public static let unknown = Connectivity(.unknown)

    /// Whether it is certain that requests would fail.
    public var isOffline: Bool { status == .unsatisfied }
}

extension Connectivity: CustomStringConvertible {
    /// The status, and what else is known, in a line.
    public var description: String {
        var parts = [status.rawValue]
        if !interfaces.isEmpty { parts.append("by " + interfaces.map(\.description).joined(separator: ", ")) }
        if isExpensive == true { parts.append("expensive") }
        if isConstrained == true { parts.append("constrained") }
        if isCaptive { parts.append("one has to sign in") }
        return parts.joined(separator: ", ")
    }
}
