// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension PostponementMachine {
    package struct Limits: Sendable {
        /// How long before its end a credential is no longer used.
        package var leeway = Duration.seconds(60)
        /// How many refreshes may begin within the window.
        package var mostRefreshes = 5
        package var window = Duration.seconds(30)
        /// How long a failure counts that may pass.
        package var pauseAfterFailure = Duration.seconds(10)
        package var pace = PostponementPace.standard

        package init() {}
    }

    /// What is remembered of a refresh that gave nothing.
    package struct Failure: Sendable {
        package enum Kind: Sendable, Equatable {
            case failed
            case timedOut
            case signedOut
            case tooMany
        }

        package let kind: Kind
        package let error: (any Error)?
        /// Whether another refresh may do better, later.
        package let mayPass: Bool
        /// After which time, at least.
        package let pause: Duration?

        package init(_ kind: Kind, error: (any Error)? = nil, mayPass: Bool = false, pause: Duration? = nil) {
            self.kind = kind
            self.error = error
            self.mayPass = mayPass
            self.pause = pause
        }
    }
}
