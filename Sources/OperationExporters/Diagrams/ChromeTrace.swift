// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension QueueRecord {
    /// Returns the record as a Chrome trace, which you can open in `ui.perfetto.dev` or `chrome://tracing`.
    ///
    /// The trace is JSON and has one track for each slot in the queue. Each track has a bar for each operation that ran
    /// in the slot. The details of a bar include how long the operation waited and ran. Arrows show dependencies. Other
    /// tracks show the waits for dependencies, start conditions and slots. These tracks also show the delay before the
    /// handler of each operation was called. Operations on the critical path, which is the chain of dependent
    /// operations with the longest total execution time, have the category `critical` and a different color.
    ///
    /// - Throws: An error from the JSON encoder.
    public func chromeTrace() throws -> Data { try ChromeTrace(traceEvents(process: 1)).json() }

    /// Returns the events of the trace, with a process number that identifies the queue among others.
    package func traceEvents(process: Int) -> [TraceEvent] {
        // Shifts the IDs, so that they differ from the IDs of other queues.
        let shift = Int.bitWidth > 32 ? 46 : 24
        return traceEvents.map { event in
            var event = event
            event.pid = process
            event.id = event.id.map { $0 + (process - 1) << shift }
            return event
        }
    }

    private var traceEvents: [TraceEvent] {
        let path = criticalPath, critical = Set(path.runs)
        let byID = Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0) })
        var events = [TraceEvent(name: "process_name", ph: "M", tid: 0, args: ["name": "queue \(queue)"])]
        for lane in Set(runs.compactMap(\.lane)).sorted() {
            events.append(TraceEvent(name: "thread_name", ph: "M", tid: lane + 1, args: ["name": "slot \(lane + 1)"]))
        }
        for run in runs {
            events += waits(run)
            guard let stretch = stretch(run, isCritical: critical.contains(run.id), path.slack[run.id]) else {
                continue
            }
            events.append(stretch)
            for id in run.dependencies { if let other = byID[id] { events += arrow(from: other, to: run) } }
        }
        return events
    }

    private func stretch(_ run: QueueRun, isCritical: Bool, _ slack: Duration?) -> TraceEvent? {
        guard let started = run.started, let executing = run.executing, let lane = run.lane else { return nil }
        var figures = [
            "waited for dependencies": "\(run.waitingForDependencies)", "held": "\(run.held)",
            "waited for a slot": "\(run.waitingForPlace)", "executed": "\(executing)",
            "slack": slack.map { "\($0)" } ?? "unknown", "ended": run.ending.map { "\($0)" } ?? "not yet",
        ]
        if let delay = run.handlerDelay { figures["time until its handler ran"] = "\(delay)" }
        // The bar ends two nanoseconds early. Otherwise, rounding can make a viewer nest the next bar of the track in
        // it.
        return TraceEvent(
            name: run.name, cat: isCritical ? "executing,critical" : "executing", ph: "X", ts: started.microseconds,
            dur: max(executing.microseconds - 0.002, 0), tid: lane + 1, cname: isCritical ? "terrible" : nil,
            args: figures)
    }

    /// Returns the consecutive waits, and the time until the handler ran.
    private func waits(_ run: QueueRun) -> [TraceEvent] {
        var events: [TraceEvent] = []
        var moment = run.added
        let parts = [
            ("dependencies", run.waitingForDependencies), ("held", run.held), ("place", run.waitingForPlace),
        ]
        for (kind, time) in parts where time > .zero {
            let shown = kind == "place" ? "slot" : kind
            events += span("\(run.name): \(shown)", kind, run.id, from: moment, to: moment.advanced(by: time))
            moment = moment.advanced(by: time)
        }
        if let from = run.handlerEnqueued, let to = run.handlerBegan {
            events += span("\(run.name): handler", "handler", run.id, from: from, to: to)
        }
        return events
    }

    private func span(
        _ name: String, _ kind: String, _ id: Int, from: OperationInstant, to: OperationInstant
    ) -> [TraceEvent] {
        [("b", from), ("e", to)].map { end, moment in
            TraceEvent(name: name, cat: "waiting,\(kind)", ph: end, ts: moment.microseconds, tid: 0, id: id)
        }
    }

    private func arrow(from run: QueueRun, to other: QueueRun) -> [TraceEvent] {
        guard let ended = run.ended, let began = run.started, let lane = run.lane,
            let started = other.started, let otherLane = other.lane
        else { return [] }
        // The arrow starts within the bar, because viewers treat the bar as finished at its very end.
        let tail = max(ended.microseconds - 0.004, began.microseconds)
        let id = other.id << 20 | run.id & 0xF_FFFF
        return [
            TraceEvent(name: "dependency", cat: "dependency", ph: "s", ts: tail, tid: lane + 1, id: id),
            TraceEvent(
                name: "dependency", cat: "dependency", ph: "f", ts: started.microseconds, tid: otherLane + 1, id: id,
                bp: "e"),
        ]
    }
}

// The format is described in "Trace Event Format" of the Chromium project, and Perfetto can read it too.

/// An event of a Chrome trace.
package struct TraceEvent: Encodable, Sendable {
    package let name: String
    package var cat: String?
    /// The phase: X for a bar, b and e for the ends of an async span, s and f for an arrow, i for an instant, M for a
    /// name.
    package let ph: String
    /// The time in microseconds.
    package var ts: Double?
    package var dur: Double?
    package var pid = 1
    package let tid: Int
    package var id: Int?
    /// The binding point, which makes an arrow end at the enclosing bar instead of the next one.
    package var bp: String?
    /// The scope of an instant, which is its track.
    package var s: String?
    /// The name of a color.
    package var cname: String?
    package var args: [String: String]?
}

/// A complete Chrome trace.
package struct ChromeTrace: Encodable, Sendable {
    package let displayTimeUnit = "ms"
    package let traceEvents: [TraceEvent]

    package init(_ events: [TraceEvent]) { traceEvents = events }

    package func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return try encoder.encode(self)
    }
}

extension OperationInstant {
    package var microseconds: Double { offset.microseconds }
}

extension Duration {
    package var microseconds: Double { Double(saturatedNanoseconds) / 1_000 }
}
