// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A realm that can be in the middle of fetching a credential.
protocol RefreshingRealm: AnyObject, Sendable {
    /// A number that no other realm of the process has.
    var number: UInt64 { get }
    /// Whether the realm would take the credential that this refresh fetches.
    func isOfUse(_ refresh: Int) -> Bool
}

/// The refreshes for which a task works: the operations that are made in it wait for none of them.
struct RefreshScope: Sendable {
    /// That of the present task.
    @TaskLocal static var current = RefreshScope.none

    static let none = RefreshScope()

    private struct Refresh: Sendable {
        let number: Int
        weak var realm: (any RefreshingRealm)?

        var isOfUse: Bool { realm?.isOfUse(number) ?? false }
    }

    /// By the number of the realm: an address may be that of another one by the time.
    private var refreshes: [UInt64: Refresh] = [:]

    var isEmpty: Bool { refreshes.isEmpty }

    /// For that refresh, too.
    func with(_ refresh: Int, of realm: any RefreshingRealm) -> RefreshScope {
        var scope = self
        scope.refreshes[realm.number] = Refresh(number: refresh, realm: realm)
        return scope
    }

    /// Whether something of that realm is fetched here, so that to wait for it would be to wait for oneself.
    ///
    /// A task that goes on when the refresh is over is like any other.
    func exempts(from realm: any RefreshingRealm) -> Bool {
        refreshes[realm.number].map { realm.isOfUse($0.number) } ?? false
    }

    /// Whether what one of these refreshes gives would be taken, so that others may wait for what is done here.
    ///
    /// Not to be asked under a lock.
    var isOfUse: Bool { refreshes.values.contains { $0.isOfUse } }
}
