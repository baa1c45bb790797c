// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

// To be set before the start.
extension AnyNetworkOperation {
    /// What the operation does while the network is gone; it takes no notice if nil, as from the start.
    ///
    /// In a group that says what its network operations do then, one on which it was never set does that.
    public var offline: OfflinePolicy? {
        get { networkAttempts.policy(of: OfflineAgent.self)?.policy }
        set {
            guard maySet("offline policy") else { return }
            networkAttempts.say(.offline)
            networkAttempts.set(newValue)
        }
    }

    /// Told that the operation waits since the network is gone, on the callback queue: the moment for a banner.
    ///
    /// Once for each time that the network goes and the operation waits for it, whether its request was ready to leave or
    /// had failed; never after its end. ``AnyNetworkOperation/offline`` says whether it waits at all. It is kept until the
    /// operation ended, which success, failure and cancellation tell as ever.
    public var offlineHandler: (@Sendable () -> Void)? {
        get { networkAttempts.state.withLock { $0.offlineHandler } }
        set {
            var handler = newValue
            networkAttempts.state.withLock { state in
                if state.machine.phase != .ended { swap(&state.offlineHandler, &handler) }
            }
        }
    }
}

extension NetworkAttempts {
    func set(_ policy: OfflinePolicy?) {
        let agent = policy.map(OfflineAgent.init)
        set(agent)
        set(gate: agent)
    }
}

extension AttemptHost {
    /// Tells handler and delegates that it waits, unless it ended before they could hear of it.
    func tellOfWaitForNetwork() {
        notify(offlineHandler, unless: { [self] in networkAttempts.isEnded || isFinishedOrCancelled }) {
            [self] delegate in
            delegate.networkOperationWaitsForNetwork(self)
        }
    }
}
