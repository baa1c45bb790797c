// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The entry of a plain `Foundation.Operation` in a queue of this package.
///
/// The queue reads the readiness of the operation when one of its dependencies has ended. A timer reads it again every
/// 20 ms, because Foundation on Linux reports neither a cancellation nor a change of an overridden `isReady`.
package final class PlainOperationEntry: Sendable {
    let operation: Operation
    // Sendable: both are set before other threads know the entry, and later only under the queue's lock.
    fileprivate let registration = Locked<(engine: QueueEngine, slot: QueueMachine.Slot)?>(nil)
    private let watchers = Locked<[PlainOperationWatcher]>([])
    /// The number of observed dependencies that have not ended.
    private let unended = Atomic<Int>(0)
    /// The line of the operation in the poll, which is only used under the queue's lock.
    let line = Locked<PlainOperationPoll.Line?>(nil)

    /// The operations that are in a queue of this package, so that no operation is in two queues.
    private static let present = Locked<Set<ObjectIdentifier>>([])

    /// Creates an entry, or returns `nil` if the operation is already in a queue of this package.
    init?(_ operation: Operation) {
        guard Self.present.withLock({ $0.insert(ObjectIdentifier(operation)).inserted }) else { return nil }
        self.operation = operation
    }

    /// The slot in the queue, from its entry until the end.
    var slot: QueueMachine.Slot? { registration.withLock { $0?.slot } }

    /// Whether an observed dependency has not ended.
    var isBehind: Bool { unended.load(ordering: .acquiring) > 0 }

    /// Begins to observe the operation and its dependencies.
    func watch() {
        let own = PlainOperationWatcher(operation) { [weak self] _ in self?.didEnd() }
        let others = operation.dependencies.filter { !$0.isFinished }.map { dependency in
            PlainOperationWatcher(dependency) { [weak self] in self?.dependencyDidEnd($0) }
        }
        unended.store(others.count, ordering: .releasing)
        watchers.withLock { $0 = [own] + others }
        for watcher in others + [own] { watcher.begin() }
        // A dependency may have just ended on a thread that has not yet decremented the count of this operation.
        if !reconsider(), !isBehind { askSoon() }
    }

    /// Checks whether the operation may begin, and returns the result.
    @discardableResult
    func reconsider() -> Bool { engine?.reconsider(self) ?? true }

    private var engine: QueueEngine? { registration.withLock { $0?.engine } }

    private func dependencyDidEnd(_ dependency: Operation) {
        let isBehind = unended.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue > 0
        if reconsider() { return }
        // When a dependency ends, Foundation decrements a count in each dependent, in no particular order. The change
        // has now reached the watcher, but perhaps not yet the operation. The change has reached all dependents when
        // the start of the dependency returns on this thread. Each thread checks again itself. If two dependencies end
        // at the same time, the thread that decrements the last count may not be the one that notifies its watcher
        // last.
        if !ThreadNotes.leave(untilEndOf: dependency, { self.reconsider() }) { askSoon() }
        // An operation that is still not ready overrides `isReady`, or the thread of the dependency was interrupted.
        if !isBehind { engine?.poll(self) }
    }

    /// Checks again later, when the thread of an ended dependency has had time to decrement the count of this
    /// operation.
    private func askSoon() { DispatchQueue.global().async { [weak self] in self?.reconsider() } }

    /// Starts the operation, or returns `false` if it is not ready after all.
    func begin() -> Bool {
        guard operation.isReady else { return false }
        if OperationOwner.owner(of: operation)?.isGone == true { operation.cancel() }
        if !operation.isFinished { ThreadNotes.performEnd(of: operation) { operation.start() } }
        if operation.isFinished { didEnd() }
        return true
    }

    private func didEnd() {
        guard let (engine, slot) = registration.withLock({ exchange(&$0, with: nil) }) else { return }
        leave()
        OperationOwner.mark(operation, as: nil)
        engine.didEnd(slot, operation.isCancelled ? .cancelled : .success)
    }

    /// Forgets an operation that has ended or was not accepted.
    func leave() {
        _ = Self.present.withLock { $0.remove(ObjectIdentifier(operation)) }
        let watchers = watchers.withLock { exchange(&$0, with: []) }
        // A watcher may be calling this method, so the watchers are released later.
        DispatchQueue.global().async { extendLifetime(watchers) }
    }
}

