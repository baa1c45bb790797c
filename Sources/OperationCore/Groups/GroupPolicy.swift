// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A policy that determines the outcome of a group without a body from the outcomes of its children.
public struct GroupPolicy: Sendable, Hashable {
    enum Rule: Hashable, Sendable {
        case failFast, collectAll, firstSuccess, firstEnd
        case quorum(Int)
        case bodyDecides
    }

    let rule: Rule

    /// The group fails and cancels the other children as soon as a child fails or is canceled.
    public static let failFast = GroupPolicy(rule: .failFast)

    /// The group does not cancel children when another child fails or is canceled.
    ///
    /// When all children have ended, the group fails if a child failed or was canceled.
    public static let collectAll = GroupPolicy(rule: .collectAll)

    /// The group succeeds and cancels the other children as soon as a child succeeds.
    ///
    /// If all children have ended and none succeeded, the group fails.
    package static let firstSuccess = GroupPolicy(rule: .firstSuccess)

    /// The group succeeds or fails with the first child that ends, and then cancels the other children.
    package static let firstEnd = GroupPolicy(rule: .firstEnd)

    /// Returns a policy with which the group succeeds and cancels the other children as soon as `count` children
    /// succeed.
    ///
    /// A group from ``GroupOperation/quorum(_:of:width:on:)`` fails as soon as fewer than `count` children can still
    /// succeed. If `count` is zero or less, the group succeeds as soon as it starts.
    ///
    /// - Parameter count: The number of children that must succeed.
    package static func quorum(_ count: Int) -> GroupPolicy { GroupPolicy(rule: .quorum(count)) }

    /// The children decide nothing, because the group has a body.
    package static let bodyDecides = GroupPolicy(rule: .bodyDecides)

    /// Whether only the children that ended first make the result.
    var hasWinners: Bool {
        switch rule {
        case .firstSuccess, .firstEnd, .quorum: true
        case .failFast, .collectAll, .bodyDecides: false
        }
    }
}
