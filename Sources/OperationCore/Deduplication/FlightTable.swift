// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The runs of all keys and the operations that share them (the participants), as a value, with at most one run for
/// each key.
///
/// ```text
///         join                 didMake                 runEnded
/// (none) ──────▶ making ───────────────▶ running ─────────────────▶ kept ──▶ (none)
///                   │ last leave            │ last leave, or not to be kept    expired, forgotten
///                   ▼                       ▼
///                 (none)                  (none), and the next run waits for the end of a canceled one
/// ```
///
/// The table uses no locks or threads. Removed values go to the trash, and the caller releases them without holding the
/// lock.
package struct FlightTable<Key: Hashable, Participant: AnyObject, Run: AnyObject> {
    private enum Phase {
        /// A shared operation creates the run, without holding the lock.
        case making
        case running(Run)
        /// The run succeeded, and operations that start before this moment receive its result.
        case kept(Run, until: OperationInstant, (any OperationTimer)?)
    }

    private struct Flight {
        let number: UInt64
        var phase = Phase.making
        /// The highest priority of all operations that joined.
        var urgency: Int
        var participants: [ObjectIdentifier: (order: Int, participant: Participant)] = [:]
        var lastOrder = 0

        mutating func add(_ participant: Participant) {
            lastOrder += 1
            participants[ObjectIdentifier(participant)] = (lastOrder, participant)
        }
    }

    private struct Line {
        var flight: Flight?
        /// Canceled runs that have not ended, after which the next run begins.
        var predecessors: [Run] = []
    }

    private var lines: [Key: Line] = [:]
    private var lastNumber: UInt64 = 0
    private var trash: [Any] = []

    package init() {}

    /// The number of keys in the table.
    package var count: Int { lines.count }

    /// Removes the values from the trash and returns them.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }
}

// The operations that share a run, called participants.
extension FlightTable {
    package enum JoinAction {
        /// Make the run, and then call `didMake`.
        case make(UInt64)
        /// Wait for the end of the run, which will be reported.
        case wait
        /// Wait for the end of the run, and raise its priority.
        case raise(Run, UInt64)
        /// Take the result of the run, which has ended.
        case take(Run)
    }

    /// Adds a shared operation that was started.
    package mutating func join(_ participant: Participant, _ key: Key, urgency: Int, now: OperationInstant)
        -> JoinAction
    {
        switch lines[key]?.flight?.phase {
        case .kept(let run, let end, let timer):
            if now < end { return .take(run) }
            trash += [run, timer as Any]
            return begin(participant, key, urgency)
        case nil: return begin(participant, key, urgency)
        case .making: return wait(participant, key, urgency, for: nil)
        case .running(let run): return wait(participant, key, urgency, for: run)
        }
    }

    private mutating func begin(_ participant: Participant, _ key: Key, _ urgency: Int) -> JoinAction {
        lastNumber += 1
        var flight = Flight(number: lastNumber, urgency: urgency)
        flight.add(participant)
        lines[key, default: Line()].flight = flight
        return .make(lastNumber)
    }

    private mutating func wait(_ participant: Participant, _ key: Key, _ urgency: Int, for run: Run?) -> JoinAction {
        lines[key]?.flight?.add(participant)
        guard let number = lines[key]?.flight?.number, urgency > lines[key]?.flight?.urgency ?? .max else {
            return .wait
        }
        lines[key]?.flight?.urgency = urgency
        return run.map { .raise($0, number) } ?? .wait
    }

    /// Returns the run that an operation shares, or `nil` if it shares none or the run is being created.
    package func run(of participant: Participant, _ key: Key) -> Run? {
        guard let flight = lines[key]?.flight, flight.participants[ObjectIdentifier(participant)] != nil,
            case .running(let run) = flight.phase
        else { return nil }
        return run
    }

    /// Returns the operations that share this run, in no particular order.
    package func participants(_ key: Key, _ number: UInt64) -> [Participant] {
        guard let flight = lines[key]?.flight, flight.number == number else { return [] }
        return flight.participants.values.map(\.participant)
    }

