// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// A stretch of a timeline with others in it.
struct TraceStretch: Sendable {
    /// What lies between two stretches of a track, and between one and those in it: readers of traces calculate with
    /// fractions of microseconds, and must not take one for a part of the other.
    private static let gap = Duration.nanoseconds(10)

    let name: String
    let category: String
    var began: OperationInstant
    var ended: OperationInstant
    var figures: [String: String] = [:]
    var colour: String?
    /// What is in it, in its order.
    var parts: [TraceStretch] = []

    /// The lines of all that is in it: within its ends, and one after the other, whatever their moments are.
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

    /// Its own line, and those of what is in it.
    func lines(_ process: Int, _ track: Int) -> [TraceEvent] {
        var line = TraceEvent(
            name: name, cat: category, ph: "X", ts: began.microseconds, dur: began.duration(to: ended).microseconds,
            tid: track, cname: colour, args: figures.isEmpty ? nil : figures)
        line.pid = process
        return [line] + linesOfParts(process, track)
    }
}

extension TracedOperation {
    /// The operation as a stretch, until that moment if it goes on.
    func stretch(until last: OperationInstant) -> TraceStretch {
        let end = ended ?? last
        let parts = attempts.map { $0.stretch(until: end) } + waits.map { $0.stretch(until: end) }
        var figures = ["ended": ending?.description ?? "not yet", "operation": "\(id)"]
        if forgottenAttempts > 0 { figures["attempts before these"] = "\(forgottenAttempts)" }
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
            figures["connection"] = metrics.isConnectionReused ? "used before" : "new"
            figures["address"] = metrics.remoteAddress
            figures["version"] = metrics.version?.description
            figures["body bytes received"] = "\(metrics.bodyBytesReceived)"
            figures["body bytes sent"] = "\(metrics.bodyBytesSent)"
        }
        return TraceStretch(
            name: summary ?? "request \(index + 1)", category: "request", began: measuredBeginning,
            ended: ended ?? last, figures: figures, parts: phases)
    }

    /// When it began: what was measured, counted back from its end, where the word of it came later than it began.
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
