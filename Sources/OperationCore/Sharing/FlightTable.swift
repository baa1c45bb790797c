// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Who shares which run, as a value: at most one run for each key, and the askers that wait for it.
///
/// ```text
///         join                 didMake                 runEnded
/// (none) ──────▶ making ───────────────▶ running ─────────────────▶ kept ──▶ (none)
///                   │ last leave            │ last leave, or not to be kept    expired, forgotten
///                   ▼                       ▼
///                 (none)                  (none), and the next run waits for the end of a cancelled one
/// ```
///
/// It knows nothing of locks or threads. What falls out of it goes to the trash, to be let go of outside the lock.
package struct FlightTable<Key: Hashable, Asker: AnyObject, Run: AnyObject> {
    private enum Phase {
        /// An asker makes the run, outside the lock.
        case making
        case running(Run)
        /// It succeeded, and its result is for those who come before that moment.
        case kept(Run, until: OperationInstant, (any OperationTimer)?)
    }

    private struct Flight {
        let number: UInt64
        var phase = Phase.making
        /// The highest priority of those who came.
        var urgency: Int
        var askers: [ObjectIdentifier: (order: Int, asker: Asker)] = [:]
        var lastOrder = 0

        mutating func add(_ asker: Asker) {
            lastOrder += 1
            askers[ObjectIdentifier(asker)] = (lastOrder, asker)
        }
    }

    private struct Line {
        var flight: Flight?
        /// Runs that were cancelled and have not ended: the next one comes after them.
        var predecessors: [Run] = []
    }

    private var lines: [Key: Line] = [:]
    private var lastNumber: UInt64 = 0
    private var trash: [Any] = []

    package init() {}

    /// How many keys something is known of.
    package var count: Int { lines.count }

    /// What fell out since this was asked last.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }
}

// Askers.
extension FlightTable {
    package enum JoinAction {
        /// Make the run and say so with `didMake`.
        case make(UInt64)
        /// There is a run: its end will be told.
        case wait
        /// As `wait`, but the run is more urgent now.
        case raise(Run, UInt64)
        /// The run ended before: its result is this one's.
        case take(Run)
    }

    /// An asker was started.
    package mutating func join(_ asker: Asker, _ key: Key, urgency: Int, now: OperationInstant) -> JoinAction {
        switch lines[key]?.flight?.phase {
        case .kept(let run, let end, let timer):
            if now < end { return .take(run) }
            trash += [run, timer as Any]
            return begin(asker, key, urgency)
        case nil: return begin(asker, key, urgency)
        case .making: return wait(asker, key, urgency, for: nil)
        case .running(let run): return wait(asker, key, urgency, for: run)
        }
    }

    private mutating func begin(_ asker: Asker, _ key: Key, _ urgency: Int) -> JoinAction {
        lastNumber += 1
        var flight = Flight(number: lastNumber, urgency: urgency)
        flight.add(asker)
        lines[key, default: Line()].flight = flight
        return .make(lastNumber)
    }

    private mutating func wait(_ asker: Asker, _ key: Key, _ urgency: Int, for run: Run?) -> JoinAction {
        lines[key]?.flight?.add(asker)
        guard let number = lines[key]?.flight?.number, urgency > lines[key]?.flight?.urgency ?? .max else {
            return .wait
        }
        lines[key]?.flight?.urgency = urgency
        return run.map { .raise($0, number) } ?? .wait
    }

    package enum LeaveAction {
        /// The asker shares no run: it left before, or `runEnded` has returned it.
        case none
        /// The asker has left. There is no run to be canceled.
        case left
        /// The asker has left, and was the last one: cancel the run.
        case cancel(Run)
    }

    /// An asker was canceled.
    package mutating func leave(_ asker: Asker, _ key: Key) -> LeaveAction {
        guard let left = lines[key]?.flight?.askers.removeValue(forKey: ObjectIdentifier(asker)) else { return .none }
        trash.append(left.asker)
        guard let flight = lines[key]?.flight, flight.askers.isEmpty else { return .left }
        lines[key]?.flight = nil
        guard case .running(let run) = flight.phase else {
            removeIfEmpty(key)
            return .left
        }
        lines[key]?.predecessors.append(run)
        return .cancel(run)
    }
}

// The run.
extension FlightTable {
    /// The run was made: returns those it is to wait for, or nil if all askers left meanwhile.
    package mutating func didMake(_ run: Run, _ key: Key, _ number: UInt64) -> [Run]? {
        guard lines[key]?.flight?.number == number else { return nil }
        lines[key]?.flight?.phase = .running(run)
        return lines[key]?.predecessors
    }

    /// The highest priority of those who asked for this run; nil if it is over.
    package func urgency(_ key: Key, _ number: UInt64) -> Int? {
        guard let flight = lines[key]?.flight, flight.number == number else { return nil }
        return flight.urgency
    }

    /// The run has an outcome: returns the askers to be told, in the order in which they came.
    package mutating func runEnded(
        _ run: Run, _ key: Key, _ number: UInt64, isCancelled: Bool, keepUntil end: OperationInstant?
    ) -> [Asker] {
        guard lines[key]?.flight?.number == number, case .running = lines[key]?.flight?.phase else { return [] }
        let askers = exchange(&lines[key, default: Line()].flight, with: nil)?.askers.values ?? [:].values
        if isCancelled { lines[key]?.predecessors.append(run) }
        if let end {
            lines[key]?.flight = Flight(number: number, phase: .kept(run, until: end, nil), urgency: 0)
        }
        removeIfEmpty(key)
        return askers.sorted { $0.order < $1.order }.map(\.asker)
    }

    /// A run that was cancelled has ended.
    package mutating func runFinished(_ run: Run, _ key: Key) {
        lines[key]?.predecessors.removeAll { $0 === run }
        trash.append(run)
        removeIfEmpty(key)
    }
}

// What is kept.
extension FlightTable {
    /// Stores what will call `expire`; false if there is nothing to expire any more.
    package mutating func keep(_ timer: any OperationTimer, _ key: Key, _ number: UInt64) -> Bool {
        guard lines[key]?.flight?.number == number, case .kept(let run, let end, nil) = lines[key]?.flight?.phase else {
            return false
        }
        lines[key]?.flight?.phase = .kept(run, until: end, timer)
        return true
    }

    /// The time of a result is over.
    package mutating func expire(_ key: Key, _ number: UInt64) {
        guard lines[key]?.flight?.number == number, let timer = forget(key) else { return }
        trash.append(timer)
    }

    /// Lets go of a result; returns the timer to be cancelled.
    package mutating func forget(_ key: Key) -> (any OperationTimer)? {
        guard case .kept(let run, _, let timer) = lines[key]?.flight?.phase else { return nil }
        lines[key]?.flight = nil
        trash.append(run)
        removeIfEmpty(key)
        return timer
    }

    /// Lets go of all results; returns the timers to be cancelled.
    package mutating func forgetAll() -> [any OperationTimer] {
        lines.keys.compactMap { forget($0) }
    }

    private mutating func removeIfEmpty(_ key: Key) {
        guard let index = lines.index(forKey: key), lines[index].value.flight == nil,
            lines[index].value.predecessors.isEmpty
        else { return }
        // With the key, which may be an object, too.
        trash.append(lines.remove(at: index))
    }
}
