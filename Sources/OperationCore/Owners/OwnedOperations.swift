// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The operations of one owner at one moment.
struct OwnedOperations {
    private let operations: [Operation]
    private let owner: String
    private let isOwnerGone: Bool

    /// Those of an object, which may be in its `deinit`.
    init(of object: AnyObject) {
        let query = OwnerBook.Query.object(object, mayBeInDeinit: OwnerReference.isBeingFreed(object))
        operations = OwnerRegistry.shared.operations(query)
        owner = "\(type(of: object))"
        isOwnerGone = false
    }

    init(of owner: OperationOwner) {
        self.owner = "\(owner)"
        switch owner.kind {
        case .name(let name):
            operations = OwnerRegistry.shared.operations(.name(name))
            isOwnerGone = false
        case .object(let reference):
            let object = reference.object
            operations = OwnerRegistry.shared.operations(
                object.map { .object($0, mayBeInDeinit: false) } ?? .gone(reference.identity))
            isOwnerGone = object == nil
        }
    }

    /// Cancels those that have no outcome; returns how many these were.
    @discardableResult
    func cancel(because cause: CancellationCause?, where isMeant: (Operation) -> Bool = { _ in true }) -> Int {
        let cause = cause ?? (isOwnerGone ? .ownerGone(owner) : .ownerCancelled(owner))
        let meant = operations.filter(isMeant)
        let engines = Self.engines(of: meant)
        for engine in engines { engine.hold() }
        var count = 0
        // The last first: outside of our queues they may wait for the others, and would begin when those are cancelled.
        for operation in meant.reversed() where operation.cancelForOwner(because: cause) { count += 1 }
        for engine in engines { engine.release() }
        return count
    }

    /// The queues of ours that hold some of them, each once.
    private static func engines(of operations: [Operation]) -> [QueueEngine] {
        var engines: [ObjectIdentifier: QueueEngine] = [:]
        for case let operation as ManagedOperation in operations {
            if let engine = operation.core.withLock({ $0.host }) { engines[ObjectIdentifier(engine)] = engine }
        }
        return Array(engines.values)
    }
}

extension Operation {
    /// Cancels the operation; returns whether it had no outcome.
    fileprivate func cancelForOwner(because cause: CancellationCause) -> Bool {
        guard let own = self as? ManagedOperation else {
            guard !isCancelled, !isFinished else { return false }
            cancel()
            return true
        }
        return own.cancelWithoutNotice(because: cause)
    }
}

extension QueueEngine {
    /// Cancels those of the operations that are in this queue.
    func cancel(_ owned: OwnedOperations, because cause: CancellationCause?) -> Int {
        // Only those of other kinds are looked for among all of the queue, and then once.
        var others: Set<ObjectIdentifier>?
        return owned.cancel(because: cause) { operation in
            if let own = operation as? ManagedOperation { return own.core.withLock { $0.host } === self }
            let known = others ?? foreignOperations
            others = known
            return known.contains(ObjectIdentifier(operation))
        }
    }

    private var foreignOperations: Set<ObjectIdentifier> {
        Set(operations.lazy.filter { !($0 is ManagedOperation) }.map { ObjectIdentifier($0) })
    }
}
