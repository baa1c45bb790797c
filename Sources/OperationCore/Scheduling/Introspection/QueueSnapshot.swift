// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a queue holds at one moment: numbers, lists and settings that belong together.
///
/// It holds the operations in it. Events that come after it can be applied to it, and make of it what a later snapshot
/// would be.
public struct QueueSnapshot: Sendable, Equatable, CustomStringConvertible {
    /// The queue's name.
    public let queue: String
    /// The number of the last event that went before; it stands still while nobody reads the events.
    public private(set) var number: UInt64
    /// How many entries stand where.
    public private(set) var counts: QueueCounts
    /// How many may run at once; nil for any number.
    public private(set) var width: Int?
    /// Whether nothing begins.
    public private(set) var isSuspended: Bool
    /// Whether the queue was shut down.
    public private(set) var isClosed: Bool
    private var standings: [QueueEntry: QueueEntry.State]
    private var reasons: [QueueEntry: WaitReason]

    /// The entries that have not ended, in no order.
    public var entries: [QueueEntry] { Array(standings.keys) }

    /// Those that wait for dependencies, in no order.
    public var waiting: [QueueEntry] { entries(.waiting) }
    /// Those whose delay is not over, or that were not admitted yet, in no order.
    public var held: [QueueEntry] { entries(.held) }
    /// Those that could begin if there were a place, in no order.
    public var ready: [QueueEntry] { entries(.ready) }
    /// Those that began and have not ended, in no order.
    public var running: [QueueEntry] { entries(.running) }

    /// Those of `running` that wait for something and take no place, in no order.
    public var resting: [QueueEntry] { Array(reasons.keys) }

    /// The entries that stand there, in no order.
    public func entries(_ state: QueueEntry.State) -> [QueueEntry] {
        standings.compactMap { $0.value == state ? $0.key : nil }
    }

    /// Where an entry stands; nil if it is not in the queue.
    public func state(of entry: QueueEntry) -> QueueEntry.State? { standings[entry] }

    /// What an entry waits for that runs, and takes no place; nil if it does not.
    public func waitReason(of entry: QueueEntry) -> WaitReason? { reasons[entry] }

    /// The name and the numbers in one line.
    public var description: String { "queue \(queue): \(counts)\(isSuspended ? "; suspended" : "")" }

    /// Changes the snapshot as the event changed the queue; does nothing for an event that went before it.
    public mutating func apply(_ event: QueueEvent) {
        guard event.number > number else { return }
        number = event.number
        switch event.change {
        case .added(let entry, let state): stand(entry, state)
        case .moved(let entry, let state): stand(entry, state)
        case .started(let entry): stand(entry, .running)
        case .rested(let entry, let reason): rest(entry, reason)
        case .wentOn(let entry): rest(entry, nil)
        case .ended(let entry, let ending):
            stand(entry, nil)
            counts.count(ending)
        case .suspended: isSuspended = true
        case .resumed: isSuspended = false
        case .widthChanged(let width): self.width = width
        case .closed: isClosed = true
        }
    }

    private mutating func stand(_ entry: QueueEntry, _ state: QueueEntry.State?) {
        if let old = standings[entry] { counts[old] -= 1 }
        standings[entry] = state
        if let state { counts[state] += 1 }
        if state != .running { rest(entry, nil) }
    }

    private mutating func rest(_ entry: QueueEntry, _ reason: WaitReason?) {
        if reason == nil, reasons.isEmpty { return }
        reasons[entry] = reason
        counts.resting = reasons.count
    }
}

extension QueueSnapshot {
    init(_ queue: String, _ state: QueueEngine.State) {
        self.queue = queue
        number = state.hub?.number ?? 0
        counts = QueueCounts(state)
        width = state.machine.width == .max ? nil : state.machine.width
        isSuspended = state.machine.isSuspended
        isClosed = state.isClosed
        reasons = [:]
        for (slot, reason) in state.machine.restReasons {
            reasons[QueueEntry(slot, state.machine.entries[Int(slot)])] = reason
        }
        standings = Dictionary(minimumCapacity: state.machine.live)
        for (index, entry) in state.machine.entries.enumerated() {
            guard let state = QueueEntry.State(entry.stage) else { continue }
            standings[QueueEntry(QueueMachine.Slot(index), entry)] = state
        }
    }
}

/// What was added to a queue: an operation of any kind, or a closure.
public struct QueueEntry: Sendable, Identifiable, Hashable, CustomStringConvertible {
    /// Tells an entry from all others that its queue ever had.
    public struct ID: Sendable, Hashable {
        package let slot: Int32
        package let generation: UInt32
    }

    /// Where an entry stands that has not ended.
    ///
    /// More cases may be added.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// Dependencies of it have not ended.
        case waiting
        /// A delay that it asked for is not over, or it was not admitted yet.
        case held
        /// It may begin as soon as there is a place for it.
        case ready
        /// It began.
        case running
        /// It was cancelled before it began, and is about to end.
        case ending
    }

    /// How an entry ended.
    ///
    /// No case will be added.
    public enum Ending: String, Sendable, Hashable, CaseIterable {
        /// With a result. Closures, and operations of other kinds that were not cancelled, end like this.
        case success
        /// With an error.
        case failure
        /// It was cancelled.
        case cancelled
    }

    /// Tells it from all others.
    public let id: ID
    /// The operation; nil for a closure.
    public let operation: Operation?
    private let closureName: String?

    init(_ slot: QueueMachine.Slot, _ entry: QueueMachine.Entry) {
        id = ID(slot: slot, generation: entry.generation)
        operation = entry.work.operation
        closureName = entry.details?.name
    }

    /// What it waits for now in the middle of its work, without a place of the queue; nil while it does not.
    ///
    /// The operation is asked: it may have gone on since the entry was listed.
    public var waitReason: WaitReason? { (operation as? ManagedOperation)?.waitReason }

    /// The name of the operation, or else of its type; that of a closure, or else "closure".
    public var name: String { operation?.displayName ?? closureName ?? "closure" }

    /// The name.
    public var description: String { name }

    /// Whether it is the same entry.
    public static func == (left: QueueEntry, right: QueueEntry) -> Bool { left.id == right.id }

    /// Feeds the identity into the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension QueueEntry.State {
    /// Nil where nobody stands.
    init?(_ stage: QueueMachine.Stage) {
        switch stage {
        case .free: return nil
        case .entering, .waiting: self = .waiting
        case .held: self = .held
        case .ready, .dealt: self = .ready
        case .running: self = .running
        case .ending: self = .ending
        }
    }
}

extension QueueEntry.Ending {
    init(_ ending: LifecycleMachine.Ending) {
        switch ending {
        case .success: self = .success
        case .failure: self = .failure
        case .cancelled: self = .cancelled
        }
    }
}

extension QueueMachine.Work {
    /// The operation, unless it is a closure.
    var operation: Operation? {
        switch self {
        case .operation(let operation): operation
        case .foreign(let entry): entry.operation
        case .closure, .none: nil
        }
    }
}

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
