// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// A Foundation operation of any other kind in a queue of ours.
///
/// The queue asks the operation whether it is ready when one of its dependencies has ended. A timer asks again every 20
/// ms, because Foundation on Linux reports neither a cancellation nor a change of an overridden `isReady`.
package final class PlainOperationEntry: Sendable {
    let operation: Operation
    // Sendable: both are set before anybody else knows the entry, and under the queue's lock after.
    private let seat = Locked<(engine: QueueEngine, slot: QueueMachine.Slot)?>(nil)
    private let watchers = Locked<[PlainOperationWatcher]>([])
    /// How many of those that it was seen to wait for have not ended.
    private let unended = Atomic<Int>(0)
    /// Where it stands among those that are asked every now and then; only used under the queue's lock.
    let line = Locked<PlainOperationPatrol.Line?>(nil)

    /// The operations that are in a queue of ours, so that none is in two.
    private static let present = Locked<Set<ObjectIdentifier>>([])

    /// Nil if the operation is in a queue of ours already.
    init?(_ operation: Operation) {
        guard Self.present.withLock({ $0.insert(ObjectIdentifier(operation)).inserted }) else { return nil }
        self.operation = operation
    }

    /// The slot in the queue, from `sit` until the end.
    var slot: QueueMachine.Slot? { seat.withLock { $0?.slot } }

    /// Whether something has not ended for which it was seen to wait.
    var isBehind: Bool { unended.load(ordering: .acquiring) > 0 }

    func sit(in engine: QueueEngine, _ slot: QueueMachine.Slot) {
        seat.withLock { $0 = (engine, slot) }
    }

    /// Begins to follow the operation and what it waits for.
    func watch() {
        let own = PlainOperationWatcher(operation) { [weak self] _ in self?.didEnd() }
        let others = operation.dependencies.filter { !$0.isFinished }.map { dependency in
            PlainOperationWatcher(dependency) { [weak self] in self?.dependencyDidEnd($0) }
        }
        unended.store(others.count, ordering: .releasing)
        watchers.withLock { $0 = [own] + others }
        for watcher in others + [own] { watcher.begin() }
        // A dependency may just have ended on a thread that has not counted it off here yet.
        if !reconsider(), !isBehind { askSoon() }
    }

    /// Asks whether the operation may begin, and returns the answer.
    @discardableResult
    func reconsider() -> Bool { engine?.reconsider(self) ?? true }

    private var engine: QueueEngine? { seat.withLock { $0?.engine } }

    private func dependencyDidEnd(_ dependency: Operation) {
        let isBehind = unended.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue > 0
        if reconsider() { return }
        // Foundation counts off a dependency in one dependent after another, in no particular order. It has now reached
        // the watcher, and perhaps not yet the operation. It has reached all of them when the start of the dependency
        // returns on this thread. Each thread asks again itself: if two dependencies end at the same time, the one that
        // is counted off last may not be the one whose watcher is notified last.
        if !ThreadNotes.leave(untilEndOf: dependency, { self.reconsider() }) { askSoon() }
        // An operation that is not ready after that overrides `isReady`, or the thread of the dependency was
        // interrupted.
        if !isBehind { engine?.patrol(self) }
    }

    /// Asks again later, when the thread on which a dependency ended has had time to count it off here.
    private func askSoon() { DispatchQueue.global().async { [weak self] in self?.reconsider() } }

    /// Starts the operation; false if it is not ready after all.
    func begin() -> Bool {
        guard operation.isReady else { return false }
        if OperationOwner.owner(of: operation)?.isGone == true { operation.cancel() }
        if !operation.isFinished { ThreadNotes.performEnd(of: operation) { operation.start() } }
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
    /// Adds an operation of another kind, in a place that was kept for it if it `hasPlace`; that is gone then in any case.
    func add(foreign operation: Operation, isBarrier: Bool = false, hasPlace: Bool = false) throws(QueueError) {
        let entry: PlainOperationEntry
        do throws(QueueError) {
            entry = try makeEntry(operation)
        } catch {
            if hasPlace { giveBackPlaces(1) }
            throw error
        }
        let level = QueueLevel(operation.queuePriority, operation.qualityOfService)
        let refusal = apply { state, _ -> QueueError? in
            if hasPlace { state.reserved -= 1 }
            if let refusal = self.refusal(of: 1, hasPlace: hasPlace, state) { return refusal }
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

    private func makeEntry(_ operation: Operation) throws(QueueError) -> PlainOperationEntry {
        if operation.isFinished { throw QueueRefusal.finished.error(operation, name) }
        if operation.isExecuting { throw QueueRefusal.started.error(operation, name) }
        #if !canImport(ObjectiveC)
            if FoundationQueueProbe.isHeld(operation, mayBeStarting: true) {
                throw QueueRefusal.inFoundationQueue.error(operation, name)
            }
        #endif
        guard let entry = PlainOperationEntry(operation) else {
            throw QueueRefusal.inQueue("a QueueManager").error(operation, name)
        }
        return entry
    }

    /// Asks again whether a plain `Foundation.Operation` may begin, and returns the answer.
    func reconsider(_ entry: PlainOperationEntry) -> Bool {
        guard entry.operation.isReady || entry.operation.isFinished else { return false }
        apply { state, _ in
            guard let slot = entry.slot else { return }
            let index = Int(slot)
            guard state.machine.entries[index].stage == .waiting else { return }
            state.machine.place(slot, .ready)
        }
        return true
    }

    /// It was ready and then it was not.
    func putBack(_ entry: PlainOperationEntry, _ slot: QueueMachine.Slot) {
        applySettled { state, _ in
            // Somebody else may have ended it meanwhile, and the slot may be another's.
            if entry.slot == slot { state.machine.place(slot, .waiting) }
        }
        patrol(entry)
    }

    /// Asks the entry every now and then, as long as it waits.
    func patrol(_ entry: PlainOperationEntry) {
        let begins = state.withLock { state in
            guard isWaiting(entry, state) else { return false }
            state.patrol.add(entry)
            return !exchange(&state.patrol.isSet, with: true)
        }
        if begins { patrolLater() }
    }

    private func isWaiting(_ entry: PlainOperationEntry, _ state: State) -> Bool {
        entry.slot.map { state.machine.entries[Int($0)].stage == .waiting } ?? false
    }

    /// Stops the timer, for tests: every operation must become ready without it.
    package func stopPatrol() { state.withLock { $0.patrol.isSet = true } }

    private func patrolLater() {
        _ = SystemClock.shared.schedule(after: .milliseconds(20)) { [weak self] in
            if self?.askForeign() == true { self?.patrolLater() }
        }
    }

    /// Asks some of those that wait whether they are ready; returns whether there are any to be asked again.
    @discardableResult
    package func askForeign() -> Bool {
        let (asked, gone, goesOn) = state.withLock { state in
            var patrol = exchange(&state.patrol, with: PlainOperationPatrol())
            let (asked, gone) = patrol.takeTurn { isWaiting($0, state) }
            patrol.isSet = !patrol.isEmpty
            state.patrol = patrol
            return (asked, gone, patrol.isSet)
        }
        // Let go of outside the lock: with them may go operations of the user's.
        withExtendedLifetime(gone) {}
        for entry in asked { entry.reconsider() }
        return goesOn
    }
}

/// Which operations of other kinds are asked next whether they are ready: a few at a time, each in its turn.
///
/// Those of which nothing is known that they wait for stand in a line of their own: so they are asked often, however many
/// wait for others.
struct PlainOperationPatrol {
    /// Where an operation stands.
    enum Line {
        /// Nothing is known that it waits for: when it is ready, only it can tell.
        case due
        /// It waits for others, and is told when they ended; it may be cancelled or lose a dependency without a word.
        case behind
    }

    /// Whether the next round is on its way.
    var isSet = false

    private var due = Fifo<PlainOperationEntry>()
    private var behind = Fifo<PlainOperationEntry>()

    /// How many of each line are asked at most at a time.
    static let most = 500

    var isEmpty: Bool { due.isEmpty && behind.isEmpty }

    /// Adds an operation, or moves it to the line where it belongs by now.
    mutating func add(_ entry: PlainOperationEntry) {
        let line = entry.isBehind ? Line.behind : .due
        guard entry.line.withLock({ exchange(&$0, with: line) }) != line else { return }
        append(entry, line)
    }

    private mutating func append(_ entry: PlainOperationEntry, _ line: Line) {
        switch line {
        case .due: due.append(entry)
        case .behind: behind.append(entry)
        }
    }

    /// Those that are to be asked now, and others that were in a line and wait no more, to be let go of.
    mutating func takeTurn(_ isWaiting: (PlainOperationEntry) -> Bool) -> (
        asked: [PlainOperationEntry], gone: [PlainOperationEntry]
    ) {
        var asked: [PlainOperationEntry] = [], gone: [PlainOperationEntry] = []
        for line in [Line.due, .behind] {
            for _ in 0..<min(line == .due ? due.count : behind.count, Self.most) {
                guard let entry = line == .due ? due.popFirst() : behind.popFirst() else { break }
                // It stands in the other line by now, or in none.
                guard entry.line.withLock({ $0 == line }), isWaiting(entry) else {
                    entry.line.withLock { if $0 == line { $0 = nil } }
                    gone.append(entry)
                    continue
                }
                append(entry, line)
                asked.append(entry)
            }
        }
        return (asked, gone)
    }
}
