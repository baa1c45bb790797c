// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Is told of each request that an exchange sends, beside the receiver of its answer.
package protocol HopWatcher: AnyObject, Sendable {
    /// The session sends that: the request as it was made, or one that follows from a response.
    func hopBegins(_ request: NetworkRequest)
    /// All of its body was handed over.
    func sentBody()
    /// The response to it is not the answer.
    func left(_ head: ResponseHead)
    /// The response to it is the answer, or a part of that: of a receiver that tells it later.
    func answered(_ head: ResponseHead)
    /// So it spent its time.
    func measured(_ metrics: TransferMetrics)
    /// It is over, and what comes next is no part of it.
    func hopIsOver()
}

/// The last in a row of receivers, where somebody wants to be told of each request.
///
/// It is known by its class, for it is looked for in each exchange: to ask a receiver for a protocol takes longer.
package final class HopPost: NetworkReceiver {
    /// One may hand on to itself.
    private static let longestRow = 16

    private let watcher: any HopWatcher

    package init(_ watcher: any HopWatcher) { self.watcher = watcher }

    package func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    package func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    package func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}

    /// Who wants to be told of each request for that receiver, or for those to which it hands on; nil where nobody does.
    package static func watcher(behind receiver: any NetworkReceiver) -> (any HopWatcher)? {
        var next = receiver.nextReceiver
        for _ in 0..<longestRow {
            guard let present = next else { return nil }
            if let post = present as? HopPost { return post.watcher }
            next = present.nextReceiver
        }
        return nil
    }
}
