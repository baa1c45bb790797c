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

/// A receiver that knows who wants to be told of each request.
package protocol HopWatched {
    /// Nil where nobody does.
    var hopWatcher: (any HopWatcher)? { get }
}
