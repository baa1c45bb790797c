// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// A session that records the requests and responses of another session, so that tests can run without a network.
///
/// ```swift
/// import Foundation
/// import OperationNetworking
/// import OperationTestKit
///
/// func record(_ base: NetworkBase, to file: URL) async throws {
///     var base = base
///     let session = RecordingSession(over: DefaultNetworkSession.standard)
///     base.session = session
///     _ = try await base.get("songs", as: [String].self).run()
///     try session.recording.write(to: file)
/// }
/// ```
///
/// The recording contains one exchange for each task of the underlying session, except for tasks whose request was
/// withdrawn before the session sent it. An operation withdraws its request if its credential has changed, or if a
/// group is canceling the operation when the request could be sent. So the recording might not contain each request of
/// a canceled group.
///
/// If the underlying session follows redirects, a request and its redirects are one exchange. To record each request
/// separately, create an `ExchangeSession` over the recording session:
/// `ExchangeSession(over: RecordingSession(over: DefaultNetworkSession.platformTransport))`.
///
/// The session redacts secrets in headers, cookies, queries, fragments, JSON and forms, which it recognizes by their
/// names. A secret string becomes `***`, and a secret number in JSON becomes 0, so that values keep their types. In
/// paths, text, JSON strings and error messages, the session also replaces text that looks like a secret with `***`,
/// such as the value in `password=…`. The session might replace harmless text, such as the end of
/// `urn:ietf:params:oauth:token-type:jwt`. The session does not change binary bodies and might miss a secret, so examine
/// the file before you share it.
///
/// The session keeps each body of up to `bodyLimit` bytes in memory. If a body exceeds the body limit, the recording
/// contains only the length and the checksum of the body. The same applies to a body that is compressed or does not
/// match its content type, because the session cannot search this body for secrets. With `redaction: .none`, the
/// recording contains the bytes of these unsearchable bodies. During playback, if the recording omits a request body, a
/// request matches only if its body has the recorded checksum. If the recording omits the response body, the request
/// fails.
///
/// If a request sends a file, the session keeps the file open until the session has read it for the recording. The
/// session does not record times, metrics, reason phrases or informational responses.
public final class RecordingSession: NetworkSession {
    private struct State {
        var made = 0
        /// The numbers of the tasks that may still end.
        var open: Set<Int> = []
        var done: [Int: RecordedExchange] = [:]
        /// The tests that wait until all tasks have ended.
        var waiting: [Waiter] = []
    }

    static let usualBodyLimit = 4 << 20

    private let session: any NetworkSession
    private let redactor: RecordingRedactor
    private let bodyLimit: Int
    private let state = Locked(State())
    /// The queue on which exchanges are redacted, so that this does not block the threads of the session.
    private let queue = DispatchQueue(label: "OperationKit.RecordingSession")

    /// Creates a session that records the exchanges of another session.
    ///
    /// - Parameters:
    ///   - session: The session that sends the requests.
    ///   - redaction: The information to replace. The default is `.secrets`, which replaces common secrets.
    ///   - bodyLimit: The maximum size, in bytes, of each body in memory and in the recording. The default is 4 MiB.
    public init(over session: any NetworkSession, redaction: LogRedaction = .secrets, bodyLimit: Int = 4 << 20) {
        self.session = session
        self.bodyLimit = max(bodyLimit, 0)
        redactor = RecordingRedactor(redaction: redaction)
    }

    /// The recording of all exchanges that have ended, in the order in which their tasks were created.
    ///
    /// When an operation succeeds or fails, the recording already contains its exchanges. However, an operation ends
    /// before its task if you cancel the operation, or if the operation needs only a part of the body. To include these
    /// exchanges, await ``settled()`` before you read the recording.
    ///
    /// Reading this property blocks the current thread until the session has replaced the secrets in all ended
    /// exchanges. The session might have to read files that requests have sent.
    public var recording: SessionRecording {
        let done = queue.sync { state.withLock { $0.done } }
        return SessionRecording(
            done.sorted { $0.key < $1.key }.map(\.value), redaction: redactor.redaction, bodyLimit: bodyLimit)
    }

