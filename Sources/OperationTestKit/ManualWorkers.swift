// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Threads of queues, played by a test: nothing runs until the test lets one of them take a step.
///
/// ```swift
/// let workers = ManualWorkers()
/// let queue = workers.makeQueue(width: 2)
/// let sum = ClosureOperation { 1 + 1 }
/// try queue.add(sum)
/// assert(sum.state == .notStarted)
/// workers.runAll()
/// assert(sum.outcome?.result == 2)
/// ```
///
/// All steps run on the thread of the test, so a body must not wait for another.
public final class ManualWorkers: Sendable {
    private let crew: Crew

    /// Makes a set of workers that nobody has asked for anything yet.
    public init() {
        crew = Crew(areBodiesShort: false)
    }

    /// Bodies that are short let a thread take several operations at once.
    package init(areBodiesShort: Bool) {
        crew = Crew(areBodiesShort: areBodiesShort)
    }

    /// Makes a queue whose threads are these.
    public func makeQueue(_ name: String = "manual", width: Int? = nil) -> QueueManager {
        // Slots are given back early, so that tests meet what follows from it.
        QueueManager(engine: QueueEngine(name: name, width: width, source: crew, leastSlots: 2))
    }

    /// How many threads work for the queues now.
    public var count: Int { crew.seats.withLock { $0.count } }

    /// Lets one of the threads do one thing; returns false if there is no such thread.
    ///
    /// A thread that finds nothing to do leaves, which is a step, too.
    @discardableResult
    public func step(_ index: Int = 0) -> Bool {
        let seat = crew.seats.withLock { $0.indices.contains(index) ? $0[index] : nil }
        guard let seat else { return false }
        if !seat.step() { crew.seats.withLock { $0.removeAll { $0 === seat } } }
        return true
    }

    /// Whether the thread has taken something that it runs with its next step: as if that took long.
    package func isBusy(_ index: Int) -> Bool {
        crew.seats.withLock { $0.indices.contains(index) && $0[index].isBusy }
    }

    /// Which thread stands at that place: places move up where one leaves.
    package func identity(_ index: Int) -> ObjectIdentifier? {
        crew.seats.withLock { $0.indices.contains(index) ? ObjectIdentifier($0[index]) : nil }
    }

    /// Lets the threads work until none has anything to do.
    public func runAll() {
        while step() {}
    }

    private final class Crew: WorkerSource {
        let seats = Locked<[ManualSeat]>([])
        private let time = Locked<UInt64>(0)
        private let areBodiesShort: Bool

        init(areBodiesShort: Bool) { self.areBodiesShort = areBodiesShort }

        func provide(for engine: QueueEngine) -> Bool {
            seats.withLock { $0.append(ManualSeat(engine)) }
            return true
        }

        func remember(_ engine: QueueEngine) -> Bool { false }
        func beginRest() -> Bool { true }
        func endRest() {}
        var watchesForStalls: Bool { false }

        var now: UInt64 {
            time.withLock { time in
                time += areBodiesShort ? 1 : 1 << 40
                return time
            }
        }
    }
}
