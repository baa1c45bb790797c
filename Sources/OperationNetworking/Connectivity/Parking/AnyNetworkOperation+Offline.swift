// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// To be set before the start.
extension AnyNetworkOperation {
    /// What the operation does while the network is gone; it takes no notice if nil, as from the start.
    public var offline: OfflinePolicy? {
        get { networkAttempts.policy(of: OfflineAgent.self)?.policy }
        set {
            guard state == .notStarted else {
                return OperationDiagnostics.report(
                    .timing, by: self, "Its offline policy was set after the start and has no effect. Set it before.")
            }
            let agent = newValue.map(OfflineAgent.init)
            networkAttempts.set(agent)
            networkAttempts.set(gate: agent)
        }
    }
}