    /// Waits until all tasks have ended and the session has recorded their exchanges.
    ///
    /// The method also waits for tasks that are created during the wait. If the current task is canceled, for example
    /// by a time limit of the test, the method returns.
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func cancelled(
    ///     _ operation: NetworkDataOperation<Int>, seenBy session: RecordingSession
    /// ) async throws {
    ///     operation.cancel()
    ///     try await operation.expectCancelled(.requested)
    ///     await session.settled()
    ///     print(try session.recording.data().count)
    /// }
    /// ```
    public func settled() async {
        let waiter = Waiter(until: 0)
        let isNow = state.withLock { state in
            if state.open.isEmpty { return true }
            state.waiting.append(waiter)
            return false
        }
        guard !isNow else { return }
        await waiter.passage()
        state.withLock { state in state.waiting.removeAll { $0 === waiter } }
    }

    /// Creates a task in the underlying session and records the task's exchange.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let number = state.withLock { state in
            state.made += 1
            state.open.insert(state.made)
            return state.made
        }
        let body = BodyTap(request.body, limit: bodyLimit)
        let tap = ExchangeTap(request, body, receiver, limit: bodyLimit) { [weak self] seen in
            self?.queue.async { [weak self] in self?.note(seen, number) }
        } released: { [weak self] in
            self?.close(number)
        }
        return session.makeTask(with: body.tapped(request), receiver: tap)
    }

    private func note(_ seen: ExchangeTap.Seen, _ number: Int) {
        // The session did not send the request. An operation that still needs the response sends it in another task.
        guard !seen.isWithdrawn else { return close(number) }
        let request = seen.request
        let sent = seen.body.recorded()
        let sending = redactor.message(request.headers, sent.data)
        var exchange = RecordedExchange(
            request.method, url: redactor.url(request.url), requestHeaders: sending.headers,
            requestBody: sent.cleaned(sending.body) { redactor.checksum(request.headers, $0) },
            trailers: redactor.fields(seen.trailers), end: redactor.end(seen.end))
        if let head = seen.head {
            let received = seen.received.recorded
            let message = redactor.message(head.headers, received.data, isDecoded: head.isDecoded)
            exchange.responseBody = received.cleaned(message.body) { PlaybackKey.body($0) }
            let growth = exchange.responseBody.data.map { $0.count - received.count } ?? 0
            exchange.response = redactor.head(head, message.headers, bodyGrewBy: growth)
        }
        state.withLock { $0.done[number] = exchange }
        close(number)
    }

    /// Removes a task that is recorded or will never be recorded.
    private func close(_ number: Int) {
        let passing = state.withLock { state -> [Waiter] in
            guard state.open.remove(number) != nil, state.open.isEmpty else { return [] }
            return exchange(&state.waiting, with: [])
        }
        for waiter in passing { waiter.pass() }
    }
}

extension RecordingRedactor {
    /// Returns headers without secrets, with the length of the redacted body.
    fileprivate func head(_ head: ResponseHead, _ fields: HeaderFields, bodyGrewBy growth: Int) -> ResponseHead {
        var headers = fields
        if growth != 0, let length = headers["Content-Length"].flatMap({ Int64($0) }) {
            headers["Content-Length"] = "\(max(length.addingSaturated(Int64(growth)), 0))"
        }
        return ResponseHead(
            url: URL(string: url(head.url)) ?? head.url, status: head.status, headers: headers, version: head.version,
            isDecoded: head.isDecoded)
    }
}

/// A receiver that records the events of a task and passes them on.
final class ExchangeTap: NetworkReceiver {
    /// The recorded values of an exchange.
    struct Seen: Sendable {
        let request: NetworkRequest
        let body: BodyTap
        var head: ResponseHead?
        var received: BodyTally
        var trailers: HeaderFields = [:]
        var end = RecordedExchange.End.complete
        /// Whether the receiver withdrew the request before the session sent it.
        var isWithdrawn = false
    }

    private let receiver: any NetworkReceiver
    private let seen: Locked<Seen>
    private let report: @Sendable (Seen) -> Void
    private let released: @Sendable () -> Void

    init(
        _ request: NetworkRequest, _ body: BodyTap, _ receiver: any NetworkReceiver, limit: Int,
        _ report: @escaping @Sendable (Seen) -> Void, released: @escaping @Sendable () -> Void
    ) {
        (self.receiver, self.report, self.released) = (receiver, report, released)
        seen = Locked(Seen(request: request, body: body, received: BodyTally(limit: limit)))
    }

