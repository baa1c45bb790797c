// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A queue that runs operations in the order of their urgency and limits how many operations run at the same time.
///
/// An operation begins only after all of its dependencies have ended.
///
/// ```swift
/// let queue = QueueManager("thumbnails", width: 4)
/// let load = ClosureOperation { 6 }, double = ClosureOperation { 7 }
/// try double.depend(on: load, otherwise: .cancel)
/// try queue.add([load, double])
/// await queue.drained()
/// ```
///
/// Use this class instead of `OperationQueue`. The time that the queue needs for each operation does not grow with the
/// number of operations in the queue. The queue provides lists of the operations that wait, run or have failed. The
/// queue accepts any `Foundation.Operation`, and has less overhead for operations from this package than for plain
/// operations.
///
/// ### Threads
///
/// The bodies of operations run on threads that the package manages. Normally, a queue uses at most one thread for each
/// processor core, and no more threads than its width. A queue has as many *slots* as its width. An asynchronous
/// operation occupies a slot until it ends, but occupies a thread only while `main()` runs.
///
/// If a body waits in a call to this package, such as `startAndWait()` or `waitUntilFinished()`, the body releases its
/// slot during the wait, so that another thread can immediately run other operations. All queues in the process
/// together use at most ``threadLimit`` threads.
///
/// Within milliseconds, the queue also detects bodies that block their threads in calls that the queue cannot observe,
/// such as a wait for a semaphore. If an operation is ready but none begins, and the process does not keep all cores
/// busy, the queue adds threads. The number of threads grows to at most 64 or the number of cores, whichever is larger.
/// On a computer with up to 64 cores, 65 bodies that wait for each other with a semaphore never end. If the cores are
/// busy, the queue adds a thread only rarely. The additional threads end when the cores are busy again.
///
/// On all platforms, the quality of service determines the order in which operations of `normal` priority begin. On
/// Apple platforms, a thread also adopts the quality of service of the operation that it runs.
///
/// ### Lifetime
///
/// A queue that your program no longer references still runs the operations that were added to it. However, if the
/// queue is suspended, it cancels its operations, because your program can no longer resume the queue.
///
/// Guide: `Docs/Guides/Queues.md`
public final class QueueManager: Sendable {
    package let engine: QueueEngine

    /// The maximum number of threads that all queues in the process use together, including threads whose bodies wait.
    public static let threadLimit = WorkerPool.threadLimit

    /// Creates a queue with a name and a width.
    ///
    /// - Parameters:
    ///   - name: The name of the queue, for example for errors and diagrams. The default is `"unnamed"`.
    ///   - width: The maximum number of operations and closures that run at the same time. The default is `nil`, which
    ///     sets no maximum. A value below one is treated as one.
    public convenience init(_ name: String = "unnamed", width: Int? = nil) {
        self.init(engine: QueueEngine(name: name, width: width.map { max($0, 1) }))
    }

    package init(engine: QueueEngine) {
        self.engine = engine
    }

    deinit {
        // No code can read the list of failures anymore, and the operations in the list may hold the engine.
        failureLimit = 0
        if isSuspended { engine.cancelAll(because: .shutDown(name)) }
        engine.endSuspension()
    }

    /// The name of the queue.
    public var name: String { engine.name }
}

// Adding operations.
extension QueueManager {
    /// Adds an operation of this package, or a plain `Foundation.Operation`, to the queue.
    ///
    /// The queue reads the priority of a plain `Foundation.Operation` when you add it. Later changes to the priority
    /// have no effect.
    ///
    /// - Parameter operation: An operation that has not started and is not in a queue or a group.
    /// - Throws: An ``OperationSetupError`` if the operation is already in a queue or a group, was started or has
    ///   ended. The method also throws this error if the queue is full or was shut down.
    public func add(_ operation: Operation) throws(OperationSetupError) {
        if let own = operation as? ManagedOperation { return try engine.add(own) }
        try engine.add(plain: operation)
    }

