// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// An observer that records when the entries of a queue run, up to a number of entries.
///
/// Its lock is taken under the queue's lock, and by the handlers of operations, which may run when the queue no longer
/// exists.
final class QueueRecorder: QueueFollower, Sendable {
    /// The record of one entry.
    fileprivate struct Page {
        var run: QueueRun
        /// The operation, until its name is read at its end or at the end of the recording.
        var operation: Operation?
        let reference: WeakReference<Operation>?
        let slot: QueueMachine.Slot
        var stage: QueueMachine.Stage
        var since: OperationInstant
    }

    fileprivate struct Book {
        var pages: [Int: Page] = [:]
        var nextNumber = 0
        /// The number of the oldest page that may still exist.
        var oldest = 0
        var forgottenCount = 0
        /// The numbers of the pages by the slots of their entries.
        var bySlot: [QueueMachine.Slot: Int] = [:]
        var byOperation: [ObjectIdentifier: Int] = [:]
        var now = OperationInstant(offset: .zero)
        var freeLanes: [Int] = []
        var laneCount = 0
    }

    let settings: QueueRecording
    private let book = Locked(Book())

    var clock: any OperationClock { settings.clock }

    init(_ settings: QueueRecording) { self.settings = settings }

    func pass(to moment: OperationInstant) {
        // Threads may take the lock in another order than they read the clock.
        book.withLock { $0.now = max($0.now, moment) }
    }

    func record(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        switch change {
        case .placed(let slot, let entry, from: .entering):
            if let dropped = enter(slot, entry) { journal.later { extendLifetime(dropped) } }
        case .placed(let slot, let entry, from: _): book.withLock { $0.move(slot, to: entry.stage) }
        case .ended(let slot, _, let ending):
            guard let number = book.withLock({ $0.end(slot, ending) }) else { return }
            journal.later { [self] in recordName(number) }
        case .rested, .wentOn, .width, .suspension, .closing: break
        }
    }

    /// Begins a page, and returns the operation of the page that is removed for it, if any.
    @discardableResult
    func enter(_ slot: QueueMachine.Slot, _ entry: QueueMachine.Entry) -> Operation? {
        book.withLock { $0.enter(slot, entry, limit: settings.limit) }
    }

    /// Reads the current time and returns a closure that, under the queue's lock, sets the time of the changes that
    /// follow.
    ///
    /// The time is read outside the lock, because the clock may be the user's.
    func passTime() -> () -> Void {
        { [now = clock.now] in self.pass(to: now) }
    }

    /// Records the dependencies of an operation just before it begins, because they are not known afterward.
    func recordLinks(of operation: Operation) {
        let dependencies = operation.dependencies.map(\.behindGate)
        book.withLock { book in
            guard let number = book.number(of: operation) else { return }
            let others = dependencies.compactMap { book.number(of: $0) }
            book.pages[number]?.run.dependencies = others
        }
    }

    /// Records that a handler is enqueued, and returns the number with which its beginning is recorded.
    func recordHandler(_ slot: QueueMachine.Slot) -> Int? {
        let now = clock.now
        return book.withLock { book in
            guard let number = book.bySlot[slot] else { return nil }
            book.pages[number]?.run.handlerEnqueued = now
            return number
        }
    }

    func handlerBegins(_ number: Int) {
        let now = clock.now
        book.withLock { $0.pages[number]?.run.handlerBegan = now }
    }

    /// Reads the name of an operation, which may run code of the user, and releases the operation.
    private func recordName(_ number: Int) {
        guard let operation = book.withLock({ $0.pages[number]?.operation }) else { return }
        let name = operation.displayName
        book.withLock { book in
            book.pages[number]?.run.name = name
            book.pages[number]?.operation = nil
        }
    }

    /// Ends the recording, and reads the names of all entries that have not ended.
    func close() {
        let rest = book.withLock { $0.pages.filter { $0.value.operation != nil } }
        for number in rest.keys { recordName(number) }
        extendLifetime(rest)
    }

    func record(of queue: String) -> QueueRecord {
        let (pages, forgottenCount) = book.withLock { ($0.pages, $0.forgottenCount) }
        let runs = pages.values.map { page in
            var run = page.run
            run.object = page.reference?.id
            if let operation = page.operation { run.name = operation.displayName }
            return run
        }
        return QueueRecord(queue: queue, runs: runs.sorted { $0.id < $1.id }, forgottenCount: forgottenCount)
    }
}

extension QueueRecorder.Book {
    fileprivate mutating func enter(
        _ slot: QueueMachine.Slot, _ entry: QueueMachine.Entry, limit: Int
    ) -> Operation? {
        let operation = entry.work.operation
        let number = nextNumber
        nextNumber += 1
        pages[number] = QueueRecorder.Page(
            run: QueueRun(id: number, name: entry.details?.name ?? "closure", added: now), operation: operation,
            reference: operation.map { WeakReference($0.originalOrSelf) }, slot: slot, stage: entry.stage, since: now)
        bySlot[slot] = number
        if let operation { byOperation[ObjectIdentifier(operation.originalOrSelf)] = number }
        if entry.stage == .running { begin(number) }
        return pages.count > limit ? dropOldest() : nil
    }

    fileprivate mutating func move(_ slot: QueueMachine.Slot, to stage: QueueMachine.Stage) {
        guard let number = bySlot[slot] else { return }
        let old = count(number)
        pages[number]?.stage = stage
        if stage == .running { begin(number) }
        if old == .running, stage != .running {
            // The entry was about to begin and then got another dependency.
            freeLane(of: number)
            pages[number]?.run.started = nil
            pages[number]?.run.lane = nil
        }
    }