    // A task that is never resumed is released without an end.
    deinit { released() }

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
        // Report the exchange before the operation ends, so that the recording already contains the exchange.
        report(seen)
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

    func taskMaySend(_ task: any NetworkTask) -> Bool {
        let maySend = receiver.taskMaySend(task)
        seen.withLock { $0.isWithdrawn = !maySend }
        return maySend
    }

    var nextReceiver: (any NetworkReceiver)? { receiver }
}

/// A recorder for the body of a request.
final class BodyTap: Sendable {
    private let body: RequestBody
    private let limit: Int
    /// The data of the producer, and whether the producer has reached its end.
    private let produced: Locked<(tally: BodyTally, isAtEnd: Bool)>
    /// The file, which is opened before it can be deleted, or nil if there is none or it cannot be opened.
    private let file: BodyFile?

    init(_ body: RequestBody, limit: Int) {
        (self.body, self.limit) = (body, limit)
        produced = Locked((BodyTally(limit: limit), false))
        if case .file(let region) = body.source { file = BodyFile(region) } else { file = nil }
    }

    /// Returns the request with a body whose bytes are recorded.
    func tapped(_ request: NetworkRequest) -> NetworkRequest {
        guard case .stream(let makeProducer) = body.source else { return request }
        let stream = RequestBody.stream(length: body.length, canBeSentAgain: body.canBeSentAgain) { [self] in
            produced.withLock { $0 = (BodyTally(limit: limit), false) }
            return TappedProducer(try makeProducer(), self)
        }
        // The headers already contain the values that the body declares.
        let tapped = try? NetworkRequest(
            request.method, url: request.url, headers: request.headers, body: stream, options: request.options)
        return tapped ?? request
    }

    /// Records bytes of a producer.
    fileprivate func note(_ bytes: UnsafeRawBufferPointer) { produced.withLock { $0.tally.take(bytes) } }

    /// Records the end of a producer.
    fileprivate func recordEnd() { produced.withLock { $0.isAtEnd = true } }

    /// Returns the sent body with its secrets, for which a file is read.
    ///
    /// Do not call this on a thread of a session.
    func recorded() -> RecordedBody {
        switch body.source {
        case .none: return .none
        case .data(let data):
            var tally = BodyTally(limit: limit)
            data.withUnsafeBytes { tally.take($0) }
            return tally.recorded
        case .file(let region):
            let bytes = file?.tally(limit: limit)
            return bytes?.recorded ?? RecordedBody(leftOut: Int(clamping: region.length), because: .unreadable)
        case .stream:
            let produced = produced.withLock { $0 }
            let seen = produced.tally.recorded
            // A body with a known length is complete without the end of its producer.
            if produced.isAtEnd || body.length == Int64(seen.count) { return seen }
            return seen.data.map { RecordedBody(brokenOff: $0) }
                ?? RecordedBody(leftOut: seen.count, because: .brokenOff)
        }
    }
}

/// A producer that returns and records the data of another producer.
private final class TappedProducer: BodyProducer {
    private let producer: any BodyProducer
    private let tap: BodyTap

    init(_ producer: any BodyProducer, _ tap: BodyTap) {
        (self.producer, self.tap) = (producer, tap)
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        let portion = try producer.produce(into: buffer, waker: waker)
        switch portion {
        case .bytes(let count): tap.note(UnsafeRawBufferPointer(rebasing: buffer[..<min(max(count, 0), buffer.count)]))
        case .end: tap.recordEnd()
        case .notYet: break
        }
        return portion
    }
}

/// The bytes of a body, which are kept up to a limit, and are only counted and hashed beyond it.
struct BodyTally: Sendable {
    private let limit: Int
    private var data = Data()
    private var count = 0
    private var checksum = SHA256()

    init(limit: Int) { self.limit = limit }

    mutating func take(_ bytes: UnsafeRawBufferPointer) {
        count += bytes.count
        checksum.update(bytes)
        if count <= limit {
            data.append(contentsOf: bytes)
        } else if !data.isEmpty {
            data = Data()
        }
    }

    /// The recorded body, with the bytes or with their count and checksum.
    var recorded: RecordedBody {
        guard count > limit else { return RecordedBody(data) }
        var checksum = checksum
        return RecordedBody(leftOut: count, checksum: Hexadecimal.lower(checksum.finish()), because: .tooLong)
    }
}
