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
/// Secrets are left out by their names: of header fields, of queries, of JSON and of forms. In JSON a text becomes three
/// stars and a number zero, so that an answer is decoded as before. What is in other bodies, in paths, and in texts without
/// a name stays: look at the file before you share it.
///
/// In memory are the bodies of all exchanges, each as far as ``init(over:redaction:bodyLimit:)`` says. Of a longer one there
/// is the length and a checksum: a request is compared by that, and a response cannot be played back. Time, metrics and
/// informational heads are not written down.
public final class RecordingSession: NetworkSession {
    private struct State {
        var made = 0
        var done: [Int: RecordedExchange] = [:]
    }

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
    /// An exchange is there as soon as its operation has its outcome; one that was cancelled, a moment later.
    public var recording: SessionRecording {
        let done = queue.sync { state.withLock { $0.done } }
        return SessionRecording(done.sorted { $0.key < $1.key }.map(\.value), redaction: redactor.redaction)
    }

    /// Makes a task of the session beneath, and writes down what comes of it.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let number = state.withLock { state in
            state.made += 1
            return state.made
        }
        let body = BodyTap(request.body, limit: bodyLimit)
        let tap = ExchangeTap(request, body, receiver, limit: bodyLimit) { [weak self] seen in
            self?.queue.async { [weak self] in self?.note(seen, number) }
        }
        return session.makeTask(with: body.tapped(request), receiver: tap)
    }

    private func note(_ seen: ExchangeTap.Seen, _ number: Int) {
        let request = seen.request
        var headers = redactor.fields(request.headers)
        if let type = headers["Content-Type"] { headers["Content-Type"] = redactor.type(type) }
        let sent = seen.body.recorded(redactor, request.headers)
        var (received, head) = (seen.received.recorded, seen.head)
        if let data = received.data, let whole = head {
            let encoding = whole.isDecoded ? nil : whole.headers["Content-Encoding"]
            // An answer that cannot be looked into is needed all the same.
            let clean = redactor.body(data, type: whole.headers["Content-Type"], encoding: encoding) ?? data
            head = redactor.head(whole, bodyGrewBy: clean.count - data.count)
            received = RecordedBody(clean)
        } else if let whole = head {
            head = redactor.head(whole, bodyGrewBy: 0)
        }
        let exchange = RecordedExchange(
            method: request.method, url: redactor.url(request.url), requestHeaders: headers, requestBody: sent,
            response: head, responseBody: received, trailers: redactor.fields(seen.trailers), end: seen.end)
        state.withLock { $0.done[number] = exchange }
    }
}

extension RecordingRedactor {
    /// A head without secrets, which tells the length that the body has without them.
    fileprivate func head(_ head: ResponseHead, bodyGrewBy growth: Int) -> ResponseHead {
        var headers = fields(head.headers)
        if growth != 0, let length = headers["Content-Length"].flatMap({ Int($0) }) {
            headers["Content-Length"] = "\(max(length + growth, 0))"
        }
        return ResponseHead(
            url: URL(string: url(head.url)) ?? head.url, status: head.status, headers: headers, version: head.version,
            reason: head.reason, isDecoded: head.isDecoded)
    }
}
