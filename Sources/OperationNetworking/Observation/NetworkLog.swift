// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Writes down what network operations send and get, without secrets unless you ask for them.
///
/// ```swift
/// func watch(_ operation: NetworkDataOperation<Int>) {
///     operation.addLog(NetworkLog(level: .headers) { line in print(line) })
/// }
/// ```
///
/// For all operations of a service, set ``NetworkBase/log``.
public struct NetworkLog: Sendable {
    /// How much is written down.
    public struct Level: Sendable, Hashable, Comparable {
        let rank: Int

        /// A line for each request and each answer.
        public static let lines = Level(rank: 0)
        /// The header fields, too.
        public static let headers = Level(rank: 1)
        /// The beginnings of bodies, too, as far as they are text in memory.
        public static let bodies = Level(rank: 2)

        /// Whether the left one is less.
        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// How much is written down.
    public var level: Level
    /// What is left out.
    public var redaction: LogRedaction
    /// How many bytes of a body are shown: 1 KiB; none if it is negative.
    public var bodyBytes = 1 << 10
    private let writer: Writer

    /// In an object of its own, by which copies of a log know each other.
    private final class Writer: Sendable {
        let take: @Sendable (Severity, NetworkEvent, String) -> Void

        init(_ take: @escaping @Sendable (Severity, NetworkEvent, String) -> Void) { self.take = take }
    }

    /// Makes a log.
    ///
    /// - Parameters:
    ///   - level: How much is written down.
    ///   - redaction: What is left out: the usual secrets.
    ///   - write: Takes an entry, of one or more lines. Called on whatever thread something happens: it should hand over.
    public init(
        level: Level = .lines, redaction: LogRedaction = .secrets, write: @escaping @Sendable (String) -> Void
    ) {
        self.init(level: level, redaction: redaction) { _, _, text in write(text) }
    }

    /// Makes a log that hands over more than the text, for a bridge to another package.
    ///
    /// - Parameters:
    ///   - level: How much is written down.
    ///   - redaction: What is left out of the text: the usual secrets. The event has them.
    ///   - write: Takes how much an entry matters, the event that it is about, and the entry. Called on whatever thread
    ///     something happens: it should hand over.
    public init(
        level: Level = .lines, redaction: LogRedaction = .secrets,
        write: @escaping @Sendable (_ severity: Severity, _ event: NetworkEvent, _ text: String) -> Void
    ) {
        self.level = level
        self.redaction = redaction
        writer = Writer(write)
    }

    /// Whether both are copies of one log, and write the same.
    func writesAs(_ other: NetworkLog) -> Bool {
        writer === other.writer && level == other.level && bodyBytes == other.bodyBytes && redaction == other.redaction
    }

    /// An entry: a sign, which operation it is, and the rest.
    private struct Entry {
        var severity = Severity.debug
        let sign: String
        let text: String
        var fields: HeaderFields?
        var body: Data?
        /// The type of the body.
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
        // A server must neither add lines to a log nor control a terminal.
        var lines = ["\(entry.sign) #\(event.operationID) \(entry.text)".printable()]
        if level >= .headers, let fields = entry.fields {
            lines += fields.map(redaction.printable).map { "  \($0.name): \($0.value)" }
        }
        if level >= .bodies, let body = entry.body, !body.isEmpty {
            let text = redaction.text(of: body, type: entry.type, limit: bodyBytes)
            lines.append("  " + text.indentedPrintable)
        }
        writer.take(entry.severity, event, lines.joined(separator: "\n"))
    }
}

extension NetworkLog: NetworkObserver {
    /// Writes down an event, if its kind is one for a log.
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
            return Entry("⊘", "cancelled: \(event.cancellationCause?.code.description ?? "") \(place)", .notice)
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
            return Entry("↩", "not sent: what it waited with for a connection is out of date. \(place)", .info)
        default:
            // One that was cancelled with its operation is told with that.
            return event.error.map { Entry("✗", redaction.text(of: $0), .error).with($0.bodyPrefix, of: event.head) }
        }
    }

    private func status(_ event: NetworkEvent) -> String { event.head.map { "\($0.status)" } ?? "?" }

    private func place(_ event: NetworkEvent) -> String {
        guard let request = event.request else { return event.operationName }
        return "\(request.summary(redaction))"
    }
}

extension AnyNetworkOperation {
    /// Writes down what the operation sends and gets; to be called before the start.
    public func addLog(_ log: NetworkLog) { addNetworkObserver(log) }
}

extension RequestBody {
    var bytesInMemory: Data? {
        if case .data(let data) = source { data } else { nil }
    }
}

extension Duration {
    fileprivate var inMilliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}
