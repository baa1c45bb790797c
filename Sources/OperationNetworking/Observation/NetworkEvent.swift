// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An event that a network operation sends to a ``NetworkObserver``.
///
/// A property is `nil` if its value is not known at the time of the event. Future versions may add properties, kinds,
/// decisions and endings.
public struct NetworkEvent: Sendable {
    /// The kind of the event.
    public let kind: Kind
    /// The number of the operation, which is unique in the process.
    public let operationID: UInt64
    /// The name of the operation or of its class, at the time of the operation's first event.
    public let operationName: String
    /// The number of the attempt.
    ///
    /// The first attempt has the number 1, and the value before it is 0.
    public let attempt: Int
    /// The number of the request that the session sends within the attempt.
    ///
    /// The first request has the number 1. The value is 0 before the first request, and if the session does not report
    /// its requests.
    public let hop: Int
    /// The time of the event on the operation's clock.
    public let moment: OperationInstant
    /// The calendar date and time of the event.
    public let date: Date
    /// The time since the operation began, or `nil` if it did not begin.
    public var sinceOperationBegan: Duration?
    /// The time since the attempt began, or `nil` outside an attempt.
    public var sinceAttemptBegan: Duration?
    /// The time since the operation passed the attempt's request to the session.
    ///
    /// The value is `nil` outside an attempt and before the request is passed to the session.
    public var sinceSending: Duration?
    /// The last request that was prepared or sent.
    ///
    /// The description of the request contains no secrets, but its properties do.
    public var request: NetworkRequest?
    /// The status and the headers of the response of the hop or the attempt, after the session has received them.
    public var head: ResponseHead?
    /// The metrics of the session for the hop, or for the last transfer of the attempt.
    public var metrics: TransferMetrics?
    /// The ending of the attempt or the operation.
    public var ending: Ending?
    /// The error with which the attempt or the operation failed.
    public var error: NetworkError?
    /// The cause of the operation's cancellation.
    public var cancellationCause: CancellationCause?
    /// The reason why the request is waiting.
    public var waitReason: WaitReason?
    /// The decision after a failed attempt.
    public var decision: Decision?
    /// The body of the response after the end of an attempt, as far as it is in memory.
    public var responseBody: Data?
    /// The number of bytes of the response body that the operation had received by the end of an attempt.
    public var receivedBytes: Int64?

    /// The operation, if another object still references it.
    public var operation: (any AnyNetworkOperation)? { source?.operation }

    /// The object that reports the event, or `nil` for an event that was created for a test.
    private let source: NetworkObservation?
    /// The identity of the operation, for the record of its queue.
    package var operationObject: ObjectIdentifier? { source?.object }

    /// Creates an event, for tests of observers.
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
    /// The event as one line of text, without secrets.
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
    /// A kind of event.
    ///
    /// Future versions may add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation began.
        public static let operationBegan = Kind("operationBegan")
        /// The preparation of an attempt began.
        public static let attemptBegan = Kind("attemptBegan")
        /// The request is ready, but waits for a credential or for the network.
        public static let held = Kind("held")
        /// The wait for a credential or the network is over, and the operation creates the request again.
        public static let wentOn = Kind("wentOn")
        /// The operation is about to pass its request for the attempt to the session.
        public static let sending = Kind("sending")
        /// The session sends the first request of the attempt, or a request that follows a redirect or a challenge.
        ///
        /// The request contains the headers that the session adds, such as cookies. A session that does not follow
        /// redirects or add cookies, such as a `CurlSession` alone or a custom session, does not report hops.
        public static let hopBegan = Kind("hopBegan")
        /// The session received the headers of a response that is not the final response.
        ///
        /// Examples are a followed redirect, an answered challenge, the revalidation of a cached response, and a part
        /// of a file that does not match.
        public static let leftBehind = Kind("leftBehind")
        /// The request of the hop received its response, or will not receive one.
        public static let hopEnded = Kind("hopEnded")
        /// The complete request body was passed on for sending.
        ///
        /// This event is not sent for a body whose length is not known in advance.
        public static let bodySent = Kind("bodySent")
        /// The headers of the final response arrived, not the headers of a redirect that is followed.
        ///
        /// A download sends this event when its file is ready for writing, and again for each further part that it
        /// requests.
        public static let responded = Kind("responded")
        /// The attempt ended.
        public static let attemptEnded = Kind("attemptEnded")
        /// The operation decided how to continue after a failed attempt.
        ///
        /// This event is sent only if the operation has a policy that affects the decision.
        public static let decided = Kind("decided")
        /// The operation was suspended.
        public static let suspended = Kind("suspended")
        /// The operation was resumed.
        public static let resumed = Kind("resumed")
        /// The operation has its outcome.
        ///
        /// This event is the last one.
        public static let operationEnded = Kind("operationEnded")
    }

    /// An ending of an attempt or an operation.
    ///
    /// Future versions may add endings.
    public struct Ending: Sendable, Hashable, CustomStringConvertible {
        /// The name of the ending, suitable as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The attempt or the operation has a result.
        public static let success = Ending("success")
        /// The attempt or the operation failed.
        public static let failure = Ending("failure")
        /// The attempt or the operation was canceled.
        public static let cancelled = Ending("cancelled")
        /// The request of the attempt was not sent, because the request was outdated when it got its slot.
        public static let takenBack = Ending("takenBack")
    }
}

extension NetworkEvent {
    /// A decision about how to continue after a failed attempt.
    public struct Decision: Sendable, CustomStringConvertible {
        /// A kind of decision.
        ///
        /// Future versions may add kinds.
        public struct Kind: Sendable, Hashable, CustomStringConvertible {
            /// The name of the kind, suitable as a metric label.
            public let description: String

            private init(_ name: String) { description = name }

            /// No other attempt follows.
            public static let fail = Kind("fail")
            /// Another attempt follows.
            public static let again = Kind("again")
            /// Another attempt follows, and the failed attempt does not count, because the failure has another cause.
            public static let replay = Kind("replay")
            /// The operation is paused until a condition is met, such as a new credential.
            public static let putAside = Kind("putAside")
        }

        /// The kind of the decision.
        public let kind: Kind
        /// The time until the next attempt.
        public let pause: Duration?
        /// The reason why the operation waits.
        public let waitReason: WaitReason?
        /// The reason for the decision, if a ``Retry`` made it.
        public let reason: RetryReason?
        /// A description of the reason.
        public let note: String?

        /// Creates a decision, for tests of observers.
        public init(
            _ kind: Kind, pause: Duration? = nil, waitReason: WaitReason? = nil, reason: RetryReason? = nil,
            note: String? = nil
        ) {
            (self.kind, self.pause, self.waitReason) = (kind, pause, waitReason)
            (self.reason, self.note) = (reason, note)
        }

        init(_ answer: AttemptAnswer) {
            let (kind, pause, wait): (Kind, Duration?, WaitReason?) =
                switch answer.decision {
                case .fail: (.fail, nil, nil)
                case .again(let pause): (.again, pause, nil)
                case .replay(let pause): (.replay, pause, nil)
                case .pause(let reason): (.putAside, nil, reason)
                }
            self.init(kind, pause: pause, waitReason: wait, reason: answer.reason, note: answer.note)
        }

        /// The decision as one line of text.
        public var description: String { note ?? waitReason?.description ?? "\(kind)" }
    }
}
