// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The refreshes on whose behalf a task works.
///
/// Operations that are created in the task do not wait for these refreshes.
struct RefreshScope: Sendable {
    /// The scope of the current task.
    @TaskLocal static var current = RefreshScope.none

    static let none = RefreshScope()

    /// For each realm, a closure that returns whether the realm would accept the credential that the refresh fetches.
    ///
    /// A number identifies a realm, because the address of a freed realm can be reused.
    private var refreshes: [UInt64: @Sendable () -> Bool] = [:]

    var isEmpty: Bool { refreshes.isEmpty }

    /// Returns the scope with one more refresh.
    ///
    /// - Parameters:
    ///   - realm: The number of the realm.
    ///   - isOfUse: A closure that returns whether the realm would accept the credential that the refresh fetches.
    func with(refreshOf realm: UInt64, isOfUse: @escaping @Sendable () -> Bool) -> RefreshScope {
        var scope = self
        scope.refreshes[realm] = isOfUse
        return scope
    }

    /// Returns whether this scope fetches a credential of the realm, so that waiting for the refresh would be a
    /// deadlock.
    ///
    /// A task that continues after the refresh ended is like any other task.
    func exempts(from realm: UInt64) -> Bool { refreshes[realm]?() ?? false }

    /// Whether one of these refreshes would still be accepted, so that other operations may wait for it.
    ///
    /// Do not read this property under a lock.
    var isOfUse: Bool { refreshes.values.contains { $0() } }
}
