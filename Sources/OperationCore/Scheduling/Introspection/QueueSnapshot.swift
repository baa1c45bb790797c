// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The operations, closures, counts and settings of a queue at one moment.
///
/// A snapshot keeps its operations alive. If you apply all events between two snapshots to the first snapshot, the
/// first snapshot becomes equal to the second.
public struct QueueSnapshot: Sendable, Equatable, CustomStringConvertible {
    /// The name of the queue.
    public let queue: String
    /// The number of the last event before the snapshot was created.
    ///
    /// The queue numbers events only while code reads ``QueueManager/events``.
    public private(set) var number: UInt64
    /// The number of entries in each state and the number of ended entries for each outcome.
    public private(set) var counts: QueueCounts
    /// The maximum number of operations and closures that the queue runs at the same time, or `nil` for no maximum.
    public private(set) var width: Int?
    /// A Boolean value that indicates whether the queue is suspended.
    public private(set) var isSuspended: Bool
    /// A Boolean value that indicates whether the queue was shut down and accepts no more entries.
    public private(set) var isClosed: Bool
    private var states: [QueueEntry: QueueEntry.State]
    private var reasons: [QueueEntry: WaitReason]

    /// The entries that have not ended, in no particular order.
    public var entries: [QueueEntry] { Array(states.keys) }
    /// The running entries that have released their slots while they wait, in no particular order.
    public var resting: [QueueEntry] { Array(reasons.keys) }

    /// Returns the entries in a state, in no particular order.
    ///
    /// - Parameter state: The state of the entries to return.
    public func entries(_ state: QueueEntry.State) -> [QueueEntry] {
        states.compactMap { $0.value == state ? $0.key : nil }
    }

    /// Returns the state of an entry, or `nil` if the entry is not in the snapshot.
    package func state(of entry: QueueEntry) -> QueueEntry.State? { states[entry] }

    /// Returns the reason why a running entry waits without a slot, or `nil` if the entry does not wait.
    package func waitReason(of entry: QueueEntry) -> WaitReason? { reasons[entry] }

    /// A description with the name and the counts of the queue.
    public var description: String { "queue \(queue): \(counts)\(isSuspended ? "; suspended" : "")" }

    /// Applies the change of an event to the snapshot.
    ///
    /// If the event occurred before the snapshot was created, the method has no effect.
    ///
    /// - Parameter event: The event to apply.
    public mutating func apply(_ event: QueueEvent) {
        guard event.number > number else { return }
        number = event.number
        switch event.change {
        case .added(let entry, let state): setState(entry, state)
        case .moved(let entry, let state): setState(entry, state)
        case .started(let entry): setState(entry, .running)
        case .rested(let entry, let reason): rest(entry, reason)
        case .wentOn(let entry): rest(entry, nil)
        case .ended(let entry, let ending):
            setState(entry, nil)
            counts.count(ending)
        case .suspended: isSuspended = true
        case .resumed: isSuspended = false
        case .widthChanged(let width): self.width = width
        case .closed: isClosed = true
        }
    }

    private mutating func setState(_ entry: QueueEntry, _ state: QueueEntry.State?) {
        if let old = states[entry] { counts[old] -= 1 }
        states[entry] = state
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
        states = Dictionary(minimumCapacity: state.machine.live)
        for (index, entry) in state.machine.entries.enumerated() {
            guard let state = QueueEntry.State(entry.stage) else { continue }
            states[QueueEntry(QueueMachine.Slot(index), entry)] = state
        }
    }
}

/// An operation of any kind or a closure in a queue.
public struct QueueEntry: Sendable, Identifiable, Hashable, CustomStringConvertible {
    /// An identifier that distinguishes an entry from all other entries of the same queue.
    public struct ID: Sendable, Hashable {
        package let slot: Int32
        package let generation: UInt32
    }

