// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A board that contains rows with progress, and messages to print once.
///
/// A board is a value. The caller passes the current time with each change.
public struct DisplayBoard: Sendable {
    /// A message that the display prints once and that stays on the screen.
    enum Note: Sendable, Hashable {
        case text(String, DisplayLine.Role)
        case ended(ProgressRow, elapsed: Duration)
    }

    /// A row that is in progress.
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
    /// The rows that have begun and not ended, in the order in which they began.
    private var begun: [Int] = []
    private var notes: [Note] = []
    private var lastID = 0
    private var all = RateMeter()
    /// The number of bytes that all rows received, without the bytes of earlier runs.
    private var received: Int64 = 0
    /// The number of bytes that are still missing, without the rows whose total is unknown.
    private var missing: Int64 = 0
    /// The number of active rows whose total is unknown.
    private var unknown = 0

    /// The number of rows that were added.
    public private(set) var count = 0
    /// The number of rows that have ended.
    public private(set) var endedCount = 0
    /// The number of rows that have failed.
    public private(set) var failedCount = 0

    /// Creates an empty board.
    public init() {}

    /// A Boolean value that indicates whether no row is in progress.
    public var isIdle: Bool { begun.isEmpty }

    /// The number of rows that have not begun.
    var waitingCount: Int { entries.count - begun.count }

    /// The number of bytes that all rows received, without the bytes of earlier runs.
    var receivedBytes: Int64 { received }

    /// Adds a row, and returns the ID with which you can change the row.
    public mutating func add(_ row: ProgressRow, at now: OperationInstant) -> Int {
        lastID += 1
        count += 1
        // The new row counts as waiting. The following change sets the other values.
        entries[lastID] = Entry(row: ProgressRow(row.name))
        unknown += 1
        change(lastID, at: now) { $0 = row }
        return lastID
    }

    /// Changes a row, unless the row has ended.
    public mutating func change(_ id: Int, at now: OperationInstant, _ body: (inout ProgressRow) -> Void) {
        guard var entry = entries[id] else { return }
        let old = entry.row
        body(&entry.row)
        let row = entry.row
        // The sum of announced sizes may overflow. The sum wraps around, and is correct again when those rows have
        // ended.
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

    /// Adds a message to print once.
    public mutating func say(_ text: String, _ role: DisplayLine.Role = .plain) {
        notes.append(.text(text, role))
    }

    /// Removes and returns the messages to print.
    mutating func takeNotes() -> [Note] {
        defer { notes = [] }
        return notes
    }

    /// Returns the first rows that are in progress, up to a limit.
    func active(_ limit: Int, at now: OperationInstant) -> [Active] {
        begun.prefix(max(limit, 0)).compactMap { entries[$0] }
            .map { Active(row: $0.row, rate: $0.meter.rate(at: now)) }
    }

    /// The number of rows that are in progress.
    var activeCount: Int { begun.count }

    /// Returns the total number of bytes per second of all rows.
    func rate(at now: OperationInstant) -> Double? { all.rate(at: now) }

    /// Returns the time until all rows end, or nil if the time cannot be estimated.
    func timeLeft(at now: OperationInstant) -> Duration? {
        guard unknown == 0 else { return nil }
        return Self.timeLeft(missing, rate(at: now))
    }

    /// Returns the time in which the missing bytes arrive at the given rate, or nil if the rate is too low or unknown.
    static func timeLeft(_ missing: Int64, _ rate: Double?) -> Duration? {
        guard let rate, rate > 0 else { return nil }
        let seconds = Double(missing) / rate
        return seconds < 1e9 ? .seconds(max(seconds, 0)) : nil
    }

    private static func missing(_ row: ProgressRow) -> Int64 { row.unit == .bytes ? row.missing : 0 }
}
