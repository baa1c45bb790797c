// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// A step of a network operation, as observers learn of it.
package enum AttemptStep: Sendable {
    case started
    /// The preparation of an attempt begins, maybe not for the first time.
    case begins
    case held(WaitReason, NetworkRequest?)
    /// A task is about to be made.
    case sends(NetworkRequest)
    /// The session sends that.
    case hopBegins(NetworkRequest)
    /// The response of the present hop is not the answer.
    case left(ResponseHead)
    /// The present hop is over, whether there is word of its time or not.
    case hopIsOver
    /// That is how the present hop spent its time.
    case measured(TransferMetrics)
    case bodySent
    case takenBack
    case received(ResponseHead)
    case evaluated(body: Data?, count: Int64)
    case failed(NetworkError, count: Int64)
    case decided(AttemptAnswer)
    case suspended(Bool)
    /// With how many bytes of a body the attempt had received that goes on, if one does.
    case ended(End, NetworkError?, CancellationCause?, received: Int64? = nil)

    /// How an operation ends.
    package enum End: Sendable {
        case success, failure, cancelled
    }
}

/// Reports the steps of one operation to its observers.
package protocol AttemptObservation: AnyObject, Sendable {
    /// Reports a step, immediately or as soon as the steps before it have been reported.
    ///
    /// - Parameter operation: The operation that takes the step, which may be about to be freed.
    func note(_ step: AttemptStep, _ number: Int, by operation: any AnyNetworkOperation)
}

extension NetworkAttempts {
    /// Tells those who observe the operation of a step; without any it is not even made.
    func note(_ step: @autoclosure () -> AttemptStep, _ number: Int, _ host: any AnyNetworkOperation) {
        // An observer comes before the start, or not at all; whoever has a step to tell of comes after that.
        guard isObserved.load(ordering: .relaxed), let observation = state.withLock({ $0.observation }) else { return }
        observation.note(step(), number, by: host)
    }

    /// The session of an attempt tells of one of its requests.
    func noteHop(_ step: @autoclosure () -> AttemptStep, _ number: Int) {
        let (observation, host) = state.withLock { state in
            (state.observation, state.observation != nil && state.machine.mayBeTold(number) ? state.host : nil)
        }
        guard let observation, let host else { return }
        observation.note(step(), number, by: host)
    }
}
