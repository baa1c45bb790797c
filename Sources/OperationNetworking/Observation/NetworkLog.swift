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
    private let write: @Sendable (String) -> Void

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
        self.write = write
    }

    private func write(_ line: String, _ fields: HeaderFields, _ body: Data?) {
        var lines = [line]
        if level >= .headers { lines += fields.map { "  \($0.name): \(redaction.value(of: $0))" } }
        if level >= .bodies, let body, !body.isEmpty {
            lines.append("  " + redaction.text(of: body, limit: bodyBytes))
        }
        write(lines.joined(separator: "\n"))
    }
}

extension NetworkLog: AttemptWatcher {
    package func attempt(_ number: Int, of operation: any AnyNetworkOperation, did event: AttemptEvent) {
        switch event {
        case .held(let reason): write("‖ \(reason) \(subject(operation))", [:], nil)
        case .begins(let request):
            let place = redaction.keepsSecrets ? "\(request.method) \(request.url)" : "\(request.summary)"
            let again = number > 1 ? " (attempt \(number))" : ""
            write("→ \(place)\(again)", request.headers, request.body.bytesInMemory)
        case .takenBack:
            write("↩ not sent: what it waited with for a connection is out of date. \(subject(operation))", [:], nil)
        case .received(let head):
            write("← \(head.status) \(subject(operation))", head.headers, nil)
        case .evaluated:
            let time = operation.metrics?.ended.map { " in \($0.inMilliseconds) ms" } ?? ""
            write(
                "✓ \(operation.downloadProgress.completedBytes) bytes\(time) \(subject(operation))", [:],
                level >= .bodies ? operation.networkAttempts.bodyInMemory : nil)
        case .failed(let error): write("✗ \(error)", [:], error.bodyPrefix)
        case .decided(let answer): write("… \(answer.note ?? "\(answer.decision)") \(subject(operation))", [:], nil)
        }
    }

    private func subject(_ operation: any AnyNetworkOperation) -> String {
        guard let request = operation.request else { return "" }
        return redaction.keepsSecrets ? "\(request.method) \(request.url)" : "\(request.summary)"
    }
}

extension AnyNetworkOperation {
    /// Writes down what the operation sends and gets; to be called before the start.
    public func addLog(_ log: NetworkLog) { networkAttempts.add(log) }
}

extension RequestBody {
    fileprivate var bytesInMemory: Data? {
        if case .data(let data) = source { data } else { nil }
    }
}

extension NetworkAttempts {
    fileprivate var bodyInMemory: Data? { (collector as? DataCollector)?.finish() }
}

extension Duration {
    fileprivate var inMilliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}
