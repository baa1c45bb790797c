// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Puts network operations onto the tracks of a timeline: those of their queues, or their own.
struct TraceLayout {
    private let operations: [TracedOperation]
    private let records: [QueueRecord]
    /// Until when there is word of anything.
    private let latest: OperationInstant
    private let byObject: [ObjectIdentifier: [TracedOperation]]

    init(_ operations: [TracedOperation], _ records: [QueueRecord]) {
        (self.operations, self.records) = (operations, records)
        latest = operations.map(\.last).max() ?? OperationInstant(offset: .zero)
        byObject = operations.reduce(into: [:]) { result, operation in
            if let object = operation.object { result[object, default: []].append(operation) }
        }
    }

    var trace: ChromeTrace {
        var lines: [TraceEvent] = []
        var placed: Set<UInt64> = []
        for (index, record) in records.enumerated() {
            lines += record.traceEvents(process: index + 1)
            for run in record.runs {
                guard let operation = operation(of: run), placed.insert(operation.id).inserted,
                    let started = run.started, let ended = run.ended, let lane = run.lane
                else { continue }
                var stretch = operation.stretch(until: latest)
                (stretch.began, stretch.ended) = (started, ended)
                lines += stretch.linesOfParts(index + 1, lane + 1)
                lines += marks(of: operation, index + 1, lane + 1)
            }
        }
        return ChromeTrace(lines + linesOfOthers(operations.filter { !placed.contains($0.id) }))
    }

    /// What the object at that address did while the run went on: addresses are used again.
    private func operation(of run: QueueRun) -> TracedOperation? {
        guard let object = run.object, let started = run.started, let ended = run.ended, run.lane != nil else {
            return nil
        }
        return byObject[object]?.first { started <= $0.began && $0.began <= ended }
    }

    /// Those of no queue: each on the track that was the first to become free, if one is when it begins.
    private func linesOfOthers(_ others: [TracedOperation]) -> [TraceEvent] {
        guard !others.isEmpty else { return [] }
        let process = records.count + 1
        var lines = [name("process_name", "network operations", process, 0)]
        var free = TrackHeap()
        for operation in others.sorted(by: { ($0.began, $0.id) < ($1.began, $1.id) }) {
            let stretch = operation.stretch(until: latest)
            // A microsecond apart, for readers that calculate with fractions.
            let (track, isNew) = free.take(before: stretch.began.advanced(by: .microseconds(-1)), until: stretch.ended)
            if isNew { lines.append(name("thread_name", "network \(track + 1)", process, track + 1)) }
            lines += stretch.lines(process, track + 1) + marks(of: operation, process, track + 1)
        }
        return lines
    }

    private func name(_ kind: String, _ name: String, _ process: Int, _ track: Int) -> TraceEvent {
        var line = TraceEvent(name: kind, ph: "M", tid: track, args: ["name": name])
        line.pid = process
        return line
    }

    private func marks(of operation: TracedOperation, _ process: Int, _ track: Int) -> [TraceEvent] {
        operation.marks.map { mark in
            var line = TraceEvent(
                name: mark.name, cat: "operation", ph: "i", ts: mark.moment.microseconds, tid: track, s: "t")
            line.pid = process
            return line
        }
    }
}
