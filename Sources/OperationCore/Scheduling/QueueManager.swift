// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A queue that runs operations.
public final class QueueManager: Sendable {
    let engine: QueueEngine

    /// Makes a queue.
    public init(_ name: String? = nil, width: Int? = nil) {
        engine = QueueEngine(name: name ?? "unnamed", width: width, source: WorkerPool.shared)
    }

    /// Adds an operation.
    public func add(_ operation: ManagedOperation) throws(QueueError) { try engine.add(operation) }

    /// Adds a closure.
    public func add(_ body: @escaping @Sendable () -> Void) { engine.add(closure: body, level: .normal) }

    /// Blocks until all ended.
    public func waitUntilAllFinished() {
        let waiter = BlockingWaiter()
        let isDone = engine.state.withLock { state in
            if state.machine.live == 0 { return true }
            state.drainers.append { waiter.wake() }
            return false
        }
        if !isDone { waiter.wait() }
    }
}
