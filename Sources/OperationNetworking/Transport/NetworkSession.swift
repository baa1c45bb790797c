// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A session whose tasks each send one request to a server and receive one response.
///
/// A session only transfers requests and responses. It does not follow redirects, answer challenges, store cookies,
/// cache responses or repeat a request that a server may have processed. Other parts of OperationKit, such as
/// ``ExchangeSession``, add these features to every session in the same way.
public protocol NetworkSession: AnyObject, Sendable {
    /// Creates a task that waits for its first `resume()`.
    ///
    /// This method always returns a task. If the session cannot send the request, the task ends with an error.
    ///
    /// - Parameters:
    ///   - request: The request to send, which was checked when it was created.
    ///   - receiver: The object that receives the events of the task. The task keeps the receiver until the task has
    ///     reported its end.
    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask
}

/// A task of a ``NetworkSession``, which sends one request and receives its response.
///
/// You can call each method on any thread and at any time, including from a method of the receiver. No method blocks.
/// After the end of the task, the methods have no effect. A task continues if you release it.
///
/// A task can be paused in two independent ways. `suspend()` and `resume()` belong to the user and pause both
/// directions. `hold()` and `proceed()` belong to the receiver and pause incoming bytes. Bytes arrive only while the
/// task is neither suspended nor held. The calls are not counted, so calling a method twice is the same as calling it
/// once.
public protocol NetworkTask: AnyObject, Sendable {
    /// Starts the task, or continues it after `suspend()`.
    func resume()

    /// Pauses both directions of the transfer until `resume()`.
    ///
    /// A task that waits for a slot leaves the queue. A call of the receiver that has already begun continues. Timeouts
    /// do not run while the task is suspended, but the server may close the connection.
    func suspend()

    /// Ends the task as canceled.
    ///
    /// After this method returns, the receiver gets no event except the end, with the code
    /// ``NetworkError/Code/cancelled``. If another end was decided before, that end is reported instead. A call of the
    /// receiver that another thread has already decided to make may still be in progress. If you call this method from
    /// the receiver, there is no such call. A task that was never resumed also reports its end.
    func cancel()

    /// Pauses incoming bytes until `proceed()`, for a receiver that cannot take more bytes.
    ///
    /// If you call this method from the receiver, only progress of the request's body and an end by failure or
    /// cancellation can follow after that call. The body of the request continues to be sent. Timeouts do not run while
    /// the task is held.
    func hold()

    /// Continues incoming bytes after `hold()`.
    func proceed()
}

/// An object that receives the events of one task.
///
/// The events come in this order: informational responses, response headers, bytes, trailers, metrics, and the end. The
/// end comes exactly once for each task that was resumed or canceled, and no event follows it. Each other event may be
/// missing. Upload progress can come at any time before the metrics.
///
/// A session calls these methods on a thread that it shares among all its tasks, one call at a time for each task. The
/// methods must not block, not even to access a file, because no task of the session makes progress during a call. To
/// process bytes on another thread, call the task's `hold()` before you pass them on, and `proceed()` when you are
/// ready for more.
public protocol NetworkReceiver: AnyObject, Sendable {
    /// Tells the receiver that the response headers arrived.
    ///
    /// The status is 200 or above, and can also be that of a redirect or a challenge.
    func task(_ task: any NetworkTask, didReceive head: ResponseHead)

    /// Tells the receiver that bytes of the body arrived.
    ///
    /// The bytes are decompressed if the request asks for that. The buffer is valid only during the call.
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer)

    /// Tells the receiver that the task ended.
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - error: The reason for the failure, or `nil` if the response is complete, regardless of its status.
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?)

    /// Tells the receiver that an informational response with a status from 100 to 199 arrived.
    ///
    /// The default implementation does nothing.
    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead)

    /// Tells the receiver that trailers arrived after the body.
    ///
    /// The default implementation does nothing.
    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields)

    /// Tells the receiver how many bytes of the request's body the session has accepted for sending.
    ///
    /// The default implementation does nothing.
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - count: The number of bytes so far. It never decreases, even if the session has to send the body again.
    ///   - total: The length of the body, or `nil` if it is unknown.
    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?)

    /// Tells the receiver that the metrics of the transfer are available.
    ///
    /// The default implementation does nothing.
    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics)

    /// Returns whether the request may still be sent when it gets its slot.
    ///
    /// Use this method to withdraw a request that may be outdated after a long wait. If the method returns `false`, the
    /// task ends as if it were canceled, and the server never receives the request. The default implementation returns
    /// `true`.
    ///
    /// A `CurlSession`, and a `URLSession` on Linux, call this method when the first request of a task gets its slot.
    /// Other sessions do not call it.
    func taskMayLeave(_ task: any NetworkTask) -> Bool

    /// The receiver to which this receiver forwards its events, or `nil` if there is none.
    ///
    /// Implement this property if your session wraps another session and puts its own receiver in front of the receiver
    /// of an operation. Return the receiver of the operation. Observers are then notified of each request that is sent,
    /// including the requests that follow from redirects and challenges. The property is read once, when a task is
    /// created. The default implementation returns `nil`.
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

    /// Returns `true`.
    public func taskMayLeave(_ task: any NetworkTask) -> Bool { true }

    /// The value `nil`, because there is no next receiver.
    public var nextReceiver: (any NetworkReceiver)? { nil }
}

