// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Something that a network operation did, for a ``NetworkObserver``.
///
/// What is not known when it happens is nil. More properties, kinds, decisions and endings may be added.
public struct NetworkEvent: Sendable {
    /// What happened.
    public let kind: Kind
    /// The number of the operation: no two of a process have the same.
    public let operationID: UInt64
    /// The name of the operation, or of its class, when it told its first event.
    public let operationName: String
    /// Which attempt it is about, from 1; 0 before the first.
    public let attempt: Int
    /// Which request of the attempt as the session sends it, from 1; 0 before the first, and where the session does not tell.
    public let hop: Int
    /// When it happened, on the operation's clock.
    public let moment: OperationInstant
    /// When it happened, by the calendar.
    public let date: Date
    /// How long ago the operation began; nil if it did not.
    public var sinceOperationBegan: Duration?
    /// How long ago the attempt began; nil outside of one.
    public var sinceAttemptBegan: Duration?
    /// How long ago the attempt's request was handed to the session; nil outside of an attempt, and before that.
    public var sinceSending: Duration?
    /// The last request that was made ready, or sent; its description shows no secrets, but its properties do.
    public var request: NetworkRequest?
    /// The head of the response of the hop or attempt, once it came.
    public var head: ResponseHead?
    /// What the session measured of the hop, or of the last transfer of the attempt.
    public var metrics: TransferMetrics?
    /// How the attempt or the operation ended.
    public var ending: Ending?
    /// Why it failed.
    public var error: NetworkError?
    /// Why the operation was cancelled.
    public var cancellationCause: CancellationCause?
    /// What the request is held back for.
    public var waitReason: WaitReason?
    /// What was decided after an attempt that failed.
    public var decision: Decision?
    /// The body of the response, of an attempt that ended, as far as it is in memory.
    public var responseBody: Data?
    /// How many bytes of the response's body the operation had received, of an attempt that ended.
    public var receivedBytes: Int64?

    /// The operation, as long as somebody else keeps it.
    public var operation: (any AnyNetworkOperation)? { source?.operation }

    /// Who tells it; nil of an event that was made for a test.
    private let source: NetworkObservation?
    /// Which object the operation is, for the record of its queue.
    var operationObject: ObjectIdentifier? { source?.object }

    /// Makes an event, for tests of observers.
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
    /// The event in a line, without secrets.
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
