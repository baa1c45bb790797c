// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What is known of an attempt that failed.
package struct AttemptReport: Sendable {
    /// Which attempt it was, from 1.
    package let number: Int
    /// What was sent, or would have been; nil if it could not be made.
    package let request: NetworkRequest?
    /// The head of the response, if one came.
    package let head: ResponseHead?
    /// Why it failed.
    package let error: NetworkError
}

/// Decides what becomes of an attempt that failed: where retry and postponement stand.
package protocol AttemptPolicy: Sendable {
    /// How long one attempt may take; as long as it likes if nil.
    var attemptTimeout: Duration? { get }

    /// A task for an attempt is about to be made.
    func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost)

    /// Answers once, now or later, on any thread. An answer that comes after the end of the operation is not heard.
    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer) -> Void)

    /// The operation ended, maybe before it was answered, or while it waits: let go of what was kept for it.
    func forget()
}

extension AttemptPolicy {
    package var attemptTimeout: Duration? { nil }
    package func begins(_ number: Int, _ request: NetworkRequest, of host: any AttemptHost) {}
}

/// What an ``AttemptPolicy`` says.
package struct AttemptAnswer: Sendable {
    package let decision: AttemptMachine.Decision
    /// Why, for a log.
    package let note: String?
    /// The error of the operation, if it is not just that of the attempt.
    package let error: NetworkError?

    package init(_ decision: AttemptMachine.Decision, note: String? = nil, error: NetworkError? = nil) {
        self.decision = decision
        self.note = note
        self.error = error
    }
}

/// Is told of each step of an operation's attempts: what logs and traces are made of.
package protocol AttemptWatcher: Sendable {
    /// Called on the thread of the step, outside every lock.
    func attempt(_ number: Int, of operation: any AnyNetworkOperation, did event: AttemptEvent)
}

/// A step of an attempt.
package enum AttemptEvent: Sendable {
    /// A task is about to be resumed.
    case begins(NetworkRequest)
    case received(ResponseHead)
    case evaluated
    case failed(NetworkError)
    case decided(AttemptAnswer)
}
