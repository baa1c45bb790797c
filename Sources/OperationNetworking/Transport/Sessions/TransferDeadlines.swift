// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The time limits of a transfer, in nanoseconds of the system's monotonic clock.
package struct TransferDeadlines: Sendable {
    /// A time limit.
    package enum Limit: Sendable {
        case connect
        case firstByte
        case idle
        case body
        case total

        /// The error message, which describes the problem and suggests a solution.
        var message: String {
            let text =
                switch self {
                case .connect: "No connection was ready within the time limit (timeouts.connect)."
                case .firstByte: "The response did not begin within the time limit (timeouts.firstByte)."
                case .idle: "No data was sent or received within the time limit (timeouts.idle)."
                case .body: "The body of the request provided no bytes within the time limit (timeouts.idle)."
                case .total: "The transfer was not complete within the time limit (timeouts.total)."
                }
            let slow = self == .body ? "body" : "server"
            return "\(text) Raise the limit in the request's options, or check why the \(slow) is slow."
        }

        /// The error message for a connection whose host name, or that of its proxy, was not resolved in time.
        static let lookupMessage =
            "The name of the server or its proxy was not resolved within the time limit (timeouts.connect). "
            + "Raise the limit in the request's options, or check whether the system's name server responds."
    }

    private enum Stage {
        /// The body of the request is being written to a file, so that the transfer needs no connection yet.
        case writingBody
        /// No connection has begun, and the transfer may be waiting for its turn.
        case seeking(since: Int64, look: Int64)
        case connecting(since: Int64)
        case uploading
        case awaiting
        case receiving
    }

    private let connect: Int64
    private let firstByte: Int64
    private let idle: Int64
    private let total: Int64
    private var stage: Stage
    private var began: Int64
    /// The time of the last progress.
    private var moved: Int64
    private var pausedSince: Int64?
    /// The part of the task's pauses that the limits already exclude.
    private var counted: Int64
    /// The total duration of the transfer's pauses.
    package private(set) var paused: Int64 = 0

    /// Creates the limits of a transfer that begins now.
    ///
    /// - Parameter pauses: The pauses of the task so far.
    package init(_ timeouts: TransferTimeouts, pauses: PauseClock = PauseClock(), now: Int64) {
        func nanoseconds(_ limit: Duration?) -> Int64 { if let limit { limit.saturatedNanoseconds } else { .max } }
        connect = nanoseconds(timeouts.connect)
        firstByte = nanoseconds(timeouts.firstByte)
        idle = nanoseconds(timeouts.idle)
        total = nanoseconds(timeouts.total)
        began = now
        moved = now
        counted = pauses.sum(at: now)
        pausedSince = pauses.since.map { max($0, now) }
        stage = Self.seeking(since: now, now, connect)
    }

    private static func seeking(since start: Int64, _ now: Int64, _ connect: Int64) -> Stage {
        .seeking(since: start, look: now.addingSaturated(max(connect / 4, 1)))
    }

    /// Starts again over another connection.
    ///
    /// The total limit continues, and so does the limit for a connection that has begun but is not ready.
    package mutating func restart(at now: Int64) {
        if let since = pausedSince, since < now {
            move(by: now - since)
            pausedSince = now
        }
        if case .connecting = stage { return }
        stage = Self.seeking(since: now, now, connect)
        moved = now
    }

    /// Whether no connection has begun.
    package var isSeeking: Bool {
        if case .seeking = stage { true } else { false }
    }

    /// Whether no limit runs.
    package var isPaused: Bool { pausedSince != nil }

    /// Whether the connection is ready.
    package var isConnected: Bool {
        switch stage {
        case .writingBody, .seeking, .connecting: false
        case .uploading, .awaiting, .receiving: true
        }
    }

    /// Checks a transfer for which no connection has begun.
    ///
    /// If other transfers are served in the meantime, its wait does not count. Otherwise, the server may be
    /// unavailable, so the limit for the connection applies.
    package mutating func look(at now: Int64, othersAreServed: Bool) {
        guard case .seeking(let start, _) = stage else { return }
        if othersAreServed { began += now - start }
        stage = Self.seeking(since: othersAreServed ? now : start, now, connect)
    }

    /// Records that a connection has begun with a name lookup or a socket.
    ///
    /// The wait before it does not count.
    package mutating func connecting(at now: Int64) {
        guard case .seeking(let start, _) = stage else { return }
        // The pause is added when it ends.
        let now = pausedSince ?? now
        began += now - start
        stage = .connecting(since: now)
    }

    /// Records that the body must be written to a file first, or that a part of it was written.
    package mutating func writesBody(at now: Int64) { (stage, moved) = (.writingBody, pausedSince ?? now) }

    /// Records that the connection is ready.
    package mutating func connected(at now: Int64) {
        if case .writingBody = stage { stage = .connecting(since: now) }
        connecting(at: now)
        guard case .connecting = stage else { return }
        (stage, moved) = (.awaiting, pausedSince ?? now)
    }

    /// Returns the time that libcurl may take for a connection without giving up too early, or `.max` for no limit.
    ///
    /// libcurl divides this time among the addresses of a host.
    package func connectAllowance(at now: Int64) -> Int64 {
        guard pausedSince == nil, connect < .max else { return .max }
        return switch stage {
        // The allowance is enough for a connection that begins just before the next check.
        case .seeking: connect.addingSaturated(connect / 4 + 1)
        case .connecting(let start): max(start.addingSaturated(connect) - now, 0)
        case .writingBody, .uploading, .awaiting, .receiving: .max
        }
    }

    /// Returns whether the transfer continues to seek a connection although libcurl gave up.
    ///
    /// The timer of libcurl also runs during a pause and during a wait for a turn.
    package func outlastsLibcurl(at now: Int64) -> Bool {
        isSeeking || !isConnected && exceeded(at: now) == nil
    }

    /// Records that bytes of the request's body were sent, and whether they were the last ones.
    package mutating func sent(at now: Int64, isLast: Bool) {
        moved = now
        if case .receiving = stage { return }
        stage = isLast ? .awaiting : .uploading
    }

    /// Records that bytes of the response arrived, and returns whether they were the first, so that another limit
    /// applies.
    package mutating func received(at now: Int64) -> Bool {
        moved = now
        if case .receiving = stage { return false }
        stage = .receiving
        return true
    }

    /// Records that the received bytes were an informational response, after which the response is still to come.
    ///
    /// - Parameter isSending: Whether only a part of the request's body was sent.
    package mutating func receivedInformational(isSending: Bool) { stage = isSending ? .uploading : .awaiting }

    /// Excludes the pauses of the task from the limits, and stops the limits during a present pause.
    package mutating func follow(_ pauses: PauseClock) {
        if pauses.past > counted { move(by: pauses.past - counted) }
        // A part of the present pause may have been counted already.
        pausedSince = pauses.since.map { $0 + (counted - pauses.past) }
    }

    private mutating func move(by pause: Int64) {
        counted += pause
        paused += pause
        began += pause
        moved += pause
        switch stage {
        case .seeking(let start, let look):
            stage = .seeking(since: start + pause, look: look.addingSaturated(pause))
        case .connecting(let start): stage = .connecting(since: start + pause)
        case .writingBody, .uploading, .awaiting, .receiving: break
        }
    }

    /// The first time at which a limit may be exceeded without progress, or `nil` if there is none.
    package var next: Int64? {
        guard pausedSince == nil else { return nil }
        var due = min(current.due, began.addingSaturated(total))
        if case .seeking(_, let look) = stage { due = min(due, look) }
        return due == .max ? nil : due
    }

    /// Returns the limit that is exceeded now, or `nil` if there is none.
    package func exceeded(at now: Int64) -> Limit? {
        guard pausedSince == nil else { return nil }
        let (due, limit) = current
        if began.addingSaturated(total) <= now { return .total }
        return due <= now ? limit : nil
    }

    private var current: (due: Int64, limit: Limit) {
        switch stage {
        case .seeking(let start, _), .connecting(let start): (start.addingSaturated(connect), .connect)
        case .awaiting: (moved.addingSaturated(firstByte), .firstByte)
        case .writingBody: (moved.addingSaturated(idle), .body)
        case .uploading, .receiving: (moved.addingSaturated(idle), .idle)
        }
    }
}

