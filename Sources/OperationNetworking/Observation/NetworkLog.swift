// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A log of the requests and responses of network operations.
///
/// By default, the log hides secrets.
///
/// ```swift
/// func watch(_ operation: NetworkDataOperation<Int>) {
///     let log = NetworkLog(level: .headers) { line in print(line) }
///     operation.addNetworkObserver(log)
/// }
/// ```
///
/// To log the requests from all operations of a service, set ``NetworkBase/log``.
public struct NetworkLog: Sendable {
    /// The level of detail of a log.
    public struct Level: Sendable, Hashable, Comparable {
        let rank: Int

        /// The log writes one line for each entry, for example for a request or a response.
        public static let lines = Level(rank: 0)
        /// The log writes one line for each entry, and the headers of each request and each response.
        public static let headers = Level(rank: 1)
        /// The log writes the lines, the headers, and the beginning of each request body and each response body.
        ///
        /// The log ignores bodies that are not in memory. With the redaction ``LogRedaction/none``, the log writes all
        /// bodies that are text. With any other redaction, the log writes only bodies that are JSON or URL-encoded
        /// forms. For other bodies in memory, the log writes the number of bytes.
        public static let bodies = Level(rank: 2)

        /// Returns a Boolean value that indicates whether the left level has less detail than the right level.
        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// The level of detail of the log.
    public var level: Level
    /// The rule that determines which secrets the log hides.
    public var redaction: LogRedaction
    /// The maximum number of bytes of a body that the log writes in an entry.
    ///
    /// The default is 1 KiB.
    public var bodyBytes = 1 << 10
    /// The output, in an object that identifies the copies of a log.
    private let writer: Box<@Sendable (Severity, NetworkEvent, String) -> Void>

    /// Creates a log that passes the text of each entry to a closure.
    ///
    /// - Parameters:
    ///   - level: The level of detail of the log. The default is ``NetworkLog/Level/lines``.
    ///   - redaction: The rule that determines which secrets the log hides. The default is ``LogRedaction/secrets``.
    ///   - write: A closure that receives the text of an entry, which has one or more lines. The log calls the closure
    ///     on the thread where the event occurs, so the closure must return quickly.
    public init(
        level: Level = .lines, redaction: LogRedaction = .secrets, write: @escaping @Sendable (String) -> Void
    ) {
        self.init(level: level, redaction: redaction) { _, _, text in write(text) }
    }

    /// Creates a log that passes the severity, the event and the text of each entry to a closure.
    ///
    /// Use this initializer to forward log entries to another logging package.
    ///
    /// - Parameters:
    ///   - level: The level of detail of the log. The default is ``NetworkLog/Level/lines``.
    ///   - redaction: The rule that determines which secrets the log hides in the text. The default is
    ///     ``LogRedaction/secrets``. The event still contains the secrets.
    ///   - write: A closure that receives the severity, the event and the text of an entry. The log calls the closure
    ///     on the thread where the event occurs, so the closure must return quickly.
    public init(
        level: Level = .lines, redaction: LogRedaction = .secrets,
        write: @escaping @Sendable (_ severity: Severity, _ event: NetworkEvent, _ text: String) -> Void
    ) {
        self.level = level
        self.redaction = redaction
        writer = Box(write)
    }

    /// Returns whether both values are copies of one log with the same output.
    func writesAs(_ other: NetworkLog) -> Bool {
        writer === other.writer && level == other.level && bodyBytes == other.bodyBytes && redaction == other.redaction
    }

    /// A log entry with a symbol, the operation and the details.
    private struct Entry {
        var severity = Severity.debug
        let sign: String
        let text: String
        var fields: HeaderFields?
        var body: Data?
        /// The content type of the body.
        var type: String?

        init(_ sign: String, _ text: String, _ severity: Severity = .debug) {
            (self.sign, self.text, self.severity) = (sign, text, severity)
        }

        func with(_ fields: HeaderFields?, _ body: Data? = nil) -> Entry {
            var entry = self
            (entry.fields, entry.body, entry.type) = (fields, body, fields?["Content-Type"])
            return entry
        }

        func with(_ body: Data?, of head: ResponseHead?) -> Entry {
            var entry = self
            (entry.body, entry.type) = (body, head?.headers["Content-Type"])
            return entry
        }
    }

