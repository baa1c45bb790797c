// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
