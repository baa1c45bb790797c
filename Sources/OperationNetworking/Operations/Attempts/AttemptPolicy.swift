// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A description of a failed attempt, for the policies.
package struct AttemptReport: Sendable {
    /// The number of the attempt, starting at 1.
    package let number: Int
    /// The number of earlier attempts that are not counted, because they were replays or because a download made
    /// progress.
    package let replays: Int
    /// The request that was sent or would have been sent, or nil if it could not be created.
    package let request: NetworkRequest?
    /// The headers of the response, if the attempt received any.
    package let head: ResponseHead?
    /// The reason why the attempt failed.
    package let error: NetworkError
    /// The time since the first counted attempt, without the time in which the operation was suspended or paused.
    package let elapsed: Duration
    /// The number of attempts so far in which a download made progress, including this one.
    package let advances: Int
    /// The records of the earlier attempts.
    package let earlier: [AttemptRecord]

    /// Returns the same report with another error.
    func with(_ error: NetworkError) -> AttemptReport {
        AttemptReport(
            number: number, replays: replays, request: request, head: head, error: error, elapsed: elapsed,
            advances: advances, earlier: earlier)
    }
}

extension FailedAttempt {
    init(_ report: AttemptReport) {
        self.init(
            number: report.number, replays: report.replays, error: report.error, request: report.request,
            head: report.head, elapsed: report.elapsed, earlier: report.earlier)
    }
}

/// A policy that decides how to continue after a failed attempt, such as a retry or a pause for a new credential.
///
/// An operation may have several policies. They are asked in the order of their ranks, until one of them returns a
/// decision.
package protocol AttemptPolicy: Sendable {
    /// The position of the policy in the ``AttemptRank`` order, where lower ranks are asked first.
    var rank: Int { get }

    /// The maximum duration of one attempt, or nil for no limit.
    var attemptTimeout: Duration? { get }

    /// Notifies the policy that the task of an attempt is about to be created, and returns an error to make the
    /// attempt fail.
    func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) -> NetworkError?

    /// Notifies the policy that an attempt was withdrawn before its request was sent.
    ///
    /// The attempt counts as not begun. Another attempt follows with a new request. This method is called on the
    /// thread of the session.
    func takenBack(_ number: Int)

    /// Examines the headers of a response as soon as they arrive, and returns whether the response is a failure
    /// regardless of its status.
    ///
    /// The headers may arrive when the attempt is over and the next one has begun.
    func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool

    /// Decides about a failed attempt.
    ///
    /// The policy calls `answer` once, immediately or later, on any thread. It passes nil if the failure is not its
    /// concern.
    ///
    /// A policy that pauses the operation (`pause`) calls `answer` again later, with another attempt or with a
    /// failure. An answer is ignored if the operation has ended, and a `pause` is ignored if another answer came
    /// first.
    func decide(_ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping AttemptPolicyDecision.Handler)

    /// Releases everything that the policy keeps for the operation, which has ended, possibly while it waits for a
    /// decision.
    func forget()
}

extension AttemptPolicy {
    package var rank: Int { AttemptRank.retry }
    package var attemptTimeout: Duration? { nil }
    package func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) -> NetworkError? { nil }
    package func takenBack(_ number: Int) {}
    package func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool { false }
}

/// The place of an operation in a line, which the operation leaves when it ends.
package struct QueuePosition<Place> {
    private var place: Place?
    private var isForgotten = false

    package init() {}

    /// Stores a new place, and returns `false` if the operation has ended, so that the caller must leave the place.
    package mutating func take(_ new: Place) -> Bool {
        if !isForgotten { place = new }
        return !isForgotten
    }

    /// Removes the place, because the turn of the operation has come.
    package mutating func clear() { place = nil }

    /// Notes that the operation has ended, and returns the place that it must leave.
    package mutating func forget() -> Place? {
        isForgotten = true
        return exchange(&place, with: nil)
    }
}

/// The order in which gates and policies are asked.
///
/// The gate that adds a credential to the request is the last gate that may hold the request back for long. So the
/// credential is current.
package enum AttemptRank {
    /// The user paused the operation explicitly.
    package static let manual = 10
    /// The network is not available.
    package static let connectivity = 20
    /// The credential was rejected.
    package static let credential = 30
    /// The failure may be temporary.
    package static let retry = 40
}

/// The decision of an ``AttemptPolicy``.
package struct AttemptPolicyDecision: Sendable {
    package typealias Handler = @Sendable (AttemptPolicyDecision?) -> Void

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

/// A gate that may hold back a prepared request, for example until there is a credential or a network.
package protocol AttemptGate: Sendable {
    /// The position of the gate in the ``AttemptRank`` order, where lower ranks are asked first.
    var rank: Int { get }

    /// Returns the request to send, if the gate can decide immediately.
    ///
    /// If the method returns nil, ``clear(_:for:_:)`` is called.
    ///
    /// - Throws: An error that refuses the request.
    func pass(_ request: NetworkRequest, for host: any AttemptHost) throws(NetworkError) -> NetworkRequest?

    /// Decides about a request.
    ///
    /// The gate calls `answer` once, immediately or later, on any thread. After `hold`, it calls `answer` a second
    /// time.
    func clear(_ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping AttemptGateDecision.Handler)

    /// Returns whether the last request of the attempt may still be sent, because it may have waited long for a
    /// connection.
    ///
    /// This method is called on the thread of the session. If it returns false, the request is created again, and all
    /// gates are asked again.
    func maySend(_ number: Int) -> Bool

    /// Restricts the credentials of realms without origins to one origin, because the next request may have another
    /// one.
    ///
    /// - Parameter origin: The origin, or `nil` if a base has none, so that no origin receives the credentials.
    func keepCredentials(at origin: RequestOrigin?)

    /// Releases everything that the gate keeps for the operation, which has ended, possibly while its request is held
    /// back.
    func forget()
}

extension AttemptGate {
    package func keepCredentials(at origin: RequestOrigin?) {}

    package func maySend(_ number: Int) -> Bool { true }

    package func pass(
        _ request: NetworkRequest, for host: any AttemptHost
    ) throws(NetworkError) -> NetworkRequest? { nil }
}

/// The decision of an ``AttemptGate``.
package enum AttemptGateDecision: Sendable {
    package typealias Handler = @Sendable (AttemptGateDecision) -> Void

    /// Send this request.
    case go(NetworkRequest)
    /// Hold the request back, while the operation rests.
    case hold(WaitReason)
    /// Stop waiting, create the request again and ask all gates again.
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
