// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What there is to show: rows that go on, and what is to be said once.
///
/// A value: whoever changes it says what time it is.
public struct DisplayBoard: Sendable {
    /// Something that is written once and stays.
    enum Note: Sendable, Hashable {
        case text(String, DisplayLine.Role)
        case ended(ProgressRow, elapsed: Duration)
    }

    /// A row that is shown at present.
    struct Active: Sendable {
        var row: ProgressRow
        var rate: Double?
    }

    private struct Entry: Sendable {
        var row: ProgressRow
        var meter = RateMeter()
        var began: OperationInstant?
    }

    private var entries: [Int: Entry] = [:]
    /// Those that have begun and not ended, in the order in which they began.
    private var begun: [Int] = []
    private var notes: [Note] = []
    private var lastID = 0
    private var all = RateMeter()
    /// What came in all, without what was there before.
    private var received: Int64 = 0
    /// What is still to come, as far as that is known.
    private var missing: Int64 = 0
    /// How many rows that have not ended do not know how much there will be.
    private var unknown = 0

    /// How many rows were added.
    public private(set) var count = 0
    /// How many of them ended.
    public private(set) var endedCount = 0
    /// How many of those failed.
    public private(set) var failedCount = 0

    /// Makes an empty board.
    public init() {}

    /// Whether there is nothing that goes on.
    public var isIdle: Bool { begun.isEmpty }

    /// How many have not begun.
    var waitingCount: Int { entries.count - begun.count }

    /// How much came in all, without what was there before.
    var receivedBytes: Int64 { received }

    /// Adds a row, and returns the number by which it is changed.
    public mutating func add(_ row: ProgressRow, at now: OperationInstant) -> Int {
        lastID += 1
        count += 1
        // Counted as one that waits; what else it is, is a change.
        entries[lastID] = Entry(row: ProgressRow(row.name))
        unknown += 1
        change(lastID, at: now) { $0 = row }
        return lastID
    }

    /// Changes a row; one that ended stays as it is.
    public mutating func change(_ id: Int, at now: OperationInstant, _ body: (inout ProgressRow) -> Void) {
        guard var entry = entries[id] else { return }
        let old = entry.row
        body(&entry.row)
        let row = entry.row
        // The sum of announced sizes may overflow. It wraps around, and is correct again when those rows have ended.
        received &+= row.fresh &- old.fresh
        missing &+= Self.missing(row) &- Self.missing(old)
        unknown += (row.total == nil ? 1 : 0) - (old.total == nil ? 1 : 0)
        if row.state != .waiting, entry.began == nil {
            entry.began = now
            begun.append(id)
        }
        if row.state.isEnded {
            end(id, entry, at: now)
        } else {
            if row.completed != old.completed || row.inherited != old.inherited || row.state != old.state {
                entry.meter.note(row.fresh, at: now)
            }
            entries[id] = entry
        }
        if row.unit == .bytes { all.note(received, at: now) }
    }

    private mutating func end(_ id: Int, _ entry: Entry, at now: OperationInstant) {
        entries[id] = nil
        begun.removeAll { $0 == id }
        endedCount += 1
        if entry.row.state == .failed { failedCount += 1 }
        missing &-= Self.missing(entry.row)
        if entry.row.total == nil { unknown -= 1 }
        notes.append(.ended(entry.row, elapsed: (entry.began ?? now).duration(to: now)))
    }

    /// Says something, once.
    public mutating func say(_ text: String, _ role: DisplayLine.Role = .plain) {
        notes.append(.text(text, role))
    }

    /// Takes what is to be said.
    mutating func takeNotes() -> [Note] {
        defer { notes = [] }
        return notes
    }

    /// The first rows that go on, at most so many.
    func active(_ limit: Int, at now: OperationInstant) -> [Active] {
        begun.prefix(max(limit, 0)).compactMap { entries[$0] }
            .map { Active(row: $0.row, rate: $0.meter.rate(at: now)) }
    }

    /// How many go on.
    var activeCount: Int { begun.count }

    /// How fast all goes on together.
    func rate(at now: OperationInstant) -> Double? { all.rate(at: now) }

    /// How long it will take, if that can be told.
    func timeLeft(at now: OperationInstant) -> Duration? {
        guard unknown == 0 else { return nil }
        return Self.timeLeft(missing, rate(at: now))
    }

    /// How long so much takes at a rate; nil where it does not come to an end.
    static func timeLeft(_ missing: Int64, _ rate: Double?) -> Duration? {
        guard let rate, rate > 0 else { return nil }
        let seconds = Double(missing) / rate
        return seconds < 1e9 ? .seconds(max(seconds, 0)) : nil
    }

    private static func missing(_ row: ProgressRow) -> Int64 { row.unit == .bytes ? row.missing : 0 }
}
