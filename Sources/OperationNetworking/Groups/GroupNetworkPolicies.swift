// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Synchronization

/// The network policies that a group sets for the operations in it.
struct GroupNetworkPolicies: Sendable {
    /// The setting of one policy.
    enum PolicySetting<Value: Sendable>: Sendable {
        /// The group does not set the policy, so the enclosing group applies.
        case none
        /// The group sets the policy to this value, which may be `nil`.
        case explicit(Value?)

        var value: Value? { if case .explicit(let value) = self { value } else { nil } }
    }

    var retry = PolicySetting<Retry>.none
    var offline = PolicySetting<OfflinePolicy>.none
    /// A list of realms, and the refreshes for which they were set.
    var realms = PolicySetting<(list: [AuthenticationRealm], scope: RefreshScope)>.none
    /// The observers of the operations in the group.
    ///
    /// The observers of all enclosing groups apply.
    var observers: [any NetworkObserver] = []

    private static let someGroupIsObserved = Atomic<Bool>(false)

    /// Records that a group in the process has an observer.
    ///
    /// Until then, operations do not search for observers.
    static func recordObserver() { someGroupIsObserved.store(true, ordering: .releasing) }

    /// Whether a group may have an observer.
    static var mayHaveObservers: Bool { someGroupIsObserved.load(ordering: .acquiring) }

    /// Adds the policies of another group that this value does not set, and returns the policies that are still
    /// missing.
    mutating func fill(_ missing: ExplicitPolicies, from other: GroupNetworkPolicies) -> ExplicitPolicies {
        var missing = missing
        func fill<Value>(_ policy: ExplicitPolicies, _ own: inout PolicySetting<Value>, _ new: PolicySetting<Value>) {
            guard missing.contains(policy), case .explicit = new else { return }
            own = new
            missing.remove(policy)
        }
        fill(.retry, &retry, other.retry)
        fill(.offline, &offline, other.offline)
        fill(.realms, &realms, other.realms)
        return missing
    }
}

extension AnyNetworkOperation {
    /// Applies the policies of the enclosing groups that the operation does not set itself, before the operation
    /// begins.
    fileprivate func inheritFromGroups() {
        var missing = ExplicitPolicies.all.subtracting(networkAttempts.state.withLock { $0.explicitPolicies })
        let mayBeObserved = GroupNetworkPolicies.mayHaveObservers
        guard !missing.isEmpty || mayBeObserved else { return }
        var found = GroupNetworkPolicies()
        askGroups(for: GroupNetworkPolicies.self) { policies in
            missing = found.fill(missing, from: policies)
            found.observers += policies.observers
            // If no policy is missing, the search can end, but all observers must be found.
            return missing.isEmpty && !mayBeObserved
        }
        for observer in found.observers { networkAttempts.add(observer, of: self) }
        networkAttempts.inherit(found)
    }
}

extension NetworkAttempts {
    fileprivate func inherit(_ policies: GroupNetworkPolicies) {
        if let retry = policies.retry.value { set(retry) }
        if let offline = policies.offline.value { set(offline) }
        if let realms = policies.realms.value, !realms.list.isEmpty {
            set(CredentialAgent(realms.list, for: realms.scope))
        }
        // The operation was canceled just now and has already released its earlier policies.
        guard isEnded else { return }
        self.policies?.forEach { $0.forget() }
    }
}

// Policies that the network operations in a group inherit.
extension GroupOperation {
    /// The default retry behavior of the network operations in the group.
    ///
    /// ```swift
    /// func songs(of service: NetworkBase) -> GroupOperation<[Data], GroupFailure> {
    ///     let songs = GroupOperation.map(1...100, width: 4) {
    ///         service.get("songs/\($0)", as: Data.self)
    ///     }
    ///     songs.retry = .standard
    ///     songs.deadline = songs.clock.now.advanced(by: .seconds(60))
    ///     return songs
    /// }
    /// ```
    ///
    /// The default is `nil`. Until you set this property, the setting of the enclosing group applies. An operation
    /// ignores the group's setting if you set the operation's `retry` property, even to `nil`, or if the operation's
    /// ``NetworkBase`` has a retry behavior.
    ///
    /// In nested groups, the setting of the innermost group applies. If you set this property to `nil`, operations in
    /// the group do not retry, regardless of the enclosing group. An operation reads the setting when the operation
    /// begins. The group releases the value when the group ends.
    public var retry: Retry? {
        get { networkPolicies?.retry.value }
        set { groupEngine?.changeNetworkPolicies { $0.retry = .explicit(newValue) } }
    }

    /// The default offline policy of the network operations in the group.
    ///
    /// The default is `nil`. The same rules as for ``retry`` determine which operations use this policy.
    public var offline: OfflinePolicy? {
        get { networkPolicies?.offline.value }
        set { groupEngine?.changeNetworkPolicies { $0.offline = .explicit(newValue) } }
    }

