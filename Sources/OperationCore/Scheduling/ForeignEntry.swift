// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A Foundation operation of any other kind in a queue of ours.
///
/// It is asked whether it is ready when one of its dependencies ended, and every now and then: on Linux nobody is told
/// when an operation of another kind gets ready by a rule of its own, or is cancelled.
package final class ForeignEntry: Sendable {
    let operation: Operation
    // Sendable: both are set before anybody else knows the entry, and under the queue's lock after.
    private let seat = Locked<(engine: QueueEngine, slot: QueueMachine.Slot)?>(nil)
    private let watchers = Locked<[ForeignWatcher]>([])

    /// The operations that are in a queue of ours, so that none is in two.
    private static let present = Locked<Set<ObjectIdentifier>>([])

    /// Nil if the operation is in a queue of ours already.
    init?(_ operation: Operation) {
        guard Self.present.withLock({ $0.insert(ObjectIdentifier(operation)).inserted }) else { return nil }
        self.operation = operation
    }

    /// The slot in the queue, from `sit` until the end.
    var slot: QueueMachine.Slot? { seat.withLock { $0?.slot } }

    func sit(in engine: QueueEngine, _ slot: QueueMachine.Slot) {
        seat.withLock { $0 = (engine, slot) }
    }

    /// Begins to follow the operation and what it waits for.
    func watch() {
        let own = ForeignWatcher(operation) { [weak self] _ in self?.didEnd() }
        let others = operation.dependencies.filter { !$0.isFinished }.map { dependency in
            ForeignWatcher(dependency) { [weak self] _ in self?.reconsider() }
        }
        watchers.withLock { $0 = [own] + others }
        for watcher in others + [own] { watcher.begin() }
        reconsider()
    }

    func reconsider() {
        guard let engine = seat.withLock({ $0?.engine }) else { return }
        engine.reconsider(self)
    }

    /// Starts the operation; false if it is not ready after all.
    func begin() -> Bool {
        guard operation.isReady else { return false }
        if OperationOwner.owner(of: operation)?.isGone == true { operation.cancel() }
        if !operation.isFinished { operation.start() }
        if operation.isFinished { didEnd() }
        return true
    }

    private func didEnd() {
        guard let (engine, slot) = seat.withLock({ exchange(&$0, with: nil) }) else { return }
        leave()
        OperationOwner.mark(operation, as: nil)
        engine.didEnd(slot, operation.isCancelled ? .cancelled : .success)
    }

    /// Forgets the operation, which ended or was not taken.
    func leave() {
        _ = Self.present.withLock { $0.remove(ObjectIdentifier(operation)) }
        let watchers = watchers.withLock { exchange(&$0, with: []) }
        // One of them may be calling this: they go when nobody is inside.
        DispatchQueue.global().async { withExtendedLifetime(watchers) {} }
    }
}

extension QueueEngine {
    func add(foreign operation: Operation, isBarrier: Bool = false) throws(QueueError) {
        if operation.isFinished { throw QueueRefusal.finished.error(operation, name) }
        if operation.isExecuting { throw QueueRefusal.started.error(operation, name) }
        #if !canImport(ObjectiveC)
            if FoundationQueueProbe.isHeld(operation, mayBeStarting: true) {
                throw QueueRefusal.inFoundationQueue.error(operation, name)
            }
        #endif
        guard let entry = ForeignEntry(operation) else {
            throw QueueRefusal.inQueue("a QueueManager").error(operation, name)
        }
        let level = QueueLevel(operation.queuePriority, operation.qualityOfService)
        let refusal = apply { state, _ -> QueueError? in
            if let refusal = self.refusal(of: 1, state) { return refusal }
            let slot = state.machine.enter(.foreign(entry), level: level, isBarrier: isBarrier)
            state.machine.place(slot, .waiting)
            entry.sit(in: self, slot)
            return nil
        }
        if let refusal {
            entry.leave()
            throw refusal
        }
        entry.watch()
        patrol(entry)
    }

    /// Looks again whether an operation of another kind may begin.
    func reconsider(_ entry: ForeignEntry) {
        let isReady = entry.operation.isReady || entry.operation.isFinished
        apply { state, _ in
            guard isReady, let slot = entry.slot else { return }
            let index = Int(slot)
            guard state.machine.entries[index].stage == .waiting else { return }
            state.machine.place(slot, .ready)
        }
    }

    /// It was ready and then it was not.
    func putBack(_ entry: ForeignEntry, _ slot: QueueMachine.Slot) {
        applySettled { state, _ in
            // Somebody else may have ended it meanwhile, and the slot may be another's.
            if entry.slot == slot { state.machine.place(slot, .waiting) }
        }
        patrol(entry)
    }

    /// Asks the entry every now and then, as long as it waits.
    private func patrol(_ entry: ForeignEntry) {
        let begins = state.withLock { state in
            guard isWaiting(entry, state) else { return false }
            state.patrolled[ObjectIdentifier(entry)] = entry
            return !exchange(&state.hasForeignPatrol, with: true)
        }
        if begins { patrolLater() }
    }

    private func isWaiting(_ entry: ForeignEntry, _ state: State) -> Bool {
        entry.slot.map { state.machine.entries[Int($0)].stage == .waiting } ?? false
    }

    private func patrolLater() {
        _ = SystemClock.shared.schedule(after: .milliseconds(20)) { [weak self] in self?.patrol() }
    }

    private func patrol() {
        let (waiting, others) = state.withLock { state in
            var others: [ForeignEntry] = []
            for (identity, entry) in state.patrolled where !isWaiting(entry, state) {
                others.append(entry)
                state.patrolled[identity] = nil
            }
            state.hasForeignPatrol = !state.patrolled.isEmpty
            return (Array(state.patrolled.values), others)
        }
        // Let go of outside the lock: with them may go operations of the user's.
        withExtendedLifetime(others) {}
        for entry in waiting { entry.reconsider() }
        if !waiting.isEmpty { patrolLater() }
    }
}
