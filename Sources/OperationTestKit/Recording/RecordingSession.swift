// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// A session that writes down what goes through another one, to be played back in tests without a network.
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
/// Over a session that follows redirects, a redirect and what it leads to are one exchange; to write down each request,
/// put it beneath: `ExchangeSession(over: RecordingSession(over: DefaultNetworkSession.platformTransport))`.
///
/// Secrets are left out by their names: of header fields, of cookies, of queries and fragments, of JSON and of forms.
/// Values keep their kinds: a secret text becomes `***`, and a secret number 0, so that what is played back can be
/// decoded as before. In a text of JSON that is left out which its own words call a secret, as in `password=…`; rather
/// too much than too little, so that of `urn:ietf:params:oauth:token-type:jwt` the end is lost, too. What is in other
/// bodies, in paths, and in other texts stays: look at the file before you share it.
///
/// In memory are the bodies of all exchanges, each as far as ``init(over:redaction:bodyLimit:)`` says. Of a longer
/// one there is the length and a checksum: a request is compared by that, and a response cannot be played back. It is
/// the same with a body that cannot be looked into for secrets, because it is compressed or is not what its type
/// says; with `redaction: .none` it is kept. A file that is sent is held open until it was read for the recording.
/// Time, metrics and informational heads are not written down.
public final class RecordingSession: NetworkSession {
    private struct State {
        var made = 0
        /// The numbers of those that may still come to an end.
        var open: Set<Int> = []
        var done: [Int: RecordedExchange] = [:]
        /// Those who wait for all to have ended.
        var waiting: [Waiter] = []
    }

    static let usualBodyLimit = 4 << 20

    private let session: any NetworkSession
    private let redactor: RecordingRedactor
    private let bodyLimit: Int
    private let state = Locked(State())
    /// What ended is looked at for secrets here, and not on a thread of the session.
    private let queue = DispatchQueue(label: "OperationKit.RecordingSession")

    /// Makes a session.
    ///
    /// - Parameters:
    ///   - session: What carries the requests out.
    ///   - redaction: What is left out: the usual secrets.
    ///   - bodyLimit: How many bytes of a body are kept, in memory and in the file: 4 MiB.
    public init(over session: any NetworkSession, redaction: LogRedaction = .secrets, bodyLimit: Int = 4 << 20) {
        self.session = session
        self.bodyLimit = max(bodyLimit, 0)
        redactor = RecordingRedactor(redaction: redaction)
    }

    /// What was written down so far: the exchanges that ended, in the order in which their tasks were made.
    ///
    /// An exchange that ended by itself is there as soon as its operation has its outcome. An operation that is
    /// cancelled, or has enough of a body, has it earlier than its task is over: wait for ``settled()``.
    ///
    /// It waits until what ended was looked at for secrets, and files that were sent were read for that.
    public var recording: SessionRecording {
        let done = queue.sync { state.withLock { $0.done } }
        return SessionRecording(
            done.sorted { $0.key < $1.key }.map(\.value), redaction: redactor.redaction, bodyLimit: bodyLimit)
    }

    /// Waits until all tasks are over and written down, those included that are made meanwhile.
    ///
    /// Where the test's own task is cancelled, as by its time limit, it returns.
    ///
    /// ```swift
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func cancelled(_ operation: NetworkDataOperation<Int>, seenBy session: RecordingSession) async throws {
    ///     operation.cancel()
    ///     try await operation.expectCancelled(.requested)
    ///     await session.settled()
    ///     print(session.recording.exchanges.count)
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

    /// Makes a task of the session beneath, and writes down what comes of it.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let number = state.withLock { state in
            state.made += 1
            state.open.insert(state.made)
            return state.made
        }
        let body = BodyTap(request.body, limit: bodyLimit)
        // One that nobody begins is let go of without an end.
        let farewell = Farewell { [weak self] in self?.close(number) }
        let tap = ExchangeTap(request, body, receiver, limit: bodyLimit) { [weak self] seen in
            self?.queue.async { [weak self] in
                self?.note(seen, number)
                withExtendedLifetime(farewell) {}
            }
        }
        return session.makeTask(with: body.tapped(request), receiver: tap)
    }

    private func note(_ seen: ExchangeTap.Seen, _ number: Int) {
        let request = seen.request
        let sent = seen.body.recorded()
        let sending = redactor.message(request.headers, sent.data)
        var exchange = RecordedExchange(
            request.method, url: redactor.url(request.url), requestHeaders: sending.headers,
            requestBody: sent.cleaned(sending.body) { redactor.checksum(request.headers, $0) },
            trailers: redactor.fields(seen.trailers), end: seen.end)
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

    /// That one is written down, or will never be.
    private func close(_ number: Int) {
        let passing = state.withLock { state -> [Waiter] in
            guard state.open.remove(number) != nil, state.open.isEmpty else { return [] }
            return exchange(&state.waiting, with: [])
        }
        for waiter in passing { waiter.pass() }
    }
}

