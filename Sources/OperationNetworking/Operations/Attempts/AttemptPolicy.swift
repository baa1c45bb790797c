// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What is known of an attempt that failed.
package struct AttemptReport: Sendable {
    /// Which attempt it was, from 1.
    package let number: Int
    /// How many of the attempts before it do not count: they were not to blame, or a download got somewhere in them.
    package let replays: Int
    /// What was sent, or would have been; nil if it could not be made.
    package let request: NetworkRequest?
    /// The head of the response, if one came.
    package let head: ResponseHead?
    /// Why it failed.
    package let error: NetworkError
    /// How long ago the first attempt that counts began, without the time for which the operation was suspended or put aside.
    package let elapsed: Duration
    /// How often a download got somewhere by now, this attempt included.
    package let advances: Int
    /// The attempts before this one.
    package let earlier: [AttemptRecord]

    /// The same attempt, with what it came to in the end.
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

/// Decides what becomes of an attempt that failed: where retry and postponement stand.
///
/// An operation may have several. They are asked in the order of their ranks, until one of them knows what to do.
package protocol AttemptPolicy: Sendable {
    /// Those with a lower one are asked first: see ``AttemptRank``.
    var rank: Int { get }

    /// How long one attempt may take; as long as it likes if nil.
    var attemptTimeout: Duration? { get }

    /// A task for an attempt is about to be made; returns why that is not to be, if so: the attempt fails with it.
    func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) -> NetworkError?

    /// That attempt was taken back unsent, and counts as if it had not begun: another one follows, with its
    /// request made anew.
    ///
    /// Called on the thread of the session.
    func takenBack(_ number: Int)

    /// The head of a response to that attempt came, of which that is said soon; whether it is a failure, whatever its status.
    ///
    /// It may come when the attempt is over and the next one is under way.
    func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool

    /// Answers once, now or later, on any thread; nil if it is none of its business.
    ///
    /// Whoever puts the operation aside (`park`) answers again, in time: with another attempt, or with its failure. An
    /// answer that comes after the end of the operation is not heard, nor is a `park` that another answer overtook.
    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void)

    /// The operation ended, maybe before it was answered, or while it waits: let go of what was kept for it.
    func forget()
}

extension AttemptPolicy {
    package var rank: Int { AttemptRank.retry }
    package var attemptTimeout: Duration? { nil }
    package func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) -> NetworkError? { nil }
    package func takenBack(_ number: Int) {}
    package func refuses(_ head: ResponseHead, of request: NetworkRequest, _ number: Int) -> Bool { false }
}

/// In which order those are asked who have a say about attempts.
///
/// Of those who may hold back a request, the one that puts a credential into it is the last, so that it is the present one.
package enum AttemptRank {
    /// What the user puts aside by hand.
    package static let hand = 10
    /// The network is gone.
    package static let connectivity = 20
    /// The credential was refused.
    package static let credential = 30
    /// It may pass.
    package static let retry = 40
}

/// What an ``AttemptPolicy`` says.
package struct AttemptAnswer: Sendable {
    package let decision: AttemptMachine.Decision
    /// Why, for a log.
    package let note: String?
    /// The error of the operation, if it is not just that of the attempt.
    package let error: NetworkError?
    /// The reason of whoever repeats requests.
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

/// May hold back a request that is ready: until there is a credential for it, or a network.
package protocol AttemptGate: Sendable {
    /// Those with a lower one are asked first: see ``AttemptRank``.
    var rank: Int { get }

    /// What may leave, if that is known at once; else nil, and ``clear(_:for:_:)`` is asked. What it throws refuses the
    /// request.
    func pass(_ request: NetworkRequest, for host: any AttemptHost) throws(NetworkError) -> NetworkRequest?

    /// Answers once, now or later, on any thread; after `hold` a second time.
    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void)

    /// Whether what it let pass last for that attempt may still be sent: it may have waited long for a connection.
    ///
    /// Called on the thread of the session. If not, the request is made anew, and all gates are asked again.
    func mayLeave(_ number: Int) -> Bool

    /// Keeps the credentials of realms that name no origins at one origin: the next request may go elsewhere.
    ///
    /// - Parameter origin: The origin; `nil` if a base has none, so that none gets them.
    func keepCredentials(at origin: RequestOrigin?)

    /// The operation ended, maybe while it is held: let go of what was kept for it.
    func forget()
}

extension AttemptGate {
    package func keepCredentials(at origin: RequestOrigin?) {}

    package func mayLeave(_ number: Int) -> Bool { true }

    package func pass(
        _ request: NetworkRequest, for host: any AttemptHost
    ) throws(NetworkError) -> NetworkRequest? { nil }
}

/// What an ``AttemptGate`` says.
package enum AttemptClearance: Sendable {
    /// This is what may leave.
    case go(NetworkRequest)
    /// Nothing for now: the operation rests.
    case hold(WaitReason)
    /// It need not wait any more: the request is made anew, and all gates are asked again.
    case again
    /// It may not leave at all, and the attempt failed.
    case refuse(NetworkError)
}

extension NetworkError {
    /// A response that would be a success, were it not for what a policy reads in its head.
    static func refusedByPolicy(_ head: ResponseHead) -> NetworkError {
        NetworkError(
            code: .responseRefused, phase: .evaluating,
            message:
                "The server answered \(head.status), and says beside it that the credential is of no use (isRejected).")
    }
}
