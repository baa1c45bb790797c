// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// Adding to a queue that may be full: see `capacity`.
//
// Those who wait are told in the order of their calls, and their places are kept for them from then on. Where several are
// to be added at once, places are put aside for them as they become free.
extension QueueManager {
    /// Adds an operation as soon as there is room for it.
    ///
    /// Those who wait are told in the order of their calls, and a place is kept for each from then on.
    ///
    /// - Throws: As `add` does; with the code `cancelled` if the task is cancelled while it waits. The operation is not
    ///   added then.
    public func addWhenThereIsRoom(_ operation: ManagedOperation) async throws(QueueError) {
        try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) { hasPlace throws(QueueError) in
            try engine.add(operation, hasPlace: hasPlace)
        }
    }

    /// Adds a Foundation operation of any kind as soon as there is room for it.
    ///
    /// - Throws: As `add` does; with the code `cancelled` if the task is cancelled while it waits.
    @_disfavoredOverload
    public func addWhenThereIsRoom(_ operation: Operation) async throws(QueueError) {
        if let own = operation as? ManagedOperation { return try await addWhenThereIsRoom(own) }
        try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) { hasPlace throws(QueueError) in
            try engine.add(foreign: operation, hasPlace: hasPlace)
        }
    }

    /// Adds operations, all or none, in their order, as soon as there is room for all of them.
    ///
    /// - Throws: As `add` does; with the code `full` if they are more than the queue may have at once, and with the code
    ///   `cancelled` if the task is cancelled while it waits.
    public func addWhenThereIsRoom(_ operations: [ManagedOperation]) async throws(QueueError) {
        let count = operations.count
        try await engine.whenThereIsRoom(for: count, toAdd: "Each of \(count)") { hasPlaces throws(QueueError) in
            try engine.add(operations, hasPlaces: hasPlaces)
        }
    }

    /// Adds a closure as soon as there is room for it.
    ///
    /// - Parameters:
    ///   - priority: How urgent it is.
    ///   - name: The name by which it shows itself in pictures.
    ///   - body: What to run.
    /// - Throws: As `add` does; with the code `cancelled` if the task is cancelled while it waits.
    public func addWhenThereIsRoom(
        priority: Operation.QueuePriority = .normal, name: String? = nil, _ body: @escaping @Sendable () -> Void
    ) async throws(QueueError) {
        try await engine.whenThereIsRoom(for: 1, toAdd: name ?? "A closure") { hasPlace throws(QueueError) in
            try engine.add(closure: body, level: QueueLevel(priority), name: name, hasPlace: hasPlace)
        }
    }

    /// Makes an operation and adds it as soon as there is room for it, and keeps the closure to make another one like it
    /// if that fails: see ``add(remaking:)``.
    ///
    /// - Returns: The operation that was added.
    /// - Throws: As `add` does; with the code `cancelled` if the task is cancelled while it waits.
    @discardableResult
    public func addWhenThereIsRoom<Made: ManagedOperation>(
        remaking make: @escaping @Sendable () -> Made
    ) async throws(QueueError) -> Made {
        let operation = make(), details = EntryDetails(remake: make)
        try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) { hasPlace throws(QueueError) in
            try engine.add(operation, details: details, hasPlace: hasPlace)
        }
        return operation
    }

    /// Adds an operation that runs alone, as soon as there is room for it: see `addBarrier`.
    ///
    /// What comes before it is what was added until then.
    public func addBarrierWhenThereIsRoom(_ operation: ManagedOperation) async throws(QueueError) {
        try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) { hasPlace throws(QueueError) in
            try engine.add(operation, isBarrier: true, hasPlace: hasPlace)
        }
    }

    /// Adds a closure that runs alone, as soon as there is room for it.
    ///
    /// What comes before it is what was added until then.
    public func addBarrierWhenThereIsRoom(_ body: @escaping @Sendable () -> Void) async throws(QueueError) {
        try await engine.whenThereIsRoom(for: 1, toAdd: "A closure") { hasPlace throws(QueueError) in
            try engine.add(closure: body, level: .normal, isBarrier: true, hasPlace: hasPlace)
        }
    }

    /// Adds operations that run one after another, in their order, as soon as there is room for all of them.
    ///
    /// - Throws: As ``addChain(_:_:)`` does; with the code `full` if they are more than the queue may have at once, and
    ///   with the code `cancelled` if the task is cancelled while it waits.
    public func addChainWhenThereIsRoom(
        _ operations: [ManagedOperation], _ rule: ChainRule = .stopAtFailure
    ) async throws(QueueError) {
        let count = operations.count
        try await engine.whenThereIsRoom(for: count, toAdd: "A chain of \(count)") { hasPlaces throws(QueueError) in
            try addChain(operations, rule, hasPlaces: hasPlaces)
        }
    }
}
