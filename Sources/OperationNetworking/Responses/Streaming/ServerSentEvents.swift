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
public struct ServerSentEvents: AsyncSequence, Sendable {
    /// The request; its fields `Accept` and `Last-Event-ID` are set for you.
    public let request: NetworkRequest
    private let session: any NetworkSession
    private let clock: any OperationClock

    /// Makes a sequence; nothing is sent before it is iterated over.
    public init(
        _ request: NetworkRequest, session: any NetworkSession = DefaultNetworkSession.standard,
        clock: any OperationClock = .system
    ) {
        self.request = request
        self.session = session
        self.clock = clock
    }

    /// Makes an iterator, with a connection of its own.
    public func makeAsyncIterator() -> Iterator { Iterator(request: request, session: session, clock: clock) }

    /// Gives the events.
    public struct Iterator: AsyncIteratorProtocol {
        /// After failures no pause grows beyond this by itself.
        private static let longestPause = Duration.seconds(60)
        /// Between these lies what a server may ask for.
        private static let pauses = Duration.milliseconds(100)...Duration.seconds(3600)
        private static let leastPauseAfterFailure = Duration.seconds(1)

        let request: NetworkRequest
        let session: any NetworkSession
        let clock: any OperationClock
        private var lines: ResponseStream.Lines.Iterator?
        private var parser = ServerSentEventParser()
        private var failures = 0
        private var isFirst = true

        init(request: NetworkRequest, session: any NetworkSession, clock: any OperationClock) {
            self.request = request
            self.session = session
            self.clock = clock
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
            // Silence is no failure here.
            options.timeouts.idle = nil
            let asked = try NetworkRequest(
                request.method, url: request.url, headers: headers, body: request.body, options: options)
            let stream = try await session.stream(asked, statuses: .only(200, 204))
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
