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
        let take: @Sendable (String) -> Void

        init(_ take: @escaping @Sendable (String) -> Void) { self.take = take }
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
        self.level = level
        self.redaction = redaction
        writer = Writer(write)
    }

    /// Whether both are copies of one log, and write the same.
    func writesAs(_ other: NetworkLog) -> Bool {
        writer === other.writer && level == other.level && bodyBytes == other.bodyBytes && redaction == other.redaction
    }

    private func write(_ line: String, _ fields: HeaderFields? = nil, _ body: Data? = nil) {
        var lines = [line]
        if level >= .headers, let fields { lines += fields.map { "  \($0.name): \(redaction.value(of: $0))" } }
        if level >= .bodies, let body, !body.isEmpty {
            lines.append("  " + redaction.text(of: body, limit: bodyBytes))
        }
        writer.take(lines.joined(separator: "\n"))
    }
}

extension NetworkLog: NetworkObserver {
    /// Writes down an event, if its kind is one for a log.
    public func observe(_ event: NetworkEvent) {
        switch event.kind {
        case .held: write("‖ \(event.waitReason?.description ?? "held") \(place(event))")
        case .sending:
            let again = event.attempt > 1 ? " (attempt \(event.attempt))" : ""
            write("→ \(place(event))\(again)", event.request?.headers, event.request?.body.bytesInMemory)
        case .hopBegan where event.hop > 1:
            write("→ \(place(event)) (hop \(event.hop))", event.request?.headers, event.request?.body.bytesInMemory)
        case .leftBehind: write("↪ \(status(event)) \(place(event))", event.head?.headers)
        case .responded: write("← \(status(event)) \(place(event))", event.head?.headers)
        case .attemptEnded: writeEnd(of: event)
        case .decided: write("… \(event.decision?.description ?? "decided") \(place(event))")
        case .suspended: write("⊣ suspended \(place(event))")
        case .resumed: write("⊢ resumed \(place(event))")
        case .operationEnded where event.ending == .cancelled:
            write("⊘ cancelled: \(event.cancellationCause?.code.description ?? "") \(place(event))")
        default: break
        }
    }

    private func writeEnd(of event: NetworkEvent) {
        switch event.ending {
        case .success:
            let time = event.metrics?.ended.map { " in \($0.inMilliseconds) ms" } ?? ""
            write("✓ \(event.receivedBytes ?? 0) bytes\(time) \(place(event))", nil, event.responseBody)
        case .takenBack:
            write("↩ not sent: what it waited with for a connection is out of date. \(place(event))")
        default:
            // One that was cancelled with its operation is told with that.
            if let error = event.error { write("✗ \(error)", nil, error.bodyPrefix) }
        }
    }

    private func status(_ event: NetworkEvent) -> String { event.head.map { "\($0.status)" } ?? "?" }

    private func place(_ event: NetworkEvent) -> String {
        guard let request = event.request else { return event.operationName }
        return redaction.keepsSecrets ? "\(request.method) \(request.url)" : "\(request.summary)"
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
