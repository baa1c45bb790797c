// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What the ends of its children make of a group that has no body.
public struct GroupPolicy: Sendable, Hashable, CustomStringConvertible {
    enum Rule: Hashable, Sendable {
        case failFast, collectAll, firstSuccess, firstEnd
        case quorum(Int)
        case bodyDecides
    }

    let rule: Rule

    /// The first child that gives no result fails the group, and the others are cancelled.
    public static let failFast = GroupPolicy(rule: .failFast)

    /// All children run to their ends, and then the group fails if one of them gave no result.
    public static let collectAll = GroupPolicy(rule: .collectAll)

    /// The first child that gives a result decides, and the others are cancelled; without any the group fails.
    public static let firstSuccess = GroupPolicy(rule: .firstSuccess)

    /// The first child that ends decides, however it does, and the others are cancelled.
    public static let firstEnd = GroupPolicy(rule: .firstEnd)

    /// So many results suffice, and the others are cancelled.
    ///
    /// The group fails as soon as that can no longer come about. None or fewer needed is a success at the start.
    public static func quorum(_ count: Int) -> GroupPolicy { GroupPolicy(rule: .quorum(count)) }

    /// The children decide nothing: there is a body.
    package static let bodyDecides = GroupPolicy(rule: .bodyDecides)

    /// Whether only those count that ended first.
    var hasWinners: Bool {
        switch rule {
        case .firstSuccess, .firstEnd, .quorum: true
        case .failFast, .collectAll, .bodyDecides: false
        }
    }

    /// The name of the policy.
    public var description: String {
        if case .quorum(let count) = rule { "quorum of \(count)" } else { "\(rule)" }
    }
}
