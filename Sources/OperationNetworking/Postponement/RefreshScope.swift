// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The refreshes for which a task works: the operations that are made in it wait for none of them.
struct RefreshScope: Sendable {
    /// That of the present task.
    @TaskLocal static var current = RefreshScope.none

    static let none = RefreshScope()

    /// By the number of the realm: an address may be that of another one by the time.
    private var refreshes: [UInt64: Int] = [:]

    var isEmpty: Bool { refreshes.isEmpty }

    /// For that refresh, too.
    func with(_ refresh: Int, of realm: AuthenticationRealm) -> RefreshScope {
        var scope = self
        scope.refreshes[realm.number] = refresh
        return scope
    }

    /// Whether something of that realm is fetched here, so that to wait for it would be to wait for oneself.
    ///
    /// A task that goes on when the refresh is over is like any other.
    func exempts(from realm: AuthenticationRealm) -> Bool {
        refreshes[realm.number].map(realm.isOfUse) ?? false
    }
}
