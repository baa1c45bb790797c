// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A session whose tasks send requests to servers and receive the responses.
///
/// A session does not have to follow redirects, respond to challenges, store cookies or cache responses. An
/// ``ExchangeSession`` adds these features to any session. A session must not repeat a request that the server might
/// have processed.
///
/// Guide: `Docs/Guides/Sessions.md`
public protocol NetworkSession: AnyObject, Sendable {
    /// Creates a task that sends a request when you first call the task's `resume()` method.
    ///
    /// If the session cannot send the request, the method returns a task that ends with an error.
    ///
    /// - Parameters:
    ///   - request: The request to send, which is already validated.
    ///   - receiver: The object that receives the events of the task. The task keeps a strong reference to the receiver
    ///     until the task has reported its end.
    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask
}

/// A task that sends one request through a ``NetworkSession`` and receives the response.
///
/// You can call each method on any thread and at any time, including from a method of the receiver. The methods do not
/// block. After the task ends, the methods have no effect. If you release a task, it continues.
///
/// The owner of a task can pause and resume both directions of the transfer with `suspend()` and `resume()`.
/// Independently, the receiver can pause and resume the delivery of received bytes with `hold()` and `proceed()`. The
/// task delivers bytes only if neither the owner nor the receiver has paused the task. Calling a method twice has the
/// same effect as calling it once.
public protocol NetworkTask: AnyObject, Sendable {
    /// Starts the task, or resumes it after `suspend()`.
    func resume()

    /// Pauses both directions of the transfer until you call `resume()`.
    ///
    /// A task that waits for one of the session's slots leaves the queue of waiting tasks, and enters it again after
    /// `resume()`. A call to the receiver that has already begun continues. While the task is suspended, timeouts do
    /// not run, but the server might close the connection.
    func suspend()

    /// Cancels the task, which then ends with ``NetworkError/Code/cancelled``.
    ///
    /// After this method returns, the only event that the task sends to the receiver is its end. The task sends this
    /// event even if you never resumed the task. If the task ended before the call, it reports that end instead. A call
    /// to the receiver that began earlier on another thread might still be running.
    func cancel()

    /// Pauses the delivery of received bytes until the receiver calls `proceed()`.
    ///
    /// Until then, the task reports only the progress of sending the request body, or a failure or a cancellation. The
    /// session continues to send the request body, except a `URLSession` on Apple platforms, which also pauses the body.
    /// While the delivery is paused, timeouts do not run.
    func hold()

    /// Resumes the delivery of received bytes after a call to `hold()`.
    func proceed()
}

/// An object that receives the events of a network task.
///
/// A task sends its events in this order: informational responses, response headers, bytes, trailers, metrics, and the
/// end. Each task that you resume or cancel reports its end exactly once, as its last event. All other events are
/// optional. The task can report upload progress at any time before the metrics.
///
/// All tasks of a session can share the thread on which the session calls these methods. The methods must not block,
/// for example to access a file, because the other tasks would make no progress in the meantime. To process bytes on
/// another thread, call `hold()` on the task, and call `proceed()` when you can receive more bytes. The calls for one
/// task never overlap.
public protocol NetworkReceiver: AnyObject, Sendable {
    /// Tells the receiver that the response headers have arrived.
    ///
    /// The status code is 200 or higher. The response can be a redirect or a challenge.
    ///
    /// - Parameters:
    ///   - task: The task that received the response headers.
    ///   - head: The status and the headers of the response.
    func task(_ task: any NetworkTask, didReceive head: ResponseHead)

