// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An event that a network operation sends to a ``NetworkObserver``.
///
/// A property is `nil` if its value is not known when the event occurs. Future versions may add properties, kinds and
/// endings.
public struct NetworkEvent: Sendable {
    /// The kind of the event, such as the beginning of an attempt.
    public let kind: Kind
    /// A number that identifies the operation among all operations in the process.
    public let operationID: UInt64
    /// The name of the operation at the time of its first event, or the name of its class if the operation had no name.
    public let operationName: String
    /// The number of the attempt, starting at 1, or 0 before the first attempt.
    public let attempt: Int
    /// The number of the request within the attempt, which increases with each redirect and each challenge.
    ///
    /// The first request of an attempt has the number 1. The value is 0 before the first request, or if the session
    /// does not report its requests.
    public let hop: Int
    /// The time of the event according to the operation's clock.
    public let moment: OperationInstant
    /// The date and time of the event.
    public let date: Date
    /// The time since the operation began, or `nil` if the operation has not begun.
    public var sinceOperationBegan: Duration?
    /// The time since the attempt began, or `nil` if no attempt is in progress.
    public var sinceAttemptBegan: Duration?
    /// The time since the operation passed the attempt's request to the session.
    ///
    /// The value is `nil` if no attempt is in progress, or if the attempt has not passed its request to the session.
    public var sinceSending: Duration?
    /// The last request that the operation prepared or the session sent, or `nil` if there is no request yet.
    ///
    /// The description of the request does not contain secrets, but the properties of the request can contain secrets.
    public var request: NetworkRequest?
    /// The status and headers of the response to the current or last request, or `nil` if the session has not received
    /// them.
    public var head: ResponseHead?
    /// The metrics of the current request or of the last transfer of the attempt, or `nil` if no attempt is in progress
    /// or the session has not reported metrics.
    public var metrics: TransferMetrics?
    /// The way in which the attempt or the operation ended, or `nil` for other kinds of events.
    public var ending: Ending?
    /// The error with which the attempt or the operation failed, or `nil` if there is no error.
    public var error: NetworkError?
    /// The cause of the operation's cancellation, or `nil` if the operation was not canceled.
    public var cancellationCause: CancellationCause?
    /// The reason why the request is waiting, or `nil` for other kinds of events.
    public var waitReason: WaitReason?
    /// The decision about how to continue after a failed attempt, or `nil` for other kinds of events.
    package var decision: AttemptPolicyDecision?
    /// The response body if an attempt succeeds, the first bytes of the body if an attempt fails, or `nil` if the body
    /// is not in memory.
    public var responseBody: Data?
    /// The number of response body bytes that the operation had received when the attempt ended, or `nil` for other kinds
    /// of events.
    public var receivedBytes: Int64?

    /// The operation that sent the event, or `nil` if the operation no longer exists.
    public var operation: (any AnyNetworkOperation)? { source?.operation }

    /// The object that reports the event, or `nil` for an event that was created for a test.
    private let source: NetworkObservation?
    /// The identity of the operation, for the record of its queue.
    package var operationObject: ObjectIdentifier? { source?.object }

    /// Creates a network event, for testing observers.
    ///
    /// - Parameters:
    ///   - kind: The kind of the event.
    ///   - operationID: The identifier of the operation. The default is 1.
    ///   - operationName: The name of the operation. The default is an empty string.
    ///   - attempt: The number of the attempt. The default is 1.
    ///   - hop: The number of the request within the attempt. The default is 0.
    ///   - moment: The time of the event according to the operation's clock. The default is the clock's origin.
    ///   - date: The date and time of the event. The default is the beginning of 1970 in UTC.
    public init(
        _ kind: Kind, operationID: UInt64 = 1, operationName: String = "", attempt: Int = 1, hop: Int = 0,
        moment: OperationInstant = OperationInstant(offset: .zero), date: Date = Date(timeIntervalSince1970: 0)
    ) {
        (self.kind, self.operationID, self.operationName) = (kind, operationID, operationName)
        (self.attempt, self.hop, self.moment, self.date) = (attempt, hop, moment, date)
        source = nil
    }