/// A binary heap of the times at which transfers must be checked, with a small number for each transfer.
///
/// Each number has at most one time, which can be changed and removed in O(log n) without hashing.
package struct DeadlineHeap: Sendable {
    private struct Entry {
        let due: Int64
        let number: Int
    }

    private var entries: [Entry] = []
    /// The position of each number in `entries`, or -1 if it has none.
    private var positions: [Int] = []

    package init() {}

    package var count: Int { entries.count }
    /// The earliest time, or `.max` if there is none.
    package var nextDue: Int64 { entries.isEmpty ? .max : entries[0].due }

    /// Returns the time of a number, or `.max` if it has none.
    package func due(_ number: Int) -> Int64 {
        guard number < positions.count, positions[number] >= 0 else { return .max }
        return entries[positions[number]].due
    }

    package mutating func set(_ number: Int, due: Int64) {
        while positions.count <= number { positions.append(-1) }
        if positions[number] < 0 {
            positions[number] = entries.count
            entries.append(Entry(due: due, number: number))
        } else {
            entries[positions[number]] = Entry(due: due, number: number)
        }
        siftDown(siftUp(positions[number]))
    }

    package mutating func remove(_ number: Int) {
        guard number < positions.count, positions[number] >= 0 else { return }
        let position = positions[number]
        positions[number] = -1
        let last = entries.removeLast()
        guard position < entries.count else { return }
        place(last, position)
        siftDown(siftUp(position))
    }

    /// Removes and returns a number that is due, or returns `nil` if there is none.
    package mutating func popDue(at now: Int64) -> Int? {
        guard let first = entries.first, first.due <= now else { return nil }
        remove(first.number)
        return first.number
    }

    private mutating func place(_ entry: Entry, _ position: Int) {
        entries[position] = entry
        positions[entry.number] = position
    }

    private mutating func siftUp(_ start: Int) -> Int {
        var position = start
        let entry = entries[position]
        while position > 0, entry.due < entries[(position - 1) / 2].due {
            place(entries[(position - 1) / 2], position)
            position = (position - 1) / 2
        }
        place(entry, position)
        return position
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        let entry = entries[position]
        while true {
            var child = 2 * position + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].due < entries[child].due { child += 1 }
            guard entries[child].due < entry.due else { break }
            place(entries[child], position)
            position = child
        }
        place(entry, position)
    }
}

