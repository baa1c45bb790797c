// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// A step of a network operation, as observers receive it.
package enum AttemptStep: Sendable {
    case started
    /// The preparation of an attempt begins, possibly for a second time.
    case begins
    case held(WaitReason, NetworkRequest?)
    /// A task is about to be created.
    case sends(NetworkRequest)
    /// A step of the current hop, which is one of the requests that the session sends for the attempt.
    case hop(HopStep)
    case takenBack
    case evaluated(body: Data?, count: Int64)
    case failed(NetworkError, count: Int64)
    case decided(AttemptPolicyDecision)
    case suspended(Bool)
    /// The operation ended, with the number of body bytes that the current attempt had received, if there is one.
    case ended(NetworkError?, CancellationCause?, received: Int64? = nil)
}

/// Reports the steps of one operation to its observers.
package protocol AttemptObservation: AnyObject, Sendable {
    /// Reports a step, immediately or as soon as the steps before it have been reported.
    ///
    /// - Parameter operation: The operation that takes the step, which may be about to be freed.
    func record(_ step: AttemptStep, _ number: Int, by operation: any AnyNetworkOperation)
}

extension NetworkAttempts {
    /// Reports a step to the observers of the operation.
    ///
    /// Without observers, the step is not created.
    func record(_ step: @autoclosure () -> AttemptStep, _ number: Int, _ owner: any AnyNetworkOperation) {
        // An observer is added before the start or not at all, and all steps come after the start.
        guard isObserved.load(ordering: .relaxed), let observation = state.withLock({ $0.observation }) else { return }
        observation.record(step(), number, by: owner)
    }

    /// Reports a step of one of the requests that the session sends for an attempt.
    func reportHop(_ step: HopStep, _ number: Int) {
        let (observation, owner) = state.withLock { state in
            (state.observation, state.observation != nil && state.machine.acceptsEvents(number) ? state.owner : nil)
        }
        guard let observation, let owner else { return }
        observation.record(.hop(step), number, by: owner)
    }
}
