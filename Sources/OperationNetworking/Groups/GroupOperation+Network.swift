// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// What the network operations beneath a group inherit.
extension GroupOperation {
    /// How the network operations beneath the group repeat an attempt that failed, unless they say otherwise.
    ///
    /// ```swift
    /// func songs(of service: NetworkBase) -> GroupOperation<[Data], GroupFailure> {
    ///     let songs = GroupOperation.map(1...100, width: 4) { service.get("songs/\($0)", as: Data.self) }
    ///     songs.retry = .standard
    ///     songs.deadline = songs.clock.now.advanced(by: .seconds(60))
    ///     return songs
    /// }
    /// ```
    ///
    /// An operation says so if its `retry` was set, be it to nil, or that of its ``NetworkBase`` was. Of groups in groups
    /// the nearest counts that says something: set to nil here, nothing is repeated beneath, whatever the group around
    /// says. What counts is what is said when the operation begins. The group lets go of it at its end.
    public var retry: Retry? {
        get { networkPolicies?.retry.value }
        set { groupEngine?.changeNetworkPolicies { $0.retry = .said(newValue) } }
    }

    /// What the network operations beneath the group do while the network is gone, unless they say otherwise.
    ///
    /// What counts as said is the same as with ``retry``.
    public var offline: OfflinePolicy? {
        get { networkPolicies?.offline.value }
        set { groupEngine?.changeNetworkPolicies { $0.offline = .said(newValue) } }
    }

    /// The realms whose credentials the network operations beneath the group use, unless they have realms themselves.
    ///
    /// What counts as said is the same as with ``retry``: set to none, no credential of a group around this one is used.
    public var realms: [AuthenticationRealm] {
        get { networkPolicies?.realms.value?.list ?? [] }
        set { groupEngine?.changeNetworkPolicies { $0.set(newValue) } }
    }

    /// Lets the network operations beneath the group use the credential of that realm, too, unless they have realms.
    public func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        groupEngine?.changeNetworkPolicies { $0.add(authenticator.realm) }
    }

    private var networkPolicies: GroupNetworkPolicies? { groupEngine?.offer() }
}

// The same from within a body.
extension GroupScope {
    /// How the network operations beneath the group repeat an attempt that failed, unless they say otherwise.
    ///
    /// It is that of the group: see ``GroupOperation/retry``. It counts for what begins after it was set.
    public var retry: Retry? {
        get { networkPolicies?.retry.value }
        nonmutating set { engine.changeNetworkPolicies { $0.retry = .said(newValue) } }
    }

    /// What the network operations beneath the group do while the network is gone, unless they say otherwise.
    ///
    /// It is that of the group: see ``GroupOperation/offline``.
    public var offline: OfflinePolicy? {
        get { networkPolicies?.offline.value }
        nonmutating set { engine.changeNetworkPolicies { $0.offline = .said(newValue) } }
    }

    /// The realms whose credentials the network operations beneath the group use, unless they have realms themselves.
    ///
    /// They are those of the group: see ``GroupOperation/realms``.
    public var realms: [AuthenticationRealm] {
        get { networkPolicies?.realms.value?.list ?? [] }
        nonmutating set { engine.changeNetworkPolicies { $0.set(newValue) } }
    }

    /// Lets the network operations beneath the group use the credential of that realm, too, unless they have realms.
    public func authenticate<Credential>(by authenticator: Authenticator<Credential>) {
        engine.changeNetworkPolicies { $0.add(authenticator.realm) }
    }

    private var networkPolicies: GroupNetworkPolicies? { engine.offer() }
}

extension GroupEngine {
    fileprivate func changeNetworkPolicies(_ change: (inout GroupNetworkPolicies) -> Void) {
        changeOffer(from: GroupNetworkPolicies(), change)
    }
}

extension GroupNetworkPolicies {
    /// The realms, and that they were given where those refreshes go on.
    fileprivate mutating func set(_ list: [AuthenticationRealm]) {
        realms = .said(Realms(list: list, scope: .current))
    }

    fileprivate mutating func add(_ realm: AuthenticationRealm) { set((realms.value?.list ?? []) + [realm]) }
}