    package enum LeaveAction {
        /// The operation shares no run, because it left before or `runEnded` has returned it.
        case none
        /// The operation has left, and there is no run to cancel.
        case left
        /// The operation was the last one that shared this run, so the caller must cancel the run.
        case cancel(Run)
    }

    /// Removes a shared operation that was canceled.
    package mutating func leave(_ participant: Participant, _ key: Key) -> LeaveAction {
        guard let left = lines[key]?.flight?.participants.removeValue(forKey: ObjectIdentifier(participant)) else {
            return .none
        }
        trash.append(left.participant)
        guard let flight = lines[key]?.flight, flight.participants.isEmpty else { return .left }
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
    /// Notes that the run was made, and returns the runs that must end before it begins.
    ///
    /// The result is `nil` if all operations left in the meantime.
    package mutating func didMake(_ run: Run, _ key: Key, _ number: UInt64) -> [Run]? {
        guard lines[key]?.flight?.number == number else { return nil }
        lines[key]?.flight?.phase = .running(run)
        return lines[key]?.predecessors
    }

    /// Returns the highest priority of the operations that share this run, or `nil` if the run is over.
    package func urgency(_ key: Key, _ number: UInt64) -> Int? {
        guard let flight = lines[key]?.flight, flight.number == number else { return nil }
        return flight.urgency
    }

    /// Notes that the run has an outcome, and returns the operations to notify, in the order in which they arrived.
    package mutating func runEnded(
        _ run: Run, _ key: Key, _ number: UInt64, isCancelled: Bool, keepUntil end: OperationInstant?
    ) -> [Participant] {
        guard lines[key]?.flight?.number == number, case .running = lines[key]?.flight?.phase else { return [] }
        let participants = exchange(&lines[key, default: Line()].flight, with: nil)?.participants.values ?? [:].values
        if isCancelled { lines[key]?.predecessors.append(run) }
        if let end {
            lines[key]?.flight = Flight(number: number, phase: .kept(run, until: end, nil), urgency: 0)
        }
        removeIfEmpty(key)
        return participants.sorted { $0.order < $1.order }.map(\.participant)
    }

    /// Removes a canceled run that has ended.
    package mutating func runFinished(_ run: Run, _ key: Key) {
        lines[key]?.predecessors.removeAll { $0 === run }
        trash.append(run)
        removeIfEmpty(key)
    }
}

// Kept results.
extension FlightTable {
    /// Stores the timer that will call `expire`, and returns whether there is still a result to expire.
    package mutating func keep(_ timer: any OperationTimer, _ key: Key, _ number: UInt64) -> Bool {
        guard lines[key]?.flight?.number == number, case .kept(let run, let end, nil) = lines[key]?.flight?.phase else {
            return false
        }
        lines[key]?.flight?.phase = .kept(run, until: end, timer)
        return true
    }

    /// Removes a result whose time is over.
    package mutating func expire(_ key: Key, _ number: UInt64) {
        guard lines[key]?.flight?.number == number, let timer = forget(key) else { return }
        trash.append(timer)
    }

    /// Removes a result, and returns the timer to cancel.
    package mutating func forget(_ key: Key) -> (any OperationTimer)? {
        guard case .kept(let run, _, let timer) = lines[key]?.flight?.phase else { return nil }
        lines[key]?.flight = nil
        trash.append(run)
        removeIfEmpty(key)
        return timer
    }

    /// Removes all results, and returns the timers to cancel.
    package mutating func forgetAll() -> [any OperationTimer] {
        lines.keys.compactMap { forget($0) }
    }

    private mutating func removeIfEmpty(_ key: Key) {
        guard let index = lines.index(forKey: key), lines[index].value.flight == nil,
            lines[index].value.predecessors.isEmpty
        else { return }
        // The trash takes the key, too, because it may be an object.
        trash.append(lines.remove(at: index))
    }
}
