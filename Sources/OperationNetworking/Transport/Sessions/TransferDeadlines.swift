// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which time limit of a transfer expires when, in nanoseconds of the system's monotonic clock.
package struct TransferDeadlines: Sendable {
    /// The limit that was exceeded.
    package enum Limit: Sendable {
        case connect
        case firstByte
        case idle
        case total

        /// What happened, and what to do about it.
        var message: String {
            let text =
                switch self {
                case .connect: "No connection was ready within the time limit (timeouts.connect)."
                case .firstByte: "The server did not begin to answer within the time limit (timeouts.firstByte)."
                case .idle: "Nothing moved for longer than the time limit (timeouts.idle)."
                case .total: "The transfer was not complete within the time limit (timeouts.total)."
                }
            return "\(text) Raise it in the request's options, or see what keeps the server."
        }

        /// The same of a connection for which the name of the server, or of its proxy, was not known yet.
        static let lookupMessage =
            "The name of the server (or its proxy) was not looked up within the time limit (timeouts.connect). "
            + "Raise it in the request's options, or see whether the system's name server answers."
    }

    private enum Stage {
        /// Nothing is done for a connection yet: others may be served, and it waits for its turn.
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
    /// When something moved last.
    private var moved: Int64
    private var pausedSince: Int64?
    /// How much of the time for which the task was held back is behind its limits, or was over before they began.
    private var counted: Int64
    /// How long it was paused in all.
    package private(set) var paused: Int64 = 0

    /// - Parameter pauses: How long the task was held back before.
    package init(_ timeouts: TransferTimeouts, pauses: PauseClock = PauseClock(), now: Int64) {
        func nanoseconds(_ duration: Duration?) -> Int64 { duration?.saturatedNanoseconds ?? .max }
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

    /// The request is to be sent anew over another connection: only the limit of the whole goes on, and the one for a
    /// connection where there was none yet.
    package mutating func restart(at now: Int64) {
        if let since = pausedSince, since < now {
            move(by: now - since)
            pausedSince = now
        }
        if case .connecting = stage { return }
        stage = Self.seeking(since: now, now, connect)
        moved = now
    }

    /// Whether nothing is done for a connection yet.
    package var isSeeking: Bool {
        if case .seeking = stage { true } else { false }
    }

    /// Whether no limit runs.
    package var isPaused: Bool { pausedSince != nil }

    /// Whether a connection is there.
    package var isConnected: Bool {
        switch stage {
        case .seeking, .connecting: false
        case .uploading, .awaiting, .receiving: true
        }
    }

    /// One that is seeking is looked at.
    ///
    /// What it waited so far does not count if others were served meanwhile. Else the server may not be there for anybody, and
    /// the limit for the connection holds.
    package mutating func look(at now: Int64, othersAreServed: Bool) {
        guard case .seeking(let start, _) = stage else { return }
        if othersAreServed { began += now - start }
        stage = Self.seeking(since: othersAreServed ? now : start, now, connect)
    }

    /// A connection is begun: its name is looked up, or a socket opened.
    ///
    /// What it waited before that does not count.
    package mutating func connecting(at now: Int64) {
        guard case .seeking(let start, _) = stage else { return }
        // The pause itself is added when it is over.
        let now = pausedSince ?? now
        began += now - start
        stage = .connecting(since: now)
    }

    /// The connection is ready.
    package mutating func connected(at now: Int64) {
        connecting(at: now)
        guard case .connecting = stage else { return }
        stage = .awaiting
        moved = now
    }

    /// How long libcurl may take for a connection from now on, so that it does not give up before we do; nil is for ever.
    ///
    /// It shares this time among the addresses of a host.
    package func connectAllowance(at now: Int64) -> Int64? {
        guard pausedSince == nil, connect < .max else { return nil }
        return switch stage {
        // Enough for a connection that is begun just before the next look.
        case .seeking: connect.addingSaturated(connect / 4 + 1)
        case .connecting(let start): max(start.addingSaturated(connect) - now, 0)
        case .uploading, .awaiting, .receiving: nil
        }
    }

    /// Whether it goes on to seek a connection although libcurl gave up: its watch does not stop in a pause, and does not know
    /// of a wait for a turn.
    package func outlastsLibcurl(at now: Int64) -> Bool {
        isSeeking || !isConnected && exceeded(at: now) == nil
    }

    /// Bytes of the request's body went out; `isLast` if those were all.
    package mutating func sent(at now: Int64, isLast: Bool) {
        moved = now
        if case .receiving = stage { return }
        stage = isLast ? .awaiting : .uploading
    }

    /// Bytes of the response came in; true if they were the first, and another limit holds now.
    package mutating func received(at now: Int64) -> Bool {
        moved = now
        if case .receiving = stage { return false }
        stage = .receiving
        return true
    }

    /// Leaves out for how long the task was held back, and stops where it is held back now.
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
        case .uploading, .awaiting, .receiving: break
        }
    }

    /// The first moment at which a limit may be exceeded if nothing moves until then; nil if there is none.
    package var next: Int64? {
        guard pausedSince == nil else { return nil }
        var due = min(current.due, began.addingSaturated(total))
        if case .seeking(_, let look) = stage { due = min(due, look) }
        return due == .max ? nil : due
    }

    /// The limit that is exceeded now.
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
        case .uploading, .receiving: (moved.addingSaturated(idle), .idle)
        }
    }
}