    /// The state of an entry that has not ended.
    ///
    /// Future versions may add cases.
    public enum State: Sendable, Hashable, CaseIterable {
        /// The entry waits for dependencies that have not ended, or for its suspended group to resume.
        case waiting
        /// The entry waits because of a delay, a condition, a category or a throttle.
        case held
        /// The entry waits only for a slot, for earlier entries because of a barrier, or for the suspended queue to
        /// resume.
        case ready
        /// The entry has begun and has not ended.
        case running
        /// The entry was canceled before it began and is about to end.
        case ending
    }

    /// The way in which an entry ended.
    ///
    /// Only a major version may add cases.
    public enum Ending: Sendable, Hashable, CaseIterable {
        /// The entry ended with a result.
        ///
        /// A closure that ran always ends in this way, and so does a plain operation that was not canceled.
        case success
        /// The entry ended with an error.
        case failure
        /// The entry was canceled before it had a result or an error, or is a closure that the queue dropped.
        case cancelled
    }

    /// The identifier of the entry in its queue.
    public let id: ID
    /// The operation, or `nil` if the entry is a closure.
    public let operation: Operation?
    private let closureName: String?

    init(_ slot: QueueMachine.Slot, _ entry: QueueMachine.Entry) {
        id = ID(slot: slot, generation: entry.generation)
        operation = entry.work.operation
        closureName = entry.details?.name
    }

    /// The reason why the running operation waits, or `nil` if the operation does not wait.
    ///
    /// The value comes from the operation itself, which may have resumed since you received the entry.
    public var waitReason: WaitReason? { (operation as? ManagedOperation)?.waitReason }

    /// The name of the operation or closure.
    ///
    /// If an operation has no name, this property is the name of its type. If a closure has no name, this property is
    /// "closure".
    public var name: String { operation?.displayName ?? closureName ?? "closure" }

    /// The same text as ``name``.
    public var description: String { name }

    /// Returns a Boolean value that indicates whether two values identify the same entry.
    public static func == (left: QueueEntry, right: QueueEntry) -> Bool { left.id == right.id }

    /// Hashes the identifier of the entry.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension QueueEntry.State {
    /// Creates the state of a stage, or returns `nil` for a free slot.
    init?(_ stage: QueueMachine.Stage) {
        switch stage {
        case .free: return nil
        case .entering, .waiting: self = .waiting
        case .held: self = .held
        case .ready, .assigned: self = .ready
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
    /// The operation, or `nil` if the entry is a closure.
    var operation: Operation? {
        switch self {
        case .operation(let operation): operation
        case .plain(let entry): entry.operation
        case .closure, .none: nil
        }
    }
}

/// The number of a queue's entries in each state and the number of its ended entries for each outcome.
public struct QueueCounts: Sendable, Hashable, CustomStringConvertible {
    /// The number of entries that wait for dependencies or for their suspended groups to resume.
    public internal(set) var waiting = 0
    /// The number of entries that wait because of a delay, a condition, a category or a throttle.
    public internal(set) var held = 0
    /// The number of entries in the state ``QueueEntry/State/ready``.
    public internal(set) var ready = 0
    /// The number of entries that have begun and have not ended.
    public internal(set) var running = 0
    /// The number of running entries that have released their slots while they wait, for example for a network
    /// connection.
    public internal(set) var resting = 0
    /// The number of entries that were canceled before they began and are about to end.
    public internal(set) var ending = 0
    /// The number of entries that have ended with a result since the queue was created.
    public internal(set) var finished = 0
    /// The number of entries that have ended with an error since the queue was created.
    public internal(set) var failed = 0
    /// The number of entries that have ended with a cancellation since the queue was created.
    public internal(set) var cancelled = 0

    /// The number of entries that have not ended.
    public var unended: Int { waiting + held + ready + running + ending }
    /// The number of entries that have ended since the queue was created.
    public var ended: Int { finished + failed + cancelled }
    /// The number of entries that have been added to the queue since the queue was created.
    public var added: Int { unended + ended }

    /// A description that lists all counts.
    public var description: String {
        "\(waiting) waiting, \(held) held, \(ready) ready, \(running) running, \(ending) ending; \(finished) finished, "
            + "\(failed) failed, \(cancelled) canceled"
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