    /// Adds several operations to the queue in the order of the array.
    ///
    /// If the queue cannot add one of the operations, it adds none of them.
    ///
    /// - Parameter operations: The operations, none of which has started or is in a queue or a group.
    /// - Throws: An ``OperationSetupError`` if one of the operations is already in a queue or a group, was started or
    ///   has ended. The method also throws this error if the queue was shut down or does not have enough space for all
    ///   of the operations.
    public func add(_ operations: [ManagedOperation]) throws(OperationSetupError) {
        try engine.add(operations)
    }

    /// Adds a closure to the queue without creating an operation.
    ///
    /// A closure has less overhead than an operation, but no operation can depend on a closure.
    ///
    /// - Parameters:
    ///   - priority: The priority of the closure in the queue. The default is `.normal`.
    ///   - name: The name of the closure, for example for diagrams. The default is `nil`, which uses the name
    ///     "closure".
    ///   - body: The closure to run on one of the package's threads.
    /// - Throws: An ``OperationSetupError`` if the queue is full or was shut down.
    public func add(
        priority: Operation.QueuePriority = .normal, name: String? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(OperationSetupError) {
        try engine.add(closure: body, level: QueueLevel(priority), name: name)
    }

    /// Adds an operation that runs while the queue runs nothing else.
    ///
    /// The operation begins after all earlier operations and closures in the queue have ended. All later operations and
    /// closures begin after this operation has ended.
    ///
    /// The children of a group in this queue run together with the group, even if the group adds them after you add the
    /// barrier. If the barrier itself is a group, its children run while the queue runs nothing else. If a group is not
    /// in this queue but runs its children in it, the queue treats each child like an operation that you add yourself.
    ///
    /// An earlier operation must not depend on this operation or a later operation. Otherwise, this operation and all
    /// later operations would never run.
    ///
    /// - Parameter operation: An operation that has not started and is not in a queue or a group.
    /// - Throws: An ``OperationSetupError`` for the same reasons as `add`.
    public func addBarrier(_ operation: ManagedOperation) throws(OperationSetupError) {
        try engine.add(operation, isBarrier: true)
    }

    /// A rule that determines whether the rest of a chain runs after an operation in the chain fails or is canceled.
    ///
    /// Future versions may add cases.
    public enum ChainRule: Sendable {
        /// The queue cancels the remaining operations in the chain.
        case stopAtFailure
        /// The queue still runs the remaining operations in the chain.
        case runThrough
    }

    /// Adds operations that run one after another in the order of the array.
    ///
    /// - Parameters:
    ///   - operations: The operations in the chain.
    ///   - rule: The rule that applies if an operation in the chain fails or is canceled. The default is
    ///     ``ChainRule/stopAtFailure``.
    /// - Throws: An ``OperationSetupError`` if an operation cannot be added, or cannot depend on the operation before
    ///   it. In this case, the queue adds none of the operations and creates no dependencies.
    public func addChain(_ operations: [ManagedOperation], _ rule: ChainRule = .stopAtFailure)
        throws(OperationSetupError)
    {
        var linked: [(ManagedOperation, DependencyEdge, ManagedOperation)] = []
        do throws(OperationSetupError) {
            try engine.add(operations) { () throws(OperationSetupError) in
                for (upstream, downstream) in zip(operations, operations.dropFirst()) {
                    linked.append((downstream, try self.link(downstream, to: upstream, rule), upstream))
                }
            }
        } catch {
            for (downstream, edge, upstream) in linked { downstream.remove(edge, to: upstream) }
            throw error
        }
    }

    private func link(
        _ downstream: ManagedOperation, to upstream: ManagedOperation, _ rule: ChainRule
    ) throws(OperationSetupError) -> DependencyEdge {
        do throws(OperationSetupError) {
            let rule: DependencyRule<Never> = rule == .stopAtFailure ? .cancel : .runAnyway
            return try downstream.connect(to: upstream, judge: rule.judge)
        } catch {
            throw OperationSetupError(
                .chain, "The chain was not added to queue \(name): \(error.message)", path: error.path)
        }
    }
}

extension QueueManager {
    private static let defined = Locked<[String: QueueManager]>([:])

