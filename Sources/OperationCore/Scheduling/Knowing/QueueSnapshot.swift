// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
