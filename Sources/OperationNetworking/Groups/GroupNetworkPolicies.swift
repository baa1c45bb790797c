// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import Synchronization

/// What a group says of the network operations beneath it.
struct GroupNetworkPolicies: Sendable {
    /// What is said of one thing.
    enum Word<Value: Sendable>: Sendable {
        /// Nothing: ask the group around this one.
        case none
        /// This, be it nil.
        case said(Value?)

        var value: Value? { if case .said(let value) = self { value } else { nil } }
    }

    /// Realms, and for which refreshes they were given.
    struct Realms: Sendable {
        let list: [AuthenticationRealm]
        let scope: RefreshScope
    }

    var retry = Word<Retry>.none
    var offline = Word<OfflinePolicy>.none
    var realms = Word<Realms>.none
    /// Who is told of what is beneath the group; those of all groups around an operation are.
    var observers: [any NetworkObserver] = []

    private static let someGroupIsObserved = Atomic<Bool>(false)

    /// Some group of the process has an observer from now on: as long as none has, nobody looks for them.
    static func noteObserver() { someGroupIsObserved.store(true, ordering: .releasing) }

    /// Whether a group may have an observer.
    static var mayHaveObservers: Bool { someGroupIsObserved.load(ordering: .acquiring) }

    /// Adds what another says, where this one says nothing; returns what is still missing of those.
    mutating func fill(_ missing: SaidPolicies, from other: GroupNetworkPolicies) -> SaidPolicies {
        var missing = missing
        if missing.contains(.retry), case .said = other.retry {
            retry = other.retry
            missing.remove(.retry)
        }
        if missing.contains(.offline), case .said = other.offline {
            offline = other.offline
            missing.remove(.offline)
        }
        if missing.contains(.realms), case .said = other.realms {
            realms = other.realms
            missing.remove(.realms)
        }
        return missing
    }
}

/// Those policies that somebody said something of.
struct SaidPolicies: OptionSet, Sendable {
    let rawValue: UInt8

    static let retry = SaidPolicies(rawValue: 1)
    static let offline = SaidPolicies(rawValue: 2)
    static let realms = SaidPolicies(rawValue: 4)
    static let all: SaidPolicies = [.retry, .offline, .realms]
}

extension NetworkAttempts {
    /// Notes that somebody set it on the operation, which therefore does not inherit it.
    func say(_ policy: SaidPolicies) { state.withLock { _ = $0.said.insert(policy) } }
}

extension NetworkOperation {
    /// Takes over what the groups around the operation say, and it does not itself: it is about to begin.
    final func inheritFromGroups() {
        var missing = SaidPolicies.all.subtracting(networkAttempts.state.withLock { $0.said })
        let mayBeObserved = GroupNetworkPolicies.mayHaveObservers
        guard !missing.isEmpty || mayBeObserved else { return }
        var found = GroupNetworkPolicies()
        askGroups(for: GroupNetworkPolicies.self) { policies in
            missing = found.fill(missing, from: policies)
            found.observers += policies.observers
            // Who says it all need not hear more, but all who observe are to be found.
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
        // Cancelled just now, it let go of those it had.
        guard isEnded else { return }
        let (policies, gates) = state.withLock { ($0.policies, $0.gates) }
        for policy in policies { policy.forget() }
        for gate in gates { gate.forget() }
    }
}