    /// Ends the page of an entry, and returns its number.
    fileprivate mutating func end(_ slot: QueueMachine.Slot, _ ending: LifecycleMachine.Ending) -> Int? {
        guard let number = bySlot.removeValue(forKey: slot) else { return nil }
        count(number)
        freeLane(of: number)
        pages[number]?.stage = .free
        pages[number]?.run.ended = now
        pages[number]?.run.ending = QueueEntry.Ending(ending)
        return number
    }

    /// Returns the number of an operation's page, unless it belongs to a freed operation with the same address.
    fileprivate func number(of operation: Operation) -> Int? {
        guard let number = byOperation[ObjectIdentifier(operation.originalOrSelf)] else { return nil }
        // The caller holds the object at this address, so a live reference is to that object.
        return pages[number]?.reference?.object != nil ? number : nil
    }

    /// Adds the time since the last change to the duration of the entry's stage, and returns that stage.
    @discardableResult
    private mutating func count(_ number: Int) -> QueueMachine.Stage? {
        guard let page = pages[number] else { return nil }
        let time = page.since.duration(to: now)
        switch page.stage {
        case .entering, .waiting: pages[number]?.run.waitingForDependencies += time
        case .held: pages[number]?.run.held += time
        case .ready, .assigned: pages[number]?.run.waitingForPlace += time
        case .running, .ending, .free: break
        }
        pages[number]?.since = now
        return page.stage
    }

    private mutating func begin(_ number: Int) {
        pages[number]?.run.started = now
        if freeLanes.isEmpty {
            freeLanes.append(laneCount)
            laneCount += 1
        }
        pages[number]?.run.lane = freeLanes.removeLast()
    }

    private mutating func freeLane(of number: Int) {
        if let lane = pages[number]?.run.lane { freeLanes.append(lane) }
    }

    private mutating func dropOldest() -> Operation? {
        while pages[oldest] == nil { oldest += 1 }
        guard let page = pages.removeValue(forKey: oldest) else { return nil }
        forgottenCount += 1
        if page.stage != .free {
            bySlot[page.slot] = nil
            if let lane = page.run.lane { freeLanes.append(lane) }
        }
        if let reference = page.reference, byOperation[reference.id] == oldest { byOperation[reference.id] = nil }
        oldest += 1
        return page.operation
    }
}

/// The settings that a queue uses to record its operations and closures.
public struct QueueRecording: Sendable {
    /// The maximum number of operations and closures in the record.
    ///
    /// The default is 10,000. The queue removes the oldest entries first.
    public var limit: Int
    /// The clock that measures the times in the record.
    ///
    /// The default is the system clock.
    public var clock: any OperationClock

    /// Creates settings for recording a queue.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of operations and closures in the record. The default is 10,000, and a value below
    ///     one is treated as one.
    ///   - clock: The clock that measures the times in the record. The default is the system clock.
    public init(limit: Int = 10_000, clock: any OperationClock = .system) {
        self.limit = max(limit, 1)
        self.clock = clock
    }
}

/// A switch that indicates whether a queue is recorded, which costs one atomic access while it is off.
final class RecordingSwitch: Sendable {
    private let isOn = Atomic(false)
    private let present = Locked<QueueRecorder?>(nil)

    /// The active recorder.
    var recorder: QueueRecorder? {
        guard isOn.load(ordering: .relaxed) else { return nil }
        return present.withLock { $0 }
    }

    /// The active recorder, or the last one that was active.
    var lastRecorder: QueueRecorder? { present.withLock { $0 } }

    var isRecording: Bool { isOn.load(ordering: .relaxed) }

    func start(_ recorder: QueueRecorder) -> QueueRecorder? {
        let old = present.withLock { exchange(&$0, with: recorder) }
        isOn.store(true, ordering: .relaxed)
        return old
    }

    func stop() { isOn.store(false, ordering: .relaxed) }
}

extension QueueEngine {
    func setRecording(_ settings: QueueRecording?) {
        let recorder = settings.map { QueueRecorder($0) }
        let now = recorder?.clock.now
        var old: QueueRecorder?
        var stopped: QueueRecorder?
        let calls = applyAfterReclaiming { state, _ -> [@Sendable () -> Void] in
            stopped = recording.recorder
            let calls = stopped.map { state.machine.remove($0) } ?? []
            guard let recorder, let now else {
                recording.stop()
                return calls
            }
            recorder.pass(to: now)
            for (index, entry) in state.machine.entries.enumerated() where entry.stage != .free {
                recorder.enter(QueueMachine.Slot(index), entry)
            }
            old = recording.start(recorder)
            state.machine.add(recorder)
            return calls
        }
        for call in calls { call() }
        stopped?.close()
        extendLifetime(old)
    }
}

extension QueueManager {
    /// The settings for recording the queue, or `nil` if the queue is not recorded.
    ///
    /// The default is `nil`, which disables recording. If you assign settings, a new recording begins. If you assign
    /// `nil`, the recording ends, and ``record`` keeps the record of that recording.
    public var recording: QueueRecording? {
        get { engine.recording.recorder?.settings }
        set { engine.setRecording(newValue) }
    }

    /// The record of the most recent recording, which is empty if the queue was never recorded.
    public var record: QueueRecord {
        engine.recording.lastRecorder?.record(of: name) ?? QueueRecord(queue: name, runs: [])
    }
}