    /// Tells the receiver that bytes of the response body have arrived.
    ///
    /// If ``ResponseHead/isDecoded`` is `true` for the response, the session has decompressed the bytes. The buffer is
    /// valid only during the call.
    ///
    /// - Parameters:
    ///   - task: The task that received the bytes.
    ///   - bytes: A buffer that contains the next bytes of the body.
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer)

    /// Tells the receiver that the task has ended.
    ///
    /// - Parameters:
    ///   - task: The task that ended.
    ///   - error: The error with which the task failed, or `nil` if the response is complete. A complete response can
    ///     have any status code.
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?)

    /// Tells the receiver that an informational response with a status code from 100 to 199 has arrived.
    ///
    /// The default implementation does nothing.
    ///
    /// - Parameters:
    ///   - task: The task that received the informational response.
    ///   - head: The status and the headers of the informational response.
    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead)

    /// Tells the receiver that trailers have arrived after the response body.
    ///
    /// The default implementation does nothing.
    ///
    /// - Parameters:
    ///   - task: The task that received the trailers.
    ///   - fields: The trailers of the response.
    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields)

    /// Tells the receiver how many bytes of the request body the session has accepted for sending.
    ///
    /// The default implementation does nothing.
    ///
    /// - Parameters:
    ///   - task: The task whose request body the session sends.
    ///   - count: The number of bytes that the session has accepted so far. The number never decreases, even if the
    ///     session sends the body again.
    ///   - total: The length of the body, or `nil` if it is not known.
    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?)

    /// Tells the receiver that the session has collected the metrics of the transfer.
    ///
    /// The default implementation does nothing.
    ///
    /// - Parameters:
    ///   - task: The task whose metrics the session collected.
    ///   - metrics: The metrics of the transfer, such as its times and the number of bytes.
    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics)

    /// Returns a Boolean value that indicates whether the session may still send the request after a wait for a slot.
    ///
    /// Use this method to withdraw a request that should no longer be sent, for example because its credential has
    /// changed. If the method returns `false`, the task ends as if you had canceled it, without sending the request.
    /// The default implementation returns `true`.
    ///
    /// The transport sessions of OperationKit, such as `CurlSession` and `URLSession`, call this method when the first
    /// request of a task gets a slot. Other sessions call this method only to forward the call of the session that they
    /// wrap.
    ///
    /// - Parameter task: The task whose request got a slot.
    func taskMaySend(_ task: any NetworkTask) -> Bool

    /// The receiver to which this receiver forwards its events, or `nil` if there is none.
    ///
    /// If your session wraps another session and has its own receiver, return the receiver of the operation. Observers
    /// of the operation then also receive events for redirects and challenges. The wrapped session reads this property
    /// once, when it creates a task. The default implementation returns `nil`.
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

    /// Returns `true`, which allows the session to send the request.
    ///
    /// - Parameter task: The task whose request got a slot.
    public func taskMaySend(_ task: any NetworkTask) -> Bool { true }

    /// The default value `nil`, which indicates that there is no next receiver.
    public var nextReceiver: (any NetworkReceiver)? { nil }
}

/// The metrics of a transfer, such as its times and information about its connection.
///
/// Each time is the duration since the first call to the task's `resume()` method, in whole nanoseconds. A time is `nil`
/// if its event did not occur or if the session does not know the time.
public struct TransferMetrics: Sendable, Hashable {
    /// The time at which the task got one of the session's slots for concurrent requests.
    public var slotGranted: Duration? {
        get { slotGrantedTime.map { .nanoseconds($0) } }
        set { slotGrantedTime = newValue?.saturatedNanoseconds }
    }
    /// The time at which the system resolved the name of the host.
    public var nameResolved: Duration? {
        get { nameResolvedTime.map { .nanoseconds($0) } }
        set { nameResolvedTime = newValue?.saturatedNanoseconds }
    }
    /// The time at which the session established the connection.
    public var connected: Duration? {
        get { connectedTime.map { .nanoseconds($0) } }
        set { connectedTime = newValue?.saturatedNanoseconds }
    }
    /// The time at which the session completed the TLS handshake.
    public var secured: Duration? {
        get { securedTime.map { .nanoseconds($0) } }
        set { securedTime = newValue?.saturatedNanoseconds }
    }
    /// The time at which the session began to send the request headers.
    public var requestBegan: Duration? {
        get { requestBeganTime.map { .nanoseconds($0) } }
        set { requestBeganTime = newValue?.saturatedNanoseconds }
    }
    /// The time at which the first byte of the response arrived.
    public var firstByte: Duration? {
        get { firstByteTime.map { .nanoseconds($0) } }
        set { firstByteTime = newValue?.saturatedNanoseconds }
    }
    /// The time at which the transfer ended.
    public var ended: Duration? {
        get { endedTime.map { .nanoseconds($0) } }
        set { endedTime = newValue?.saturatedNanoseconds }
    }
    /// The total duration for which the task was paused by `suspend()` or `hold()`, in whole nanoseconds.
    public var paused: Duration {
        get { .nanoseconds(pausedNanoseconds) }
        set { pausedNanoseconds = newValue.saturatedNanoseconds }
    }
    /// A Boolean value that indicates whether the session had already used the connection for an earlier request.
    public var isConnectionReused = false
    /// The HTTP version of the transfer.
    public var version: HTTPVersion?
    /// The address and port of the server or proxy, such as `127.0.0.1:80` or `[::1]:80`.
    public var remoteAddress: String?
    /// The number of request body bytes that the session sent.
    public var bodyBytesSent: Int64 = 0
    /// The number of response body bytes that the session received, before decompression.
    ///
    /// A `URLSession` counts the bytes of a compressed body after decompression.
    public var bodyBytesReceived: Int64 = 0
    /// The number of bytes in the response headers, including the headers of informational responses.
    public var headerBytesReceived: Int64 = 0
    // The times in nanoseconds, from which libcurl's session sets the properties above.
    package var slotGrantedTime: Int64?
    package var nameResolvedTime: Int64?
    package var connectedTime: Int64?
    package var securedTime: Int64?
    package var requestBeganTime: Int64?
    package var firstByteTime: Int64?
    package var endedTime: Int64?
    package var pausedNanoseconds: Int64 = 0

    /// Creates empty metrics, for custom sessions and tests.
    public init() {}
}