    private func write(_ entry: Entry, _ event: NetworkEvent) {
        // A server must not be able to add lines to a log or control a terminal.
        var lines = ["\(entry.sign) #\(event.operationID) \(entry.text)".printable()]
        if level >= .headers, let fields = entry.fields {
            lines += fields.map(redaction.printable).map { "  \($0.name): \($0.value)" }
        }
        if level >= .bodies, let body = entry.body, !body.isEmpty {
            let text = redaction.text(of: body, type: entry.type, limit: bodyBytes)
            lines.append("  " + text.indentedPrintable)
        }
        writer.value(entry.severity, event, lines.joined(separator: "\n"))
    }
}

extension NetworkLog: NetworkObserver {
    /// Writes an entry for a network event, unless the log ignores events of this kind.
    public func observe(_ event: NetworkEvent) {
        if let entry = entry(for: event) { write(entry, event) }
    }

    private func entry(for event: NetworkEvent) -> Entry? {
        let place = place(event)
        switch event.kind {
        case .held: return Entry("‖", "\(event.waitReason?.description ?? "held") \(place)", .info)
        case .sending:
            let again = event.attempt > 1 ? " (attempt \(event.attempt))" : ""
            return Entry("→", place + again).with(event.request?.headers, event.request?.body.bytesInMemory)
        case .hopBegan where event.hop > 1:
            return Entry("→", "\(place) (hop \(event.hop))").with(
                event.request?.headers, event.request?.body.bytesInMemory)
        case .leftBehind: return Entry("↪", "\(status(event)) \(place)").with(event.head?.headers)
        case .responded: return Entry("←", "\(status(event)) \(place)").with(event.head?.headers)
        case .attemptEnded: return end(of: event, place)
        case .decided: return Entry("…", "\(event.decision?.description ?? "decided") \(place)", .notice)
        case .suspended: return Entry("⊣", "suspended \(place)", .info)
        case .resumed: return Entry("⊢", "resumed \(place)", .info)
        case .operationEnded where event.ending == .cancelled:
            return Entry("⊘", "canceled: \(event.cancellationCause?.code.description ?? "") \(place)", .notice)
        default: return nil
        }
    }

    private func end(of event: NetworkEvent, _ place: String) -> Entry? {
        switch event.ending {
        case .success:
            let time = event.metrics?.ended.map { " in \($0.inMilliseconds) ms" } ?? ""
            return Entry("✓", "\(event.receivedBytes ?? 0) bytes\(time) \(place)").with(
                event.responseBody, of: event.head)
        case .takenBack:
            return Entry("↩", "not sent: the request became outdated while it waited for a connection. \(place)", .info)
        default:
            // The log reports the cancellation of the operation itself, not of its attempt.
            return event.error.map { Entry("✗", redaction.text(of: $0), .error).with($0.bodyPrefix, of: event.head) }
        }
    }

    private func status(_ event: NetworkEvent) -> String { event.head.map { "\($0.status)" } ?? "?" }

    private func place(_ event: NetworkEvent) -> String {
        guard let request = event.request else { return event.operationName }
        return "\(request.summary(redaction))"
    }
}

extension RequestBody {
    package var bytesInMemory: Data? {
        if case .data(let data) = source { data } else { nil }
    }
}

extension Duration {
    fileprivate var inMilliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}

extension NetworkLog {
    /// The severity of a log entry.
    ///
    /// The names of the severities are the same as the names of log levels in swift-log. Future versions may add
    /// severities.
    public struct Severity: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// The name of the severity, such as `debug`.
        public let description: String
        private let rank: Int

        private init(_ name: String, _ rank: Int) { (description, self.rank) = (name, rank) }

        /// The severity of entries about requests, responses and results.
        public static let debug = Severity("debug", 0)
        /// The severity of entries about requests that wait or become outdated while they wait, and about operations
        /// that the program suspends or resumes.
        public static let info = Severity("info", 1)
        /// The severity of entries about decisions after failed attempts, and about canceled operations.
        public static let notice = Severity("notice", 2)
        /// The severity of entries about failed attempts.
        public static let error = Severity("error", 3)

        /// Returns a Boolean value that indicates whether the left severity is lower than the right severity.
        public static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }
    }
}
