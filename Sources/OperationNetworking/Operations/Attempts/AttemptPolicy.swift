// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A policy of one operation, such as a retry, a wait for the network, or a credential.
///
/// A policy can hold a request back or change it before it is sent, and decides how to continue after a failed attempt.
/// This class does none of this, and a subclass overrides the methods that it needs.
package class AttemptPolicy: @unchecked Sendable {
    // Sendable: the class has no state, and the state of its subclasses is behind locks.

    package typealias GateAnswer = @Sendable (AttemptGateDecision) -> Void
    package typealias PolicyAnswer = @Sendable (AttemptPolicyDecision?) -> Void

    init() {}

    /// The maximum duration of one attempt, or nil for no limit.
    ///
    /// Only the value of the retry policy counts.
    package var attemptTimeout: Duration? { nil }

    /// Returns the request to send, if the policy can decide immediately.
    ///
    /// If the method returns nil, ``clear(_:for:_:)`` is called.
    ///
    /// - Throws: An error that refuses the request.
    package func pass(_ request: NetworkRequest, for owner: any AttemptOwner) throws(NetworkError) -> NetworkRequest? {
        request
    }

    /// Decides about a request, for example when there is a credential or a network.
    ///
    /// The policy calls `answer` once, immediately or later, on any thread. After `hold`, it calls `answer` a second
    /// time.
    package func clear(_ request: NetworkRequest, for owner: any AttemptOwner, _ answer: @escaping GateAnswer) {
        answer(.go(request))
    }

    /// Notifies the policy that the task of an attempt is about to be created, and returns an error to make the
    /// attempt fail.
    package func begins(_ number: Int, _ request: NetworkRequest, of owner: any AttemptOwner) -> NetworkError? { nil }

    /// Restricts the credentials of realms without origins to one origin, because the next request may have another
    /// one.
    ///
    /// - Parameter origin: The origin, or `nil` if a base has none or if the operation belongs to two bases with
    ///   different origins. If the value is `nil`, no origin receives the credentials.
    package func keepCredentials(at origin: RequestOrigin?) {}

    /// Returns whether the last request of the attempt may still be sent, because it may have waited long for a
    /// connection.
    ///
    /// This method is called on the thread of the session. If it returns false, the request is created again, and all
    /// policies are asked again.
    package func maySend(_ number: Int) -> Bool { true }

    /// Notifies the policy that an attempt was withdrawn before its request was sent.
    ///
    /// The attempt counts as not begun. Another attempt follows with a new request. This method is called on the
    /// thread of the session.
    package func takenBack(_ number: Int) {}

    /// Handles the headers of a response as soon as they arrive, and returns whether the response is a failure
    /// regardless of its status.
    ///
    /// The policy may act on the headers. For example, the `CredentialAgent` starts a refresh. The headers may arrive
    /// when the attempt is over and the next one has begun.
    package func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool { false }

    /// Decides about a failed attempt.
    ///
    /// The policy calls `answer` once, immediately or later, on any thread. It passes nil if the failure is not its
    /// concern.
    ///
    /// A policy that pauses the operation (`pause`) calls `answer` again later, with another attempt or with a
    /// failure. An answer is ignored if the operation has ended, and a `pause` is ignored if another answer came
    /// first.
    package func decide(_ attempt: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        answer(nil)
    }

    /// Releases everything that the policy keeps for the operation, which has ended, possibly while it waits for a
    /// decision.
    package func forget() {}
}

/// The policies of one operation.
///
/// The policies are asked in the order of their kinds, before a request is sent and after an attempt failed. After a
/// failure, the first policy that returns a decision determines how to continue.
package struct AttemptPolicies: Sendable {
    package enum Kind: Int, CaseIterable {
        /// Pauses the operation because the user wants it, and is asked first.
        case manual
        /// Waits for the network.
        case offline
        /// Waits until the pause of an origin ends.
        case pause
        /// Adds the credential.
        ///
        /// A request can wait for the network or a pause before this policy is asked, so the credential is current.
        case credential
        /// Waits for a token of the rate limit.
        ///
        /// No other policy holds a request back after it has a token.
        case rate
        /// Sends the request again after a failure that may be temporary.
        case retry
    }

    // An array, because each step of an attempt copies the policies, and this copy retains only one object.
    private var list = [AttemptPolicy?](repeating: nil, count: Kind.allCases.count)

    package subscript(kind: Kind) -> AttemptPolicy? {
        get { list[kind.rawValue] }
        set { list[kind.rawValue] = newValue }
    }

    /// Returns the first policy at this position or after it, and its position.
    func next(from index: Int) -> (policy: AttemptPolicy, index: Int)? {
        for index in index..<list.count {
            if let policy = list[index] { return (policy, index) }
        }
        return nil
    }

    /// Calls a closure with each policy.
    func forEach(_ body: (AttemptPolicy) -> Void) {
        for policy in list {
            if let policy { body(policy) }
        }
    }

    /// Notifies the policies that the request is about to be sent, and returns the error of the first one that
    /// refuses it.
    func refusal(of request: NetworkRequest, _ number: Int, _ owner: any AttemptOwner) -> NetworkError? {
        var refusal: NetworkError?
        forEach { if refusal == nil { refusal = $0.begins(number, request, of: owner) } }
        return refusal
    }

    /// Passes the headers to the policies as early as possible, and returns whether one of them refuses the response.
    func refuse(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool {
        guard mayTryAgain else { return false }
        var isRefused = false
        forEach { if $0.refuses(head, of: request, number) { isRefused = true } }
        return isRefused
    }

    /// Whether a policy may hold the request back or change it.
    var mayHoldBack: Bool {
        self[.offline] != nil || self[.pause] != nil || self[.credential] != nil || self[.rate] != nil
    }

    /// Whether a policy may start another attempt after a failure.
    var mayTryAgain: Bool {
        self[.retry] != nil || self[.offline] != nil || self[.credential] != nil || self[.manual] != nil
    }
}

/// The decision of an ``AttemptPolicy`` about a failed attempt.
package struct AttemptPolicyDecision: Sendable {
    package let decision: AttemptMachine.Decision
    /// The reason, for a log.
    package let note: String?
    /// The error of the operation, if it differs from the error of the attempt.
    package let error: NetworkError?
    /// The reason of the policy that repeats the request.
    package let reason: RetryReason?

    package init(
        _ decision: AttemptMachine.Decision, note: String? = nil, error: NetworkError? = nil,
        reason: RetryReason? = nil
    ) {
        self.decision = decision
        self.note = note
        self.error = error
        self.reason = reason
    }
}

extension AttemptPolicyDecision: CustomStringConvertible {
    /// A description of the decision in one line.
    package var description: String { note ?? decision.waitReason?.description ?? decision.name }
}

/// The decision of an ``AttemptPolicy`` about a request before it is sent.
package enum AttemptGateDecision: Sendable {
    /// Send this request.
    case go(NetworkRequest)
    /// Hold the request back, while the operation rests.
    case hold(WaitReason)
    /// Stop waiting, create the request again and ask all policies again.
    case again
    /// Refuse the request, so that the attempt fails.
    case refuse(NetworkError)
}

extension NetworkError {
    /// Returns the error for a response with an accepted status that a policy refuses.
    static func refusedByPolicy(_ head: ResponseHead) -> NetworkError {
        NetworkError(
            code: .responseRefused, phase: .evaluating,
            message:
                "The server answered \(head.status), but the response rejects the credential (isRejected).")
    }
}