    /// The realms whose credentials the network operations in the group use by default.
    ///
    /// If the array is set to an empty one, operations in the group do not use the credentials of an enclosing group.
    package var realms: [AuthenticationRealm] {
        get { networkPolicies?.realms.value?.list ?? [] }
        set { groupEngine?.changeNetworkPolicies { $0.set(newValue) } }
    }

    /// Adds an authenticator, whose credential the network operations in the group use by default.
    ///
    /// The same rules as for ``retry`` determine which operations use the authenticators of the group.
    ///
    /// - Parameter authenticator: The authenticator to add.
    public func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        groupEngine?.changeNetworkPolicies { $0.add(authenticator.realm) }
    }

    private var networkPolicies: GroupNetworkPolicies? { groupEngine?.offer() }
}

// The same policies, for use within the body of a group.
extension GroupScope {
    /// The default retry behavior of the network operations in the group.
    ///
    /// The property has the same value as ``GroupOperation/retry``. A new value applies to operations that begin after
    /// you set it.
    public var retry: Retry? {
        get { networkPolicies?.retry.value }
        nonmutating set { engine.changeNetworkPolicies { $0.retry = .explicit(newValue) } }
    }

    /// The default offline policy of the network operations in the group.
    ///
    /// The property has the same value as ``GroupOperation/offline``.
    public var offline: OfflinePolicy? {
        get { networkPolicies?.offline.value }
        nonmutating set { engine.changeNetworkPolicies { $0.offline = .explicit(newValue) } }
    }

    /// Adds an authenticator, whose credential the network operations in the group use by default.
    ///
    /// The method has the same effect as ``GroupOperation/authenticate(by:)``.
    ///
    /// - Parameter authenticator: The authenticator to add.
    public func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        engine.changeNetworkPolicies { $0.add(authenticator.realm) }
    }

    private var networkPolicies: GroupNetworkPolicies? { engine.offer() }
}

extension GroupEngine {
    /// Changes the policies, which the operations in the group apply when they begin.
    ///
    /// - Returns: `false` if the group has ended.
    @discardableResult
    fileprivate func changeNetworkPolicies(_ change: (inout GroupNetworkPolicies) -> Void) -> Bool {
        changeOffer(from: InheritedSettings { $0.inheritFromGroups() }) { _ in }
        return changeOffer(from: GroupNetworkPolicies(), change)
    }
}

extension GroupNetworkPolicies {
    /// Sets the realms, and records the refreshes that are running where they are set.
    fileprivate mutating func set(_ list: [AuthenticationRealm]) {
        realms = .explicit((list, scope: .current))
    }

    fileprivate mutating func add(_ realm: AuthenticationRealm) { set((realms.value?.list ?? []) + [realm]) }
}

// The observers of the network operations in a group.
extension GroupOperation {
    /// Adds an observer for the group's network operations that begin after this call.
    ///
    /// The observers of the operations, of their services and of the enclosing groups continue to receive events. The
    /// new observer does not receive events from operations that are canceled before they begin. If you add an observer
    /// after the group ends, the observer receives no events.
    public func addNetworkObserver(_ observer: any NetworkObserver) {
        if groupEngine?.add(observer) == true { return }
        OperationDiagnostics.report(
            .timing, by: self,
            "An observer was added after the end of the group and receives no events. Add it before the group ends.")
    }

    /// Removes an observer, so that it receives no events from network operations that begin after this call.
    ///
    /// The observer still receives the remaining events from operations that have already begun. To remove an observer
    /// that is an object, pass the same object. To remove a ``NetworkLog``, which is a structure, pass a copy with the
    /// same settings.
    public func removeNetworkObserver(_ observer: any NetworkObserver) { groupEngine?.remove(observer) }
}

extension GroupScope {
    /// Adds an observer for the group's network operations that begin after this call.
    ///
    /// The method has the same effect as ``GroupOperation/addNetworkObserver(_:)``.
    public func addNetworkObserver(_ observer: any NetworkObserver) { engine.add(observer) }

    /// Removes an observer, so that it receives no events from network operations that begin after this call.
    ///
    /// The method has the same effect as ``GroupOperation/removeNetworkObserver(_:)``.
    public func removeNetworkObserver(_ observer: any NetworkObserver) { engine.remove(observer) }
}

extension GroupEngine {
    @discardableResult
    fileprivate func add(_ observer: any NetworkObserver) -> Bool {
        GroupNetworkPolicies.recordObserver()
        return changeNetworkPolicies { $0.observers.append(observer) }
    }

    fileprivate func remove(_ observer: any NetworkObserver) {
        changeNetworkPolicies { policies in
            policies.observers = policies.observers.filter { !NetworkObservation.isSame($0, observer) }
        }
    }
}
