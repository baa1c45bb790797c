// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The refreshes for which a task works: the operations that are made in it wait for none of them.
struct RefreshScope: Sendable {
    /// That of the present task.
    @TaskLocal static var current = RefreshScope.none

    static let none = RefreshScope()

    private struct Refresh: Sendable {
        let number: Int
        weak var realm: AuthenticationRealm?

        var isOfUse: Bool { realm?.isOfUse(number) ?? false }
    }

    /// By the number of the realm: an address may be that of another one by the time.
    private var refreshes: [UInt64: Refresh] = [:]

    var isEmpty: Bool { refreshes.isEmpty }

    /// For that refresh, too.
    func with(_ refresh: Int, of realm: AuthenticationRealm) -> RefreshScope {
        var scope = self
        scope.refreshes[realm.number] = Refresh(number: refresh, realm: realm)
        return scope
    }

    /// Whether something of that realm is fetched here, so that to wait for it would be to wait for oneself.
    ///
    /// A task that goes on when the refresh is over is like any other.
    func exempts(from realm: AuthenticationRealm) -> Bool {
        refreshes[realm.number].map { realm.isOfUse($0.number) } ?? false
    }

    /// Whether what one of these refreshes gives would be taken, so that others may wait for what is done here.
    ///
    /// Not to be asked under a lock.
    var isOfUse: Bool { refreshes.values.contains { $0.isOfUse } }
}
