// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Makes tasks that carry one request each to a server and one response back.
///
/// A session knows nothing of policy. It follows no redirect, answers no challenge, keeps no cookie, caches nothing and
/// repeats nothing that a server may have acted upon: all that is done above it, once, for every session.
public protocol NetworkSession: AnyObject, Sendable {
    /// Makes a task that waits for its first `resume()`.
    ///
    /// It never fails: what is wrong with the session is told to the receiver as the task's end.
    ///
    /// - Parameters:
    ///   - request: What to send. It was checked when it was made.
    ///   - receiver: What is told of everything that happens. The task holds it until it has told the end.
    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask
}

/// One request on its way, and its response.
///
/// Every call is allowed on any thread at any time, from within the receiver, too; none blocks. After the end they do
/// nothing. A task that is let go of goes on.
///
/// There are two brakes that do not know each other: `suspend` and `resume` are the user's and stop both directions;
/// `hold` and `proceed` are the receiver's and stop what comes in. Bytes come in when neither is set. None of the brakes
/// counts: two of one are as good as one.
public protocol NetworkTask: AnyObject, Sendable {
    /// Starts the task, or lets it go on where it stopped.
    func resume()

    /// Stops both directions on the wire until `resume()`; one that waits for a slot leaves the line.
    ///
    /// A call of the receiver that has begun is not undone. No time limit runs meanwhile. A server may lose its patience.
    func suspend()

    /// Ends the task as cancelled.
    ///
    /// When this returns nothing more is told but the end, with the code ``NetworkError/Code/cancelled``; only an end that
    /// was decided before stays what it was. A call of the receiver that another thread had decided upon before may still
    /// be on its way then; called from within the receiver, there is none. Tasks that were never
    /// resumed tell their end, too.
    func cancel()

    /// Stops the bytes that come in, until `proceed()`: for a receiver that has more than it can deal with.
    ///
    /// Called from within the receiver, nothing comes after that call but progress of the request's body, which goes on, and
    /// the end of a failure or a cancel. No time limit runs meanwhile.
    func hold()

    /// Lets bytes come in again.
    func proceed()
}

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

/// How one transfer spent its time, and over which connection.
///
/// The durations are counted from the first `resume()`; nil is what did not happen or is not known.
public struct TransferMetrics: Sendable, Hashable {
    /// When the wait for a slot was over.
    public var slotGranted: Duration?
    /// When the name was looked up.
    public var nameResolved: Duration?
    /// When the connection stood.
    public var connected: Duration?
    /// When TLS had been agreed upon.
    public var secured: Duration?
    /// When the head of the request was about to be sent.
    public var requestBegan: Duration?
    /// When the first byte of the response came.
    public var firstByte: Duration?
    /// When it was over.
    public var ended: Duration?
    /// How long the task was suspended or held by its receiver.
    public var paused: Duration = .zero
    /// Whether the connection had been used before.
    public var isConnectionReused = false
    /// The version of HTTP that was spoken.
    public var version: HTTPVersion?
    /// The address that answered and its port: `127.0.0.1:80`, `[::1]:80`.
    public var remoteAddress: String?
    /// Bytes of the request's body that were sent.
    public var bodyBytesSent: Int64 = 0
    /// Bytes of the response's body as they came over the wire.
    public var bodyBytesReceived: Int64 = 0
    /// Bytes of the response's heads.
    public var headerBytesReceived: Int64 = 0

    /// Makes an empty one, for sessions of your own and for tests.
    public init() {}
}

/// How much of a response's body came, counted as it goes over the wire, and how much was promised.
package struct BodyCount: Equatable, Sendable {
    private enum Promise: Equatable {
        case nothing
        case bytes(Int64)
        /// Whoever reads the chunks, or waits for the end of the connection, notices where it is.
        case delimited
        case unknown
    }

    private let promise: Promise
    private var count: Int64 = 0

    /// Before the head is there, nothing is known.
    package init() { promise = .unknown }

    /// What a head promises.
    package init(_ head: ResponseHeadParser.Head, method: String) {
        if method == "HEAD" || head.status == 204 || head.status == 304 {
            promise = .nothing
        } else if head.version < .http2, head.fields.contains("Transfer-Encoding") {
            promise = .delimited
        } else if let length = head.fields["Content-Length"] {
            // The head was refused if it states several that differ.
            let first = Int64(length) ?? length.split(separator: ",").first.flatMap { Int64(String($0).trimmedBlanks) }
            promise = first.map { .bytes($0) } ?? .unknown
        } else {
            promise = head.version < .http2 ? .delimited : .unknown
        }
    }

    package mutating func add(_ bytes: Int) { count += Int64(bytes) }

    /// Whether nothing is missing, as far as can be told where whoever read the body says nothing of its end.
    package var isComplete: Bool {
        switch promise {
        case .nothing: true
        case .bytes(let length): count >= length
        case .delimited: count > 0
        case .unknown: false
        }
    }
}

/// A task that can end without taking along what another attempt may go on with.
protocol AbandonableTask: NetworkTask {
    /// Ends it as cancelled, and keeps what it received.
    func giveUp()
}

extension NetworkTask {
    /// Ends the task of an attempt that may be followed by another.
    func endForAttempt() {
        if let task = self as? any AbandonableTask { task.giveUp() } else { cancel() }
    }
}
