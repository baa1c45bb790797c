// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A queue that runs operations: as many at once as you allow, the most urgent first, each when what it waits for ended.
///
/// ```swift
/// let queue = QueueManager("thumbnails", width: 4)
/// let load = ClosureOperation { 6 }, double = ClosureOperation { 7 }
/// try double.depend(on: load, otherwise: .cancel)
/// try queue.add([load, double])
/// await queue.drained()
/// ```
///
/// It does what `OperationQueue` does, at a cost for each operation that does not grow with their number, and knows at
/// each moment what waits, what runs, and what has failed. It runs any `Foundation.Operation`, those of this package the
/// fast way.
///
/// ### Threads
///
/// Bodies run on threads of the package: as many as there are cores, or as the queue is wide if that is less. An
/// asynchronous operation holds its place in the queue until it ends, but a thread only while `main()` runs. A body that
/// waits through a call of this package (`startAndWait()`, `waitUntilFinished()`) gives up its place while it waits, and
/// another thread takes over at once, up to ``threadLimit`` in the process. Bodies that block in other ways are noticed
/// within milliseconds. If no operation begins although one could, and the processor time of the process shows that
/// cores are idle, the queue gets more threads: as many as its width allows, and 64 at most. So 65 bodies that wait for
/// each other by a semaphore or a latch never end, whatever the width. Bodies that compute get no more threads, and the
/// additional threads end when the cores are busy again.
///
/// On Apple's systems too the quality of service says in which order operations begin, and not at what priority their
/// threads run.
///
/// ### Lifetime
///
/// A queue that nobody holds any more runs what was added to it. If it is suspended then, nobody could ever resume it:
/// what it holds is cancelled.
public final class QueueManager: Sendable {
    package let engine: QueueEngine

    /// How many threads the queues of a process have at most, those included whose bodies wait.
    public static let threadLimit = WorkerPool.threadLimit

    /// Makes a queue.
    ///
    /// - Parameters:
    ///   - name: The name by which it shows itself in errors and pictures.
    ///   - width: How many operations may run at once; nil for as many as are ready. Below one, it is one.
    public convenience init(_ name: String = "unnamed", width: Int? = nil) {
        self.init(engine: QueueEngine(name: name, width: width.map { max($0, 1) }))
    }

    package init(engine: QueueEngine) {
        self.engine = engine
    }

    deinit {
        // Nothing can read the list of failures any more, and the operations in it may hold the engine.
        failureLimit = 0
        if isSuspended { engine.cancelAll(because: .shutDown(name)) }
        engine.endSuspension()
    }

    /// The queue's name.
    public var name: String { engine.name }
}

// Adding.
extension QueueManager {
    /// Adds an operation, which runs when its turn comes.
    ///
    /// - Throws: If it is in a queue, was started, or ended; if the queue is full or was shut down.
    public func add(_ operation: ManagedOperation) throws(QueueError) {
        try engine.add(operation)
    }

    /// Adds a Foundation operation of any kind.
    ///
    /// Its priority is read now, and later changes are not seen.
    ///
    /// - Throws: If it is in a queue, was started, or ended; if the queue is full or was shut down.
    @_disfavoredOverload
    public func add(_ operation: Operation) throws(QueueError) {
        if let own = operation as? ManagedOperation { return try engine.add(own) }
        try engine.add(foreign: operation)
    }

    /// Adds operations, all or none, in their order.
    ///
    /// - Throws: If one of them is in a queue, was started, or ended; if there is no room for all.
    public func add(_ operations: [ManagedOperation]) throws(QueueError) {
        try engine.add(operations)
    }

    /// Adds a closure, without making an operation of it: cheaper, and nothing can wait for it.
    ///
    /// - Parameters:
    ///   - priority: How urgent it is.
    ///   - name: The name by which it shows itself in pictures.
    ///   - body: What to run.
    /// - Throws: If the queue is full or was shut down.
    public func add(
        priority: Operation.QueuePriority = .normal, name: String? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(QueueError) {
        try engine.add(closure: body, level: QueueLevel(priority), name: name)
    }

    /// Adds an operation that runs alone: after all that was added before, and before all that is added later.
    ///
    /// What was added before must not wait for what is added later: neither would ever run.
    public func addBarrier(_ operation: ManagedOperation) throws(QueueError) {
        try engine.add(operation, isBarrier: true)
    }

    /// Adds a closure that runs alone: after all that was added before, and before all that is added later.
    public func addBarrier(_ body: @escaping @Sendable () -> Void) throws(QueueError) {
        try engine.add(closure: body, level: .normal, isBarrier: true)
    }

    /// What becomes of the rest of a chain when one of it gives no result.
    ///
    /// More cases may be added.
    public enum ChainRule: Sendable {
        /// The rest is cancelled.
        case stopAtFailure
        /// The rest runs all the same.
        case runThrough
    }

    /// Adds operations that run one after another, in their order.
    ///
    /// - Throws: If one cannot be added, or cannot wait for the one before it; then none is added, and none waits.
    public func addChain(_ operations: [ManagedOperation], _ rule: ChainRule = .stopAtFailure) throws(QueueError) {
        try addChain(operations, rule, hasPlaces: false)
    }

    func addChain(_ operations: [ManagedOperation], _ rule: ChainRule, hasPlaces: Bool) throws(QueueError) {
        var linked: [(ManagedOperation, DependencyEdge, ManagedOperation)] = []
        do throws(QueueError) {
            try engine.add(operations, hasPlaces: hasPlaces) { () throws(QueueError) in
                for (upstream, downstream) in zip(operations, operations.dropFirst()) {
                    linked.append((downstream, try link(downstream, to: upstream, rule), upstream))
                }
            }
        } catch {
            for (downstream, edge, upstream) in linked { downstream.remove(edge, to: upstream) }
            throw error
        }
    }

    private func link(
        _ downstream: ManagedOperation, to upstream: ManagedOperation, _ rule: ChainRule
    ) throws(QueueError) -> DependencyEdge {
        do throws(DependencyError) {
            return try downstream.connect(to: upstream, judge: rule == .stopAtFailure ? cancelDependent : nil)
        } catch {
            throw QueueError(.chain, queue: name, "The chain was not added to queue \(name): \(error.message)")
        }
    }
}

/// The rule of an edge that cancels the dependent when there is no result.
private let cancelDependent: DependencyEdge.Judge = { upstream in
    UnsuccessfulDependency(upstream).map { .cancel($0.cause) } ?? .proceed
}