    /// Creates a queue with a name by which ``named(_:)`` can find the queue anywhere in the process.
    ///
    /// ```swift
    /// try QueueManager.define("images", width: 4)
    /// let load = ClosureOperation { 42 }
    /// try QueueManager.named("images").add(load)
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the queue.
    ///   - width: The maximum number of operations and closures that run at the same time. The default is `nil`, which
    ///     sets no maximum.
    /// - Returns: The new queue.
    /// - Throws: An ``OperationSetupError`` if a queue with this name is already defined, or if the width is below one.
    @discardableResult
    public static func define(_ name: String, width: Int? = nil) throws(OperationSetupError) -> QueueManager {
        if let width, width < 1 { throw .badWidth(width, queue: name) }
        let queue = QueueManager(name, width: width)
        let isNew = defined.withLock { defined in
            guard defined[name] == nil else { return false }
            defined[name] = queue
            return true
        }
        guard isNew else {
            throw OperationSetupError(
                .name,
                "A queue named \(name) is already defined. Define each queue once, and get it with `named(_:)`.")
        }
        return queue
    }

    /// Returns the queue that was defined with a name.
    ///
    /// - Parameter name: The name of the queue.
    /// - Throws: An ``OperationSetupError`` if no queue was defined with this name. The message of the error lists
    ///   the names that are defined.
    public static func named(_ name: String) throws(OperationSetupError) -> QueueManager {
        let (queue, names) = defined.withLock { ($0[name], $0.keys) }
        if let queue { return queue }
        let known = names.isEmpty ? "none" : names.sorted().joined(separator: ", ")
        throw OperationSetupError(
            .name,
            "No queue is named \(name). Define it with `define(_:)` before you use it. Defined queues: \(known).")
    }

    /// The names of all defined queues, in alphabetical order.
    package static var definedNames: [String] {
        defined.withLock { Array($0.keys) }.sorted()
    }

    /// Removes the definition of a queue, so that ``named(_:)`` no longer finds it.
    ///
    /// The queue still runs the operations that were added to it.
    ///
    /// - Parameter name: The name of the queue.
    /// - Returns: The queue, or `nil` if no queue was defined with this name.
    @discardableResult
    package static func undefine(_ name: String) -> QueueManager? {
        defined.withLock { $0.removeValue(forKey: name) }
    }
}

// Adding to a queue that may be full. See `capacity`.
//
// Waiting callers are notified in the order of their calls, and their slots are reserved from then on. For a caller
// that adds several operations, the queue reserves slots as they become free.
extension QueueManager {
    /// Adds an operation of this package, or a plain `Foundation.Operation`, as soon as the queue has space for it.
    ///
    /// The method waits while the queue has reached its ``capacity``. The queue reserves space for waiting callers in
    /// the order of their calls.
    ///
    /// If operations in the queue await this method, the queue may have no space before these operations end. In this
    /// case, OperationKit reports a notice, and the operations wait until you cancel an operation or increase the
    /// capacity.
    ///
    /// - Parameter operation: An operation that has not started and is not in a queue or a group.
    /// - Throws: An ``OperationSetupError`` for the same reasons as `add`. If the calling task is canceled while it
    ///   waits, the code is `cancelled`, and the operation is not added.
    public func addWhenThereIsRoom(_ operation: Operation) async throws(OperationSetupError) {
        try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) {
            hasReservation throws(OperationSetupError) in
            if let own = operation as? ManagedOperation {
                try engine.add(own, hasReservation: hasReservation)
            } else {
                try engine.add(plain: operation, hasReservation: hasReservation)
            }
        }
    }

    /// Adds several operations in the order of the array as soon as the queue has space for all of them.
    ///
    /// - Parameter operations: The operations, none of which has started or is in a queue or a group.
    /// - Throws: An ``OperationSetupError`` for the same reasons as `add`. The code is `full` if the array exceeds
    ///   the capacity of the queue. If the calling task is canceled while it waits, the code is `cancelled`.
    public func addWhenThereIsRoom(_ operations: [ManagedOperation]) async throws(OperationSetupError) {
        let count = operations.count
        let name = "A batch of \(count) operations"
        try await engine.whenThereIsRoom(for: count, toAdd: name) { hasReservations throws(OperationSetupError) in
            try engine.add(operations, hasReservations: hasReservations)
        }
    }
}
