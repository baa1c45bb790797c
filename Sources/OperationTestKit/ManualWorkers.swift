// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A set of simulated worker threads that a test runs step by step.
///
/// The threads run the operations in the queues that ``makeQueue(_:width:)`` creates:
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
/// All steps run on the thread that calls ``step(_:)`` or ``runAll()``. The body of an operation must not block until
/// another operation ends, because the wait would never end.
public final class ManualWorkers: Sendable {
    private let source: Source

    /// Creates a set of simulated threads that no queue uses yet.
    public init() {
        source = Source(areBodiesShort: false)
    }

    /// Creates workers whose threads each take several short bodies at a time.
    package init(areBodiesShort: Bool) {
        source = Source(areBodiesShort: areBodiesShort)
    }

    /// Creates a queue whose operations run only when a test calls ``step(_:)`` or ``runAll()``.
    ///
    /// - Parameters:
    ///   - name: The name of the queue. The default is `manual`.
    ///   - width: The maximum number of operations that run at the same time. The default is `nil`, which sets no
    ///     limit.
    public func makeQueue(_ name: String = "manual", width: Int? = nil) -> QueueManager {
        // Slots are released early, so that tests cover the consequences.
        QueueManager(engine: QueueEngine(name: name, width: width.map { max($0, 1) }, source: source, leastSlots: 2))
    }

    /// The number of simulated threads that currently exist.
    public var count: Int { source.workers.withLock { $0.count } }

    /// Runs one step of a simulated thread.
    ///
    /// In a step, the thread takes an operation from the queue, or runs the operation that it took in its last step. A
    /// thread that finds no work ends, which also counts as a step.
    ///
    /// - Parameter index: The index of the thread. The default is 0.
    /// - Returns: A Boolean value that indicates whether a thread with this index performed a step.
    @discardableResult
    public func step(_ index: Int = 0) -> Bool {
        let worker = source.workers.withLock { $0.indices.contains(index) ? $0[index] : nil }
        guard let worker else { return false }
        if !worker.step() { source.workers.withLock { $0.removeAll { $0 === worker } } }
        return true
    }

    /// Returns whether a thread has taken an operation that it runs in its next step.
    package func isBusy(_ index: Int) -> Bool {
        source.workers.withLock { $0.indices.contains(index) && $0[index].isBusy }
    }

    /// Returns the identity of the thread at an index, which changes when a thread before it ends.
    package func identity(_ index: Int) -> ObjectIdentifier? {
        source.workers.withLock { $0.indices.contains(index) ? ObjectIdentifier($0[index]) : nil }
    }

    /// Runs steps of the simulated threads until all threads have ended.
    public func runAll() {
        while step() {}
    }

    private final class Source: WorkerSource {
        let workers = Locked<[ManualWorker]>([])
        private let time = Locked<UInt64>(0)
        private let areBodiesShort: Bool

        init(areBodiesShort: Bool) { self.areBodiesShort = areBodiesShort }

        func provide(for engine: QueueEngine) -> Bool {
            workers.withLock { $0.append(ManualWorker(engine)) }
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
