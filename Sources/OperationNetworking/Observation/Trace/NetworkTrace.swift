// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Writes down what network operations did when, and makes a timeline of it.
///
/// ```swift
/// func run(_ queue: QueueManager, _ shop: inout NetworkBase) throws {
///     let trace = NetworkTrace()
///     shop.observers.append(trace)
///     queue.recording = QueueRecording()
///     // … run operations of the shop in the queue …
///     try trace.chromeTrace(with: queue.record).write(to: URL(fileURLWithPath: "/tmp/trace.json"))
/// }
/// ```
///
/// The file opens in `ui.perfetto.dev` and `chrome://tracing`. It shows no secrets: of URLs no values of queries, of requests
/// and responses neither fields nor bodies.
public final class NetworkTrace: NetworkObserver {
    private struct State {
        var operations: [UInt64: TracedOperation] = [:]
        var order = Fifo<UInt64>()
        /// How many operations, attempts, requests, waits and suspensions there are.
        var size = 0
        var forgottenCount = 0

        mutating func forget(_ id: UInt64) {
            guard let operation = operations.removeValue(forKey: id) else { return }
            size -= operation.size
            forgottenCount += 1
        }
    }

    /// How many operations are remembered at most; the oldest give way.
    public let limit: Int
    private let state = Locked(State())

    /// Makes an empty trace, of up to 10,000 operations unless you set another number.
    ///
    /// Of each operation it has the last 100 attempts, of each attempt the last 100 requests and waits, and of all these
    /// things together ten times as many as operations, or the oldest operations give way.
    public init(limit: Int = 10_000) {
        self.limit = max(limit, 1)
    }

    /// How many operations are not in it any more because there were more than are remembered, since ended ones
    /// were taken out or removed last.
    public var forgottenCount: Int { state.withLock { $0.forgottenCount } }

    /// Notes an event.
    public func observe(_ event: NetworkEvent) {
        let summary = event.request.map { "\($0.summary)" }
        state.withLock { state in
            if state.operations[event.operationID] == nil {
                // One of which it knew nothing, or nothing any more: it begins with its beginning.
                guard event.kind == .operationBegan else { return }
                let operation = TracedOperation(event)
                state.operations[event.operationID] = operation
                state.size += operation.size
                state.order.append(event.operationID)
            }
            let before = state.operations[event.operationID]?.size ?? 0
            state.operations[event.operationID]?.note(event, summary)
            state.size += (state.operations[event.operationID]?.size ?? 0) - before
            while state.order.count > limit || state.size / 10 > limit && state.order.count > 1 {
                guard let oldest = state.order.popFirst() else { break }
                state.forget(oldest)
            }
        }
    }

    /// The timeline as a Chrome trace: JSON that `ui.perfetto.dev` and `chrome://tracing` open.
    ///
    /// - Parameter records: What queues recorded (`queue.record`). What is in the record of one stands in its track there,
    ///   with its attempts nested in it; the others have tracks of their own.
    ///
    /// In each operation are its attempts and the waits between them: for a pause, a credential, the network, and with it for
    /// a place of the queue after that; for that place alone where the pause is none. In each attempt are its requests, and
    /// in each request what it spent its time with, as far as the session measured it:
    /// waiting for a connection, looking up the name, connecting, agreeing on TLS, sending, waiting for the first byte,
    /// receiving.
    public func chromeTrace(with records: QueueRecord...) throws -> Data { try chromeTrace(with: records) }

    /// The same with the records of any number of queues.
    public func chromeTrace(with records: [QueueRecord]) throws -> Data {
        try Self.json(of: state.withLock { $0.operations }.values, records)
    }

    /// The timeline, and from then on without what ended: for whoever writes one every minute.
    ///
    /// What goes on is in this one as far as it came, and in the next one from its beginning.
    public func takeChromeTrace(with records: [QueueRecord] = []) throws -> Data {
        try Self.json(of: takeEnded().values, records)
    }

    /// Forgets all operations that ended; what goes on stays.
    public func removeAll() { _ = takeEnded() }

    private func takeEnded() -> [UInt64: TracedOperation] {
        state.withLock { state in
            let all = state.operations
            state.operations = all.filter { $0.value.ended == nil }
            state.order = Fifo()
            for id in state.operations.keys.sorted() { state.order.append(id) }
            state.size = state.operations.values.reduce(0) { $0 + $1.size }
            state.forgottenCount = 0
            return all
        }
    }

    private static func json(of operations: some Sequence<TracedOperation>, _ records: [QueueRecord]) throws -> Data {
        try TraceLayout(operations.sorted { $0.id < $1.id }, records).trace.json()
    }
}