/// The metrics of one transfer, such as its times and information about its connection.
///
/// Each time is the duration since the first `resume()`. A value is `nil` if the event did not happen or is not known.
public struct TransferMetrics: Sendable, Hashable {
    /// The time at which the task got its slot.
    public var slotGranted: Duration?
    /// The time at which the name of the host was resolved.
    public var nameResolved: Duration?
    /// The time at which the connection was established.
    public var connected: Duration?
    /// The time at which the TLS handshake was complete.
    public var secured: Duration?
    /// The time at which the request headers were about to be sent.
    public var requestBegan: Duration?
    /// The time at which the first byte of the response arrived.
    public var firstByte: Duration?
    /// The time at which the transfer ended.
    public var ended: Duration?
    /// The total duration for which the task was suspended or held.
    public var paused: Duration = .zero
    /// A Boolean value that indicates whether the connection had been used before.
    public var isConnectionReused = false
    /// The version of HTTP that the transfer used.
    public var version: HTTPVersion?
    /// The remote address and port of the connection, such as `127.0.0.1:80` or `[::1]:80`.
    public var remoteAddress: String?
    /// The number of bytes of the request's body that were sent.
    public var bodyBytesSent: Int64 = 0
    /// The number of bytes of the response's body that were received, before decompression.
    public var bodyBytesReceived: Int64 = 0
    /// The number of bytes of the response headers, including those of informational responses.
    public var headerBytesReceived: Int64 = 0

    /// Creates empty metrics, for your own sessions and for tests.
    public init() {}
}

/// The received length and the announced length of a response body, before decompression.
package struct BodyCount: Equatable, Sendable {
    private enum Promise: Equatable {
        case nothing
        case bytes(Int64)
        /// The transport notices the end of the body, which is marked by chunks or by the end of the connection.
        case delimited
        case unknown
    }

    private let promise: Promise
    private var count: Int64 = 0

    /// Creates a count for a response whose headers have not arrived.
    package init() { promise = .unknown }

    /// Creates a count with the length that the response headers announce.
    package init(_ head: ResponseHeadParser.Head, method: String) {
        if method == "HEAD" || head.status == 204 || head.status == 304 {
            promise = .nothing
        } else if head.version < .http2, head.fields.contains("Transfer-Encoding") {
            promise = .delimited
        } else if let length = head.fields["Content-Length"] {
            // Headers that state different lengths were already rejected.
            let first = Int64(length) ?? length.split(separator: ",").first.flatMap { Int64(String($0).trimmedBlanks) }
            promise = first.map { .bytes($0) } ?? .unknown
        } else {
            promise = head.version < .http2 ? .delimited : .unknown
        }
    }

    package mutating func add(_ bytes: Int) { count += Int64(bytes) }

    /// Whether the body is complete, as far as that is known if the transport does not report its end.
    package var isComplete: Bool {
        switch promise {
        case .nothing: true
        case .bytes(let length): count >= length
        case .delimited: count > 0
        case .unknown: false
        }
    }
}

/// A task that can end without removing the data from which another attempt can continue.
protocol AbandonableTask: NetworkTask {
    /// Ends the task as canceled, and keeps the data that it received.
    func giveUp()
}

extension NetworkTask {
    /// Ends the task of an attempt that another attempt may follow.
    func endForAttempt() {
        if let task = self as? any AbandonableTask { task.giveUp() } else { cancel() }
    }
}