/// When each of many transfers must be looked at again: a binary heap whose entries are small numbers.
///
/// Each number has one moment at most, which can be moved and taken back at O(log n), without hashing.
package struct DeadlineHeap: Sendable {
    private struct Entry {
        let due: Int64
        let number: Int
    }

    private var entries: [Entry] = []
    /// Where each number stands in `entries`; -1 if it does not.
    private var positions: [Int] = []

    package init() {}

    package var count: Int { entries.count }
    package var nextDue: Int64? { entries.first?.due }

    /// The moment of a number.
    package func due(_ number: Int) -> Int64? {
        number < positions.count && positions[number] >= 0 ? entries[positions[number]].due : nil
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

    /// Takes out a number that is due.
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

/// When a session has had nothing to do for so long that it closes what it kept for the next request.
///
/// Moments are nanoseconds of the system's monotonic clock.
package struct IdleWatch: Sendable {
    private enum State {
        /// There is something to do, or nothing is kept.
        case off
        case idle(since: Int64)
    }

    private let lifetime: Int64
    private var state = State.off

    package init(lifetime: Duration) {
        // Not so long that it could not be added to a moment.
        self.lifetime = min(max(lifetime.saturatedNanoseconds, 0), 1 << 60)
    }

    /// The moment at which `look` must be called again; nil if there is none.
    package var due: Int64? {
        if case .idle(let since) = state { since + lifetime } else { nil }
    }

    /// There is something to do.
    package mutating func wake() { state = .off }

    /// There is nothing to do; true if that has been so for long enough, and then it begins anew.
    package mutating func look(at now: Int64) -> Bool {
        guard case .idle(let since) = state else {
            state = .idle(since: now)
            return false
        }
        guard now - since >= lifetime else { return false }
        state = .off
        return true
    }
}

/// For how long a task was held back, by the moments at which that was said and not by those at which its session came by.
///
/// Moments are nanoseconds of the session's clock.
package struct PauseClock: Sendable {
    /// When the present pause began; nil if there is none.
    package private(set) var since: Int64?
    /// How long those were that are over.
    package private(set) var past: Int64 = 0

    package init() {}

    /// It is held back from now on, or no longer.
    package mutating func set(_ isPaused: Bool, at now: Int64) {
        guard isPaused != (since != nil) else { return }
        if let since { past += max(now - since, 0) }
        since = isPaused ? now : nil
    }

    /// How long it was held back until now.
    package func sum(at now: Int64) -> Int64 {
        past + (since.map { max(now - $0, 0) } ?? 0)
    }
}