extension QueueEngine {
    /// Adds a plain operation, in a reserved slot if `hasReservation` is `true`.
    ///
    /// The reservation is used up even if the operation is not added.
    func add(plain operation: Operation, hasReservation: Bool = false) throws(OperationSetupError) {
        let entry: PlainOperationEntry
        do throws(OperationSetupError) {
            entry = try makeEntry(operation)
        } catch {
            if hasReservation { releaseReservations(1) }
            throw error
        }
        let level = QueueLevel(operation.queuePriority, operation.qualityOfService)
        let refusal = apply { state, _ -> OperationSetupError? in
            if hasReservation { state.reserved -= 1 }
            if let refusal = self.refusal(of: 1, hasReservation: hasReservation, state) { return refusal }
            let slot = state.machine.enter(.plain(entry), level: level)
            state.machine.place(slot, .waiting)
            entry.registration.withLock { $0 = (self, slot) }
            return nil
        }
        if let refusal {
            entry.leave()
            throw refusal
        }
        entry.watch()
        poll(entry)
    }

    private func makeEntry(_ operation: Operation) throws(OperationSetupError) -> PlainOperationEntry {
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

    /// Checks again whether a plain operation may begin, and returns the result.
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

    /// Moves an entry back to the waiting ones, because its operation is no longer ready.
    func putBack(_ entry: PlainOperationEntry, _ slot: QueueMachine.Slot) {
        applyAfterReclaiming { state, _ in
            // The operation may have ended in the meantime, and the slot may belong to another entry.
            if entry.slot == slot { state.machine.place(slot, .waiting) }
        }
        poll(entry)
    }

    /// Checks the entry regularly while it waits.
    func poll(_ entry: PlainOperationEntry) {
        let begins = state.withLock { state in
            guard isWaiting(entry, state) else { return false }
            state.poll.add(entry)
            return !exchange(&state.poll.isSet, with: true)
        }
        if begins { pollLater() }
    }

    private func isWaiting(_ entry: PlainOperationEntry, _ state: State) -> Bool {
        entry.slot.map { state.machine.entries[Int($0)].stage == .waiting } ?? false
    }

    /// Stops the timer for tests, because every operation must become ready without it.
    package func stopPolling() { state.withLock { $0.poll.isSet = true } }

    private func pollLater() {
        _ = SystemClock.shared.schedule(after: .milliseconds(20)) { [weak self] in
            if self?.askPlain() == true { self?.pollLater() }
        }
    }

    /// Checks some of the waiting operations, and returns whether there are operations to check again.
    @discardableResult
    package func askPlain() -> Bool {
        let (asked, gone, continues) = state.withLock { state in
            var poll = exchange(&state.poll, with: PlainOperationPoll())
            let (asked, gone) = poll.takeTurn { isWaiting($0, state) }
            poll.isSet = !poll.isEmpty
            state.poll = poll
            return (asked, gone, poll.isSet)
        }
        // These are released without holding the lock, because operations of the user may be freed with them.
        extendLifetime(gone)
        for entry in asked { entry.reconsider() }
        return continues
    }
}

/// The plain operations whose readiness is read next, a few at a time and each in its turn.
///
/// Operations without a known reason to wait are in a separate line. So they are checked often, even if many operations
/// wait for dependencies.
struct PlainOperationPoll {
    /// The line of an operation.
    enum Line {
        /// The operation has no known reason to wait, so only reading `isReady` shows when it becomes ready.
        case due
        /// The operation waits for observed dependencies, but it may also be canceled or lose a dependency without a
        /// notification.
        case behind
    }

    /// Whether the next round is scheduled.
    var isSet = false

    private var due = Fifo<PlainOperationEntry>()
    private var behind = Fifo<PlainOperationEntry>()

    /// The maximum number of operations of each line that are checked at a time.
    static let most = 500

    var isEmpty: Bool { due.isEmpty && behind.isEmpty }

    /// Adds an operation, or moves it to the line to which it now belongs.
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

    /// Returns the operations to check now, and operations that no longer wait and must be released.
    mutating func takeTurn(_ isWaiting: (PlainOperationEntry) -> Bool) -> (
        asked: [PlainOperationEntry], gone: [PlainOperationEntry]
    ) {
        var asked: [PlainOperationEntry] = [], gone: [PlainOperationEntry] = []
        for line in [Line.due, .behind] {
            for _ in 0..<min(line == .due ? due.count : behind.count, Self.most) {
                guard let entry = line == .due ? due.popFirst() : behind.popFirst() else { break }
                // The operation is now in the other line or in none.
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
