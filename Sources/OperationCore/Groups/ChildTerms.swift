// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// On what terms an operation becomes a child.
struct ChildTerms: Sendable {
    /// Who goes on when it has ended.
    var waiter = GroupWaiter.none
    var isShielded = false
    /// What it counts in the group's progress.
    var weight = 1.0
    /// Which one it is of those that the group makes itself.
    var tag: Int32 = -1
    /// What is done if it gives no result.
    var hook: RecoveryHook?

    func with(isShielded: Bool) -> ChildTerms {
        var terms = self
        terms.isShielded = isShielded
        return terms
    }
}