/// A watch that reports when a session has been idle for so long that it should close its connections.
///
/// Times are nanoseconds of the system's monotonic clock.
package struct IdleWatch: Sendable {
    private let lifetime: Int64
    /// The start of the idle time, or `nil` while there is work or there are no connections to close.
    private var start: Int64?

    package init(lifetime: Duration) {
        // A longer lifetime could overflow when it is added to a time.
        self.lifetime = min(max(lifetime.saturatedNanoseconds, 0), 1 << 60)
    }

    /// The time at which `look` must be called again, or `.max` if there is none.
    package var due: Int64 { if let start { start + lifetime } else { .max } }

    /// Records that there is work.
    package mutating func wake() { start = nil }

    /// Records that there is no work, and returns `true` if that has been so for the lifetime, which then starts again.
    package mutating func look(at now: Int64) -> Bool {
        guard let start else {
            start = now
            return false
        }
        guard now - start >= lifetime else { return false }
        self.start = nil
        return true
    }
}

/// The time for which a task was paused, measured at the calls and not when its session applied them.
///
/// Times are nanoseconds of the session's clock.
package struct PauseClock: Sendable {
    /// The time at which the present pause began, or `nil` if there is none.
    package private(set) var since: Int64?
    /// The total duration of the pauses that ended.
    package private(set) var past: Int64 = 0

    package init() {}

    /// Begins or ends a pause.
    package mutating func set(_ isPaused: Bool, at now: Int64) {
        guard isPaused != (since != nil) else { return }
        if let since { past += max(now - since, 0) }
        since = isPaused ? now : nil
    }

    /// Returns the total duration of all pauses until now.
    package func sum(at now: Int64) -> Int64 {
        if let since { past + max(now - since, 0) } else { past }
    }
}
