// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// A layout that assigns network operations to the tracks of a timeline, either on the track of their queue or on
/// separate tracks.
struct TraceLayout {
    private let operations: [TracedOperation]
    private let records: [QueueRecord]
    /// The time of the last event.
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

    /// Returns the operation of a run, whose time must match because object addresses are reused.
    private func operation(of run: QueueRun) -> TracedOperation? {
        guard let object = run.object, let started = run.started, let ended = run.ended, run.lane != nil else {
            return nil
        }
        return byObject[object]?.first { started <= $0.began && $0.began <= ended }
    }

    /// Returns the events of operations without a queue, each on the first free track or on a new one.
    private func linesOfOthers(_ others: [TracedOperation]) -> [TraceEvent] {
        guard !others.isEmpty else { return [] }
        let process = records.count + 1
        var lines = [name("process_name", "network operations", process, 0)]
        // The tracks, by the time at which they become free.
        var free = TimerHeap<Int>()
        for operation in others.sorted(by: { ($0.began, $0.id) < ($1.began, $1.id) }) {
            let stretch = operation.stretch(until: latest)
            // A microsecond separates the bars, because viewers round times.
            let known = free.popDue(at: stretch.began.advanced(by: .microseconds(-1)))
            let track = known ?? free.count
            if known == nil { lines.append(name("thread_name", "network \(track + 1)", process, track + 1)) }
            _ = free.insert(track, due: stretch.ended)
            lines += stretch.lines(process, track + 1) + marks(of: operation, process, track + 1)
        }
        return lines
    }

    private func name(_ kind: String, _ name: String, _ process: Int, _ track: Int) -> TraceEvent {
        TraceEvent(name: kind, ph: "M", pid: process, tid: track, args: ["name": name])
    }

    private func marks(of operation: TracedOperation, _ process: Int, _ track: Int) -> [TraceEvent] {
        operation.marks.map { mark in
            TraceEvent(
                name: mark.name, cat: "operation", ph: "i", ts: mark.moment.microseconds, pid: process, tid: track,
                s: "t")
        }
    }
}

/// A bar of a timeline with nested bars.
struct TraceStretch: Sendable {
    /// The distance between two bars, and between a bar and its nested bars.
    ///
    /// Viewers round times, and must not nest a bar in the wrong one.
    private static let gap = Duration.nanoseconds(10)

    let name: String
    let category: String
    var began: OperationInstant
    var ended: OperationInstant
    var figures: [String: String] = [:]
    var colour: String?
    /// The nested bars, in their order.
    var parts: [TraceStretch] = []

    /// Returns the events of the nested bars, which are limited to the range of this bar and made consecutive.
    func linesOfParts(_ process: Int, _ track: Int) -> [TraceEvent] {
        var lines: [TraceEvent] = []
        var free = began
        let end = ended.advanced(by: .zero - Self.gap)
        for part in parts {
            var part = part
            part.began = max(part.began, free.advanced(by: Self.gap))
            part.ended = min(part.ended, end)
            guard part.began < part.ended else { continue }
            lines += part.lines(process, track)
            free = part.ended
        }
        return lines
    }

    /// Returns the event of this bar, and the events of its nested bars.
    func lines(_ process: Int, _ track: Int) -> [TraceEvent] {
        let line = TraceEvent(
            name: name, cat: category, ph: "X", ts: began.microseconds, dur: began.duration(to: ended).microseconds,
            pid: process, tid: track, cname: colour, args: figures.isEmpty ? nil : figures)
        return [line] + linesOfParts(process, track)
    }
}

extension TracedOperation {
    /// Returns the bar of the operation, which ends at `last` if the operation is running.
    func stretch(until last: OperationInstant) -> TraceStretch {
        let end = ended ?? last
        let parts = attempts.map { $0.stretch(until: end) } + waits.map { $0.stretch(until: end) }
        var figures = ["ended": ending?.description ?? "not yet", "operation": "\(id)"]
        if forgottenAttempts > 0 { figures["earlier attempts"] = "\(forgottenAttempts)" }
        return TraceStretch(
            name: name, category: "operation", began: began, ended: end, figures: figures,
            parts: parts.sorted { $0.began < $1.began })
    }
}

extension TracedOperation.Wait {
    fileprivate func stretch(until end: OperationInstant) -> TraceStretch {
        TraceStretch(
            name: name, category: "waiting", began: began, ended: ended ?? end,
            figures: note.map { ["why": $0] } ?? [:],
            colour: "grey")
    }
}

extension TracedOperation.Attempt {
    fileprivate func stretch(until last: OperationInstant) -> TraceStretch {
        let end = ended ?? last
        var parts =
            waits.map { $0.stretch(until: end) } + hops.enumerated().map { $0.element.stretch($0.offset, until: end) }
        let busy = parts.map(\.began).min() ?? end
        parts.append(TraceStretch(name: "prepare", category: "phase", began: began, ended: min(sent ?? busy, busy)))
        if let over = hops.last?.ended, ending == .success {
            parts.append(TraceStretch(name: "evaluate", category: "phase", began: over, ended: end))
        }
        var figures = ["ended": ending?.description ?? "not yet"]
        figures["request"] = summary
        figures["status"] = status.map { "\($0)" }
        figures["error"] = code?.description
        return TraceStretch(
            name: "attempt \(number)", category: "attempt", began: began, ended: end, figures: figures,
            colour: ending == .failure ? "bad" : nil, parts: parts.sorted { $0.began < $1.began })
    }
}

extension TracedOperation.Hop {
    fileprivate func stretch(_ index: Int, until last: OperationInstant) -> TraceStretch {
        var figures: [String: String] = [:]
        figures["status"] = status.map { "\($0)" }
        if let metrics {
            figures["connection"] = metrics.isConnectionReused ? "reused" : "new"
            figures["address"] = metrics.remoteAddress
            figures["version"] = metrics.version?.description
            figures["body bytes received"] = "\(metrics.bodyBytesReceived)"
            figures["body bytes sent"] = "\(metrics.bodyBytesSent)"
        }
        return TraceStretch(
            name: summary ?? "request \(index + 1)", category: "request", began: measuredBeginning,
            ended: ended ?? last, figures: figures, parts: phases)
    }

    /// The measured start of the request, which may precede the event that reported it.
    private var measuredBeginning: OperationInstant {
        guard let ended, let length = metrics?.ended else { return began }
        return min(began, ended.advanced(by: .zero - length))
    }

    private var phases: [TraceStretch] {
        guard let metrics else { return [] }
        let began = measuredBeginning
        return TransferPhases(metrics, bodySent: bodySent.map { began.duration(to: $0) }).list.map { phase in
            TraceStretch(
                name: "\(phase.kind)", category: "phase", began: began.advanced(by: phase.began),
                ended: began.advanced(by: phase.ended))
        }
    }
}
