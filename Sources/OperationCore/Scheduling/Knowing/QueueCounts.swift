// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How many entries of a queue stand where, and how many ended how.
public struct QueueCounts: Sendable, Hashable, CustomStringConvertible {
    /// Those that wait for dependencies.
    public internal(set) var waiting = 0
    /// Those whose delay is not over, or that were not admitted yet.
    public internal(set) var held = 0
    /// Those that could begin if there were a place.
    public internal(set) var ready = 0
    /// Those that began and have not ended.
    public internal(set) var running = 0
    /// Those of `running` that wait for something, such as a network, and take no place.
    public internal(set) var resting = 0
    /// Those that were cancelled before they began, and are about to end.
    public internal(set) var ending = 0
    /// Those that ended with a result, since the queue was made.
    public internal(set) var finished = 0
    /// Those that ended with an error.
    public internal(set) var failed = 0
    /// Those that were cancelled.
    public internal(set) var cancelled = 0

    /// Those that have not ended.
    public var unended: Int { waiting + held + ready + running + ending }
    /// Those that ended.
    public var ended: Int { finished + failed + cancelled }
    /// All that were ever added.
    public var added: Int { unended + ended }

    /// The numbers in one line.
    public var description: String {
        "\(waiting) waiting, \(held) held, \(ready) ready, \(running) running, \(ending) ending; "
            + "\(finished) finished, \(failed) failed, \(cancelled) cancelled"
    }
}

extension QueueCounts {
    init(_ state: QueueEngine.State) {
        let counts = state.machine.counts
        waiting = counts.entering + counts.waiting
        held = counts.held
        ready = counts.ready
        running = counts.running
        resting = state.machine.restReasons.count
        ending = counts.ending
        finished = state.totals.finished
        failed = state.totals.failed
        cancelled = state.totals.cancelled
    }

    subscript(state: QueueEntry.State) -> Int {
        get {
            switch state {
            case .waiting: waiting
            case .held: held
            case .ready: ready
            case .running: running
            case .ending: ending
            }
        }
        set {
            switch state {
            case .waiting: waiting = newValue
            case .held: held = newValue
            case .ready: ready = newValue
            case .running: running = newValue
            case .ending: ending = newValue
            }
        }
    }

    mutating func count(_ ending: QueueEntry.Ending) {
        switch ending {
        case .success: finished += 1
        case .failure: failed += 1
        case .cancelled: cancelled += 1
        }
    }
}
