// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which routes make a machine count as connected, on Linux.
public struct RouteNeed: Sendable, Hashable {
    private enum Kind: Sendable, Hashable { case defaultRoute, anyRoute }

    private let kind: Kind

    /// A route to everywhere: what a machine has that can reach the internet, and a laptop without a cable has not.
    ///
    /// A bridge for containers has none, so it does not count.
    public static let defaultRoute = RouteNeed(kind: .defaultRoute)
    /// Any route that leads out: for networks that lead nowhere else, as in a laboratory or a machine.
    public static let anyRoute = RouteNeed(kind: .anyRoute)
}