    init(
        _ kind: Kind, _ attempt: Int, _ hop: Int, _ moment: OperationInstant, by source: NetworkObservation?,
        _ name: String
    ) {
        (self.kind, self.attempt, self.hop, self.moment) = (kind, attempt, hop, moment)
        (self.source, operationID, operationName) = (source, source?.number ?? 1, name)
        date = Date()
    }
}

extension NetworkEvent: CustomStringConvertible {
    /// A description of the event in one line, without secrets.
    public var description: String {
        var words = ["#\(operationID) \(operationName)", "\(kind)"]
        if attempt > 0 { words.append("attempt \(attempt)") }
        if hop > 0 { words.append("hop \(hop)") }
        if let request { words.append("\(request.summary)") }
        if let head { words.append("\(head.status)") }
        if let ending { words.append("\(ending)") }
        if let error { words.append("\(error.code)") }
        if let waitReason { words.append("\(waitReason)") }
        if let decision { words.append("\(decision)") }
        if let cancellationCause { words.append("\(cancellationCause.code)") }
        return words.joined(separator: ", ").printable()
    }
}

extension NetworkEvent {
    /// A kind of network event.
    ///
    /// Future versions may add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the event kind.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation began its work.
        public static let operationBegan = Kind("operationBegan")
        /// The operation began to prepare an attempt.
        public static let attemptBegan = Kind("attemptBegan")
        /// The request is ready, but the operation waits before it sends the request, for example for a credential, the
        /// network or a rate limit.
        public static let held = Kind("held")
        /// The operation no longer waits and creates its request again.
        public static let wentOn = Kind("wentOn")
        /// The operation is about to pass the request of the attempt to the session.
        public static let sending = Kind("sending")
        /// The session began to send a request, which is the first request of the attempt or follows a redirect or a
        /// challenge.
        ///
        /// The ``NetworkEvent/request`` contains the headers that the session adds, such as cookies. An operation sends
        /// this event only if an ``ExchangeSession``, such as the one in a default session, handles the request. For
        /// example, an operation whose session is a plain ``CurlSession`` does not send the event.
        public static let hopBegan = Kind("hopBegan")
        /// The session received the headers of a response that is not the final response of the attempt.
        ///
        /// For example, the response is a redirect, a challenge, the revalidation of a cached response, or a part of a
        /// file that does not match the received data.
        public static let leftBehind = Kind("leftBehind")
        /// The request that began with a ``hopBegan`` event received its response or will not receive a response.
        public static let hopEnded = Kind("hopEnded")
        /// The session has accepted the complete request body for sending.
        ///
        /// The operation does not send this event for a body whose length is not known in advance.
        public static let bodySent = Kind("bodySent")
        /// The session received the headers of the final response.
        ///
        /// A download operation sends this event when its file is ready for writing, and again for each additional part
        /// of the file that the operation requests.
        public static let responded = Kind("responded")
        /// The attempt ended with a success, a failure or a cancellation, or without sending its request.
        public static let attemptEnded = Kind("attemptEnded")
        /// The operation decided whether to make another attempt after a failed attempt.
        ///
        /// The operation sends this event only if it has a policy that can affect the decision, such as a ``Retry``.
        /// The description of the event contains the decision. To read the decision of a ``Retry``, set the
        /// operation's `retryHandler`.
        public static let decided = Kind("decided")
        /// The program suspended the operation.
        public static let suspended = Kind("suspended")
        /// The program resumed the operation.
        public static let resumed = Kind("resumed")
        /// The operation ended with a success, a failure or a cancellation.
        ///
        /// The operation sends no events after this event.
        public static let operationEnded = Kind("operationEnded")
    }

    /// A way in which an attempt or an operation can end.
    ///
    /// Future versions may add endings.
    public struct Ending: Sendable, Hashable, CustomStringConvertible {
        /// The name of the ending, which you can use as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The attempt or the operation succeeded.
        public static let success = Ending("success")
        /// The attempt or the operation failed.
        public static let failure = Ending("failure")
        /// The attempt or the operation was canceled.
        public static let cancelled = Ending("cancelled")
        /// The session did not send the request, because the credential changed or the server requested a pause while
        /// the request waited for other requests in the session.
        public static let takenBack = Ending("takenBack")
    }
}
