// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Is told what happens to one task, in this order: informational heads, the head, bytes, trailers, metrics, the end.
///
/// The end comes exactly once for each task that was resumed or cancelled, and nothing comes after it; everything else
/// may be missing. Progress of the upload comes whenever it is made, before the metrics.
///
/// Calls come on a thread that the session shares among all its tasks: never two at once for one task. They must not
/// block, not even for a file: while one runs, nothing moves. Whoever needs time calls the task's `hold()` before it
/// hands the bytes over, and `proceed()` when it wants more.
public protocol NetworkReceiver: AnyObject, Sendable {
    /// The head of the response, whatever its status from 200 on: redirects and challenges as well.
    func task(_ task: any NetworkTask, didReceive head: ResponseHead)

    /// The next bytes of the body, decompressed if the request said so. They are there only for the length of the call.
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer)

    /// It is over: nil if the response is complete, whatever its status; otherwise why not.
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?)

    /// A head with a status from 100 to 199, which comes before the real one. Ignored unless implemented.
    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead)

    /// Fields that came after the body. Ignored unless implemented.
    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields)

    /// So many bytes of the request's body were taken to be sent, of so many if that is known. Ignored unless
    /// implemented. The number never becomes smaller, not even if the session has to send the body anew.
    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?)

    /// How the time was spent. Ignored unless implemented.
    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics)

    /// Whether the request may still be sent, now that its turn has come: the last moment at which that can be said. True
    /// unless implemented.
    ///
    /// A `CurlSession`, and a `URLSession` on Linux, ask when the first request of a task gets its place among those
    /// that may be under way; other sessions do not. A request that may have waited long for that can be taken back so:
    /// it ends as if it were cancelled, and the server sees nothing of it. One that is connecting by then leaves.
    func taskMayLeave(_ task: any NetworkTask) -> Bool

    /// The receiver to which this one hands on what it is told. Nil unless implemented.
    ///
    /// A session that stands before another one, and puts a receiver of its own before that of an operation, names the
    /// operation's here. Observers then learn of each request that is sent beneath, also of those that follow from
    /// redirects and challenges. It is asked once, when a task is made.
    var nextReceiver: (any NetworkReceiver)? { get }
}

extension NetworkReceiver {
    /// Does nothing.
    public func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {}

    /// Does nothing.
    public func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {}

    /// Does nothing.
    public func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {}

    /// Does nothing.
    public func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {}

    /// True.
    public func taskMayLeave(_ task: any NetworkTask) -> Bool { true }

    /// Nil.
    public var nextReceiver: (any NetworkReceiver)? { nil }
}
