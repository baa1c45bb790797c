// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Hands on what is told of a task, and keeps it.
final class ExchangeTap: NetworkReceiver {
    /// What was seen of an exchange by its end.
    struct Seen: Sendable {
        let request: NetworkRequest
        let body: BodyTap
        var head: ResponseHead?
        var received: BodyTally
        var trailers: HeaderFields = [:]
        var end = RecordedExchange.End.complete
    }

    private let receiver: any NetworkReceiver
    private let seen: Locked<Seen>
    private let tell: @Sendable (Seen) -> Void

    init(
        _ request: NetworkRequest, _ body: BodyTap, _ receiver: any NetworkReceiver, limit: Int,
        _ tell: @escaping @Sendable (Seen) -> Void
    ) {
        (self.receiver, self.tell) = (receiver, tell)
        seen = Locked(Seen(request: request, body: body, received: BodyTally(limit: limit)))
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        seen.withLock { $0.head = head }
        receiver.task(task, didReceive: head)
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        seen.withLock { $0.received.take(bytes) }
        receiver.task(task, didReceive: bytes)
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        seen.withLock { $0.trailers = fields }
        receiver.task(task, didReceiveTrailers: fields)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let seen = seen.withLock { seen in
            if let error { seen.end = error.code == .cancelled ? .cancelled : .failed(error) }
            return seen
        }
        // Before anybody can ask for it.
        tell(seen)
        receiver.task(task, didEndWith: error)
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        receiver.task(task, didReceiveInformational: head)
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        receiver.task(task, didSend: count, of: total)
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        receiver.task(task, didCollect: metrics)
    }

    func taskMayLeave(_ task: any NetworkTask) -> Bool { receiver.taskMayLeave(task) }

    var nextReceiver: (any NetworkReceiver)? { receiver }
}