/// Says when it is let go of.
private final class Farewell: Sendable {
    private let say: @Sendable () -> Void

    init(_ say: @escaping @Sendable () -> Void) { self.say = say }

    deinit { say() }
}

extension RecordingRedactor {
    /// A head without secrets, which tells the length that the body has without them.
    fileprivate func head(_ head: ResponseHead, _ fields: HeaderFields, bodyGrewBy growth: Int) -> ResponseHead {
        var headers = fields
        if growth != 0, let length = headers["Content-Length"].flatMap({ Int64($0) }) {
            headers["Content-Length"] = "\(max(length.addingSaturated(Int64(growth)), 0))"
        }
        return ResponseHead(
            url: URL(string: url(head.url)) ?? head.url, status: head.status, headers: headers, version: head.version,
            reason: head.reason, isDecoded: head.isDecoded)
    }
}

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

/// Sees the body of a request that is sent.
final class BodyTap: Sendable {
    /// What a producer gave.
    private struct Produced {
        var tally: BodyTally
        var isAtEnd = false
    }

    private let body: RequestBody
    private let limit: Int
    private let produced: Locked<Produced>
    /// The file, opened before anybody can delete it; nil if it cannot be opened, or there is none.
    private let file: BodyFile?

    init(_ body: RequestBody, limit: Int) {
        (self.body, self.limit) = (body, limit)
        produced = Locked(Produced(tally: BodyTally(limit: limit)))
        if case .file(let region) = body.source { file = BodyFile(region) } else { file = nil }
    }

    /// The request, with a body whose bytes are seen.
    func tapped(_ request: NetworkRequest) -> NetworkRequest {
        guard case .stream(let makeProducer) = body.source else { return request }
        let stream = RequestBody.stream(length: body.length, canBeSentAgain: body.canBeSentAgain) { [self] in
            produced.withLock { $0 = Produced(tally: BodyTally(limit: limit)) }
            return TappedProducer(try makeProducer(), self)
        }
        // What the body said of itself is among the headers by now.
        let tapped = try? NetworkRequest(
            request.method, url: request.url, headers: request.headers, body: stream, options: request.options)
        return tapped ?? request
    }

    /// A producer gave these bytes.
    fileprivate func note(_ bytes: UnsafeRawBufferPointer) { produced.withLock { $0.tally.take(bytes) } }

    /// A producer has no more.
    fileprivate func noteEnd() { produced.withLock { $0.isAtEnd = true } }

    /// What was sent, with its secrets; a file is read for that, so not on a thread of a session.
    func recorded() -> RecordedBody {
        switch body.source {
        case .none: return .none
        case .data(let data):
            var tally = BodyTally(limit: limit)
            tally.take(data)
            return tally.recorded
        case .file(let region):
            let bytes = file?.tally(limit: limit)
            return bytes?.recorded ?? RecordedBody(leftOut: Int(clamping: region.length), because: .unreadable)
        case .stream:
            let produced = produced.withLock { $0 }
            let seen = produced.tally.recorded
            // One whose length is known need not be asked whether that was all.
            if produced.isAtEnd || body.length == Int64(seen.count) { return seen }
            return seen.data.map { RecordedBody(brokenOff: $0) }
                ?? RecordedBody(leftOut: seen.count, because: .brokenOff)
        }
    }
}

/// Gives what another producer gives.
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
        case .end: tap.noteEnd()
        case .notYet: break
        }
        return portion
    }
}

/// The bytes of a body as they come: kept up to a limit, counted and summed up beyond it.
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

    mutating func take(_ bytes: Data) {
        bytes.withUnsafeBytes { take($0) }
    }

    /// The bytes, or how many there were and what they come to.
    var recorded: RecordedBody {
        guard count > limit else { return RecordedBody(data) }
        var checksum = checksum
        return RecordedBody(leftOut: count, checksum: checksum.finish().hexadecimal, because: .tooLong)
    }
}
