// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension QueueRecord {
    /// What ran when, as a Chrome trace: JSON that `ui.perfetto.dev` and `chrome://tracing` open.
    ///
    /// One track for each place of the queue, with a stretch for each operation that executed and its figures beside it;
    /// arrows along the dependencies; waits for dependencies, for admission and for a place, and the way to the handler,
    /// beside the tracks. Operations of the critical path have "critical" among their categories and a colour of their own.
    public func chromeTrace() throws -> Data { try ChromeTrace(traceEvents(process: 1)).json() }

    /// The lines of the trace, where several queues have a number each.
    package func traceEvents(process: Int) -> [TraceEvent] {
        // What has a number of its own has one that no other queue's has.
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
            events.append(TraceEvent(name: "thread_name", ph: "M", tid: lane + 1, args: ["name": "place \(lane + 1)"]))
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
            "waited for a place": "\(run.waitingForPlace)", "executed": "\(executing)",
            "slack": slack.map { "\($0)" } ?? "unknown", "ended": run.ending?.rawValue ?? "not yet",
        ]
        if let delay = run.handlerDelay { figures["until its handler ran"] = "\(delay)" }
        // Two nanoseconds early: readers calculate with fractions, and must not take the next one of the track for a part.
        return TraceEvent(
            name: run.name, cat: isCritical ? "executing,critical" : "executing", ph: "X", ts: started.microseconds,
            dur: max(executing.microseconds - 0.002, 0), tid: lane + 1, cname: isCritical ? "terrible" : nil,
            args: figures)
    }

    /// The waits one after another, and the way to the handler.
    private func waits(_ run: QueueRun) -> [TraceEvent] {
        var events: [TraceEvent] = []
        var moment = run.added
        let parts = [
            ("dependencies", run.waitingForDependencies), ("held", run.held), ("place", run.waitingForPlace),
        ]
        for (kind, time) in parts where time > .zero {
            events += span("\(run.name): \(kind)", kind, run.id, from: moment, to: moment.advanced(by: time))
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
        // Inside of the stretch: at its very end readers take it to be over.
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

// The format is described in "Trace Event Format" of the Chromium project; Perfetto reads it, too.

/// One line of a Chrome trace.
package struct TraceEvent: Encodable, Sendable {
    package let name: String
    package var cat: String?
    /// The kind: X a stretch, b and e the ends of one beside the tracks, s and f those of an arrow, i a moment, M a name.
    package let ph: String
    /// Microseconds.
    package var ts: Double?
    package var dur: Double?
    package var pid = 1
    package let tid: Int
    package var id: Int?
    /// That an arrow ends at the stretch around it, not at the next one.
    package var bp: String?
    /// What a moment is marked on: its track.
    package var s: String?
    /// A colour by name.
    package var cname: String?
    package var args: [String: String]?

    package init(
        name: String, cat: String? = nil, ph: String, ts: Double? = nil, dur: Double? = nil, tid: Int, id: Int? = nil,
        bp: String? = nil, s: String? = nil, cname: String? = nil, args: [String: String]? = nil
    ) {
        (self.name, self.cat, self.ph, self.ts, self.dur, self.tid, self.id) = (name, cat, ph, ts, dur, tid, id)
        (self.bp, self.s, self.cname, self.args) = (bp, s, cname, args)
    }
}

/// A whole Chrome trace.
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
