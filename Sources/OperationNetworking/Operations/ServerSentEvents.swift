// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An asynchronous sequence that provides server-sent events and reconnects automatically.
///
/// ```swift
/// func news(from url: URL) async throws {
///     for try await event in ServerSentEvents(try NetworkRequest(url: url)) {
///         print(event.kind, event.data)
///     }
/// }
/// ```
///
/// If a connection ends or fails, the sequence waits and opens a new connection. If the server sends event IDs, the
/// sequence requests the events after the last event that it received. The default wait is 3 seconds, and the server
/// can set a wait between 0.1 seconds and 1 hour. The wait becomes longer with each consecutive failure, up to one
/// minute or the wait that the server has set, whichever is longer.
///
/// The sequence ends if the server responds with the status 204. The sequence throws an error in these cases:
///
/// - The response has a status other than 200 or 204, or a content type other than `text/event-stream`.
/// - A line is longer than 1 MiB, or an event is longer than 16 MiB.
/// - The connection fails with an error that a new connection would not resolve, such as an untrusted certificate.
///
/// If the ID of the last event is empty or contains control characters other than a tab, the next request has no
/// `Last-Event-ID` header. Until the server sends an ID, each request has the header that ``request`` has, if any.
///
/// By default, the time without data is not limited. To limit this time, set ``silence``, or set
/// ``TransferTimeouts/idle`` to a value other than its default. The sequence then opens a new connection after that
/// time without data. Even without a limit, a ``CurlSession`` detects a broken connection within a few minutes, because
/// the session sends TCP keep-alive probes.
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// The request for the events, to which the sequence adds the `Accept` and `Last-Event-ID` headers.
    public let request: NetworkRequest
    /// The time without data after which the sequence opens a new connection.
    ///
    /// If the value is `nil`, the request's ``TransferTimeouts/idle`` timeout applies. If that timeout has its default
    /// value, the time is not limited.
    public let silence: Duration?
    private let session: any NetworkSession
    private let clock: any OperationClock

    /// Creates a sequence of the events that a server sends in response to a request.
    ///
    /// The sequence sends the request when you iterate over the sequence.
    ///
    /// - Parameters:
    ///   - request: The request for the events.
    ///   - silence: The time without data after which the sequence opens a new connection. Choose a longer time than
    ///     the interval at which the server sends comments to keep the connection alive. The default is `nil`, which
    ///     applies the request's ``TransferTimeouts/idle`` timeout. If that timeout has its default value, the time is
    ///     not limited.
    ///   - session: The session that sends the requests. The default is ``DefaultNetworkSession/standard``.
    ///   - clock: The clock that measures the waits between connections. The default is the system clock.
    public init(
        _ request: NetworkRequest, silence: Duration? = nil,
        session: any NetworkSession = DefaultNetworkSession.standard, clock: any OperationClock = .system
    ) {
        self.request = request
        self.silence = silence
        self.session = session
        self.clock = clock
    }

    /// Creates an iterator that opens its own connection.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// An iterator that provides the events from a server.
    public struct Iterator: AsyncIteratorProtocol {
        /// The limit of the growing pause after failures, unless the server asks for more.
        private static let longestPause = Duration.seconds(60)
        /// The range of the pauses that a server may ask for.
        private static let pauses = Duration.milliseconds(100)...Duration.seconds(3600)
        private static let leastPauseAfterFailure = Duration.seconds(1)

        private let events: ServerSentEvents
        private var request: NetworkRequest { events.request }
        private var clock: any OperationClock { events.clock }
        private var lines: ResponseStream.Lines.Iterator?
        private var parser = ServerSentEventParser()
        private var failures = 0
        private var isFirst = true
        private var isOver = false

        init(_ events: ServerSentEvents) {
            self.events = events
        }

        /// Returns the next event, or `nil` if the server responded with the status 204.
        ///
        /// After the method has returned `nil` or thrown an error, it always returns `nil` and sends no other request.
        ///
        /// - Throws: A ``NetworkError`` if a new connection would not resolve the failure. If you cancel the Swift
        ///   task, the method throws a `CancellationError` or a ``NetworkError`` with the code
        ///   ``NetworkError/Code/cancelled``.
        public mutating func next() async throws -> ServerSentEvent? {
            if isOver { return nil }
            // An error ends the sequence, too.
            isOver = true
            defer { if isOver { lines = nil } }
            let event = try await receive()
            isOver = event == nil
            return event
        }

        private mutating func receive() async throws -> ServerSentEvent? {
            while true {
                do {
                    if lines == nil, try await !connect() { return nil }
                    while let line = try await lines?.next() {
                        if let event = parser.take(line) { return event }
                        guard parser.isWithinBounds else {
                            throw NetworkError(
                                code: .bodyTooLarge, phase: .receiving, message: "An event is larger than 16 MiB.",
                                request: request.summary)
                        }
                    }
                } catch let error as NetworkError where Self.mayPass(error) {
                    failures += 1
                }
                lines = nil
                parser.reconnect()
                try Task.checkCancellation()
            }
        }

        /// Returns whether another connection may succeed.
        private static func mayPass(_ error: NetworkError) -> Bool {
            [
                .timedOut, .cannotFindHost, .cannotConnect, .notConnected, .proxyFailed, .connectionLost,
                .truncatedBody, .resourcesExhausted, .transferFailed,
            ].contains(error.code)
        }

        /// Connects to the server, and returns false if the server responded with the status 204.
        private mutating func connect() async throws -> Bool {
            if !isFirst { try await clock.wait(pause) }
            isFirst = false
            var headers = request.headers
            headers["Accept"] = "text/event-stream"
            // An empty event ID, or one that no header can contain, is not sent.
            if let id = parser.lastID { headers["Last-Event-ID"] = Self.canBeSent(id) ? id : nil }
            var options = request.options
            options.timeouts.idle = longestSilence
            let asked = try NetworkRequest(
                request.method, url: request.url, headers: headers, body: request.body, options: options)
            var rules = ResponseRules()
            (rules.statuses, rules.contentTypes) = (.only(200, 204), .any)
            let stream = try await events.session.stream(asked, rules: rules, clock: clock)
            if stream.head.status == 204 { return false }
            let type = stream.head.headers["Content-Type"]
            guard ContentTypeRule.only("text/event-stream").accepts(type ?? "none", requested: []) else {
                throw NetworkError(
                    code: .unacceptableContentType, phase: .evaluating,
                    message: "The content type of the response is not text/event-stream. Check the URL.",
                    request: request.summary)
            }
            failures = 0
            lines = ResponseStream.Lines(stream: stream).makeAsyncIterator()
            // An incomplete last line may be cut off, and a truncated ID is a different ID.
            lines?.givesRest = false
            return true
        }

        /// The idle timeout of the connection, which is nil by default because silence is not a failure here.
        private var longestSilence: Duration? {
            let limit = request.options.timeouts.idle
            return events.silence ?? (limit == TransferTimeouts().idle ? nil : limit)
        }

        private static func canBeSent(_ id: String) -> Bool {
            !id.isEmpty && id.utf8.allSatisfy { $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }
        }

        private var pause: Duration {
            var base = parser.pause ?? .seconds(3)
            base = Swift.min(Swift.max(base, Self.pauses.lowerBound), Self.pauses.upperBound)
            if failures > 0 { base = Swift.max(base, Self.leastPauseAfterFailure) }
            return Swift.min(base * (1 << Swift.min(failures, 10)), Swift.max(base, Self.longestPause))
        }
    }
}

extension OperationClock {
    /// Waits, and throws as soon as the task is canceled.
    fileprivate func wait(_ duration: Duration) async throws {
        let wait = TaskWait()
        let timer = schedule(after: duration) { wait.end() }
        await wait.passage {
            timer.cancel()
            wait.end()
        }
        try Task.checkCancellation()
    }
}
