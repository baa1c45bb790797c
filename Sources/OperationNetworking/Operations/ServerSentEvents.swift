// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The events of a server that sends them, for as long as you want them: a connection that ends is made anew, and goes on
/// after the last event that came.
///
/// ```swift
/// func news(from url: URL) async throws {
///     for try await event in ServerSentEvents(try NetworkRequest(url: url)) {
///         print(event.kind, event.data)
///     }
/// }
/// ```
///
/// A number with control characters in it cannot be sent: then the server is asked without one.
///
/// It ends when the server answers 204. It fails when the server answers anything else but 200 with `text/event-stream`,
/// when a line has more than 1 MiB or an event more than 16, and when asking again would not help, as with a certificate
/// that is not to be trusted. Where a connection ends, breaks or cannot be made, it waits for as long as the server said
/// (3 seconds unless it did; at least a tenth of a second, at most an hour), longer each time that fails, and connects
/// again.
///
/// A server may be silent for as long as it likes, unless you say how long: by `silence`, or by the request's own
/// ``TransferTimeouts/idle`` where that is not the usual one. A connection that is silent for longer is made anew. Of one
/// that is dead without a word ``CurlSession`` learns after some minutes in any case, by the probes of TCP.
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// The request; its fields `Accept` and `Last-Event-ID` are set for you.
    public let request: NetworkRequest
    /// How long a connection may be silent; as the request says if nil, and without end if that has the usual limit.
    public let silence: Duration?
    private let session: any NetworkSession
    private let clock: any OperationClock

    /// Makes a sequence; nothing is sent before it is iterated over.
    ///
    /// - Parameters:
    ///   - request: What to ask.
    ///   - silence: How long a connection may be silent before it is made anew: longer than the pause between the comments
    ///     that the server sends to keep it alive.
    ///   - session: The session.
    ///   - clock: By which it waits before it connects again.
    public init(
        _ request: NetworkRequest, silence: Duration? = nil,
        session: any NetworkSession = DefaultNetworkSession.standard, clock: any OperationClock = .system
    ) {
        self.request = request
        self.silence = silence
        self.session = session
        self.clock = clock
    }

    /// Makes an iterator, with a connection of its own.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Gives the events.
    public struct Iterator: AsyncIteratorProtocol {
        /// After failures no pause grows beyond this by itself.
        private static let longestPause = Duration.seconds(60)
        /// Between these lies what a server may ask for.
        private static let pauses = Duration.milliseconds(100)...Duration.seconds(3600)
        private static let leastPauseAfterFailure = Duration.seconds(1)

        private let events: ServerSentEvents
        private var request: NetworkRequest { events.request }
        private var clock: any OperationClock { events.clock }
        private var lines: ResponseStream.Lines.Iterator?
        private var parser = ServerSentEventParser()
        private var failures = 0
        private var isFirst = true

        init(_ events: ServerSentEvents) {
            self.events = events
        }

        /// The next event; nil when the server wants no more questions.
        public mutating func next() async throws -> ServerSentEvent? {
            while true {
                do {
                    if lines == nil, try await !connect() { return nil }
                    while let line = try await lines?.next() {
                        if let event = parser.take(line) { return event }
                        guard parser.isWithinBounds else {
                            throw NetworkError(
                                code: .bodyTooLarge, phase: .receiving, message: "An event has more than 16 MiB.",
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

        /// Whether asking again may help.
        private static func mayPass(_ error: NetworkError) -> Bool {
            [
                .timedOut, .cannotFindHost, .cannotConnect, .notConnected, .proxyFailed, .connectionLost,
                .truncatedBody, .resourcesExhausted, .transferFailed,
            ].contains(error.code)
        }

        /// Asks the server; false if it wants no questions.
        private mutating func connect() async throws -> Bool {
            if !isFirst { try await clock.wait(pause) }
            isFirst = false
            var headers = request.headers
            headers["Accept"] = "text/event-stream"
            // A server that numbers its events with what no field can carry is asked without.
            if !parser.lastID.isEmpty {
                headers["Last-Event-ID"] = Self.canBeSent(parser.lastID) ? parser.lastID : nil
            }
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
                    message: "The server sends no events at this address, but another type. Check the URL.",
                    request: request.summary)
            }
            failures = 0
            lines = stream.lines.makeAsyncIterator()
            // A line whose end did not come may be cut off: half a number is another number.
            lines?.givesRest = false
            return true
        }

        /// Silence is no failure here, unless somebody said so.
        private var longestSilence: Duration? {
            let limit = request.options.timeouts.idle
            return events.silence ?? (limit == TransferTimeouts().idle ? nil : limit)
        }

        private static func canBeSent(_ id: String) -> Bool {
            id.utf8.allSatisfy { $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }
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
    /// Waits, or throws as soon as the task is cancelled.
    fileprivate func wait(_ duration: Duration) async throws {
        let wait = TaskWait()
        let timer = schedule(after: duration) { wait.end() }
        await withTaskCancellationHandler {
            await wait.passage()
        } onCancel: {
            timer.cancel()
            wait.end()
        }
        try Task.checkCancellation()
    }
}
