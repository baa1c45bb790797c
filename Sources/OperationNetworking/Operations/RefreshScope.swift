// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A realm that may be refreshing its credential.
protocol RefreshingRealm: AnyObject, Sendable {
    /// A number that identifies the realm in this process.
    var number: UInt64 { get }
    /// Returns whether the realm would accept the credential that this refresh fetches.
    func isOfUse(_ refresh: Int) -> Bool
}

/// The refreshes on whose behalf a task works.
///
/// Operations that are created in the task do not wait for these refreshes.
struct RefreshScope: Sendable {
    /// The scope of the current task.
    @TaskLocal static var current = RefreshScope.none

    static let none = RefreshScope()

    private struct Refresh: Sendable {
        let number: Int
        weak var realm: (any RefreshingRealm)?

        var isOfUse: Bool { realm?.isOfUse(number) ?? false }
    }

    /// The refreshes by the number of their realm, because the address of a freed realm can be reused.
    private var refreshes: [UInt64: Refresh] = [:]

    var isEmpty: Bool { refreshes.isEmpty }

    /// Returns the scope with one more refresh.
    func with(_ refresh: Int, of realm: any RefreshingRealm) -> RefreshScope {
        var scope = self
        scope.refreshes[realm.number] = Refresh(number: refresh, realm: realm)
        return scope
    }

    /// Returns whether this scope fetches a credential of the realm, so that waiting for the refresh would be a
    /// deadlock.
    ///
    /// A task that continues after the refresh ended is like any other task.
    func exempts(from realm: any RefreshingRealm) -> Bool {
        refreshes[realm.number].map { realm.isOfUse($0.number) } ?? false
    }

    /// Whether one of these refreshes would still be accepted, so that other operations may wait for it.
    ///
    /// Do not read this property under a lock.
    var isOfUse: Bool { refreshes.values.contains { $0.isOfUse } }
}
