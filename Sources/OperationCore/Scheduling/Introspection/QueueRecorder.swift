// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// Writes down what runs when in a queue, up to a number of entries.
///
/// Its lock is taken under the queue's, and by the handlers of operations, which may run when the queue is gone.
final class QueueRecorder: QueueFollower, Sendable {
    /// One entry on its way.
    fileprivate struct Page {
        var run: QueueRun
        /// Kept until it ended or the recording did, and its name was asked for.
        var operation: Operation?
        let reference: WeakReference?
        let slot: QueueMachine.Slot
        var stage: QueueMachine.Stage
        var since: OperationInstant
    }

    fileprivate struct Book {
        var pages: [Int: Page] = [:]
        var nextNumber = 0
        /// All before it are gone.
        var oldest = 0
        var forgottenCount = 0
        /// Who is in which place of the queue.
        var bySlot: [QueueMachine.Slot: Int] = [:]
        var byOperation: [ObjectIdentifier: Int] = [:]
        var now = OperationInstant(offset: .zero)
        var freeLanes: [Int] = []
        var laneCount = 0
    }

    let knobs: QueueRecording
    private let book = Locked(Book())

    var clock: any OperationClock { knobs.clock }

    init(_ knobs: QueueRecording) { self.knobs = knobs }

    func pass(to moment: OperationInstant) {
        // The thread with the earlier moment may be the later one at the lock.
        book.withLock { $0.now = max($0.now, moment) }
    }

    func note(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        switch change {
        case .placed(let slot, let entry, from: .entering):
            if let dropped = enter(slot, entry) { journal.later { withExtendedLifetime(dropped) {} } }
        case .placed(let slot, let entry, from: _): book.withLock { $0.move(slot, to: entry.stage) }
        case .ended(let slot, _, let ending):
            guard let number = book.withLock({ $0.end(slot, ending) }) else { return }
            journal.later { [self] in giveName(number) }
        case .rested, .wentOn, .width, .suspension, .closing: break
        }
    }

    /// Begins a page; returns the operation of one that gives way to it.
    @discardableResult
    func enter(_ slot: QueueMachine.Slot, _ entry: QueueMachine.Entry) -> Operation? {
        book.withLock { $0.enter(slot, entry, limit: knobs.limit) }
    }

    func link(_ operation: Operation, to dependencies: [Operation]) {
        book.withLock { book in
            guard let number = book.number(of: operation) else { return }
            let others = dependencies.compactMap { book.number(of: $0) }
            book.pages[number]?.run.dependencies = others
        }
    }

    func stamp(_ slot: QueueMachine.Slot) -> HandlerStamp? {
        let now = clock.now
        return book.withLock { book in
            guard let number = book.bySlot[slot] else { return nil }
            book.pages[number]?.run.handlerEnqueued = now
            return HandlerStamp(recorder: self, number: number)
        }
    }

    func handlerBegins(_ number: Int) {
        let now = clock.now
        book.withLock { $0.pages[number]?.run.handlerBegan = now }
    }

    /// Asks an operation for its name, which may be code of the user's, and lets go of it.
    private func giveName(_ number: Int) {
        guard let operation = book.withLock({ $0.pages[number]?.operation }) else { return }
        let name = operation.displayName
        book.withLock { book in
            book.pages[number]?.run.name = name
            book.pages[number]?.operation = nil
        }
    }

    /// Nothing more is recorded: those that have not ended are asked for their names now, and let go of.
    func close() {
        let rest = book.withLock { $0.pages.filter { $0.value.operation != nil } }
        for number in rest.keys { giveName(number) }
        withExtendedLifetime(rest) {}
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
            // It was to begin, and then got one more dependency.
            freeLane(of: number)
            pages[number]?.run.started = nil
            pages[number]?.run.lane = nil
        }
    }

    /// Returns the number of the one that ended.
    fileprivate mutating func end(_ slot: QueueMachine.Slot, _ ending: LifecycleMachine.Ending) -> Int? {
        guard let number = bySlot.removeValue(forKey: slot) else { return nil }
        count(number)
        freeLane(of: number)
        pages[number]?.stage = .free
        pages[number]?.run.ended = now
        pages[number]?.run.ending = QueueEntry.Ending(ending)
        return number
    }

    /// Those that were freed are not mistaken for others at their address.
    fileprivate func number(of operation: Operation) -> Int? {
        guard let number = byOperation[ObjectIdentifier(operation.originalOrSelf)] else { return nil }
        return pages[number]?.reference?.isAlive == true ? number : nil
    }

    /// Adds the time since the last change to where it was spent; returns the stage of that time.
    @discardableResult
    private mutating func count(_ number: Int) -> QueueMachine.Stage? {
        guard let page = pages[number] else { return nil }
        let time = page.since.duration(to: now)
        switch page.stage {
        case .entering, .waiting: pages[number]?.run.waitingForDependencies += time
        case .held: pages[number]?.run.held += time
        case .ready, .dealt: pages[number]?.run.waitingForPlace += time
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

/// Tells whether an object is still there.
final class WeakReference: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var object: Operation?
    let id: ObjectIdentifier

    /// Only asked where somebody holds what stands at that address.
    var isAlive: Bool { object != nil }

    init(_ object: Operation) {
        self.object = object
        id = ObjectIdentifier(object)
    }
}

/// What is recorded of a queue.
public struct QueueRecording: Sendable {
    /// How many operations and closures are remembered at most: 10,000 unless you set another number.
    ///
    /// The oldest give way.
    public var limit: Int
    /// The clock on which their times are read.
    public var clock: any OperationClock

    /// Sets what is recorded.
    public init(limit: Int = 10_000, clock: any OperationClock = .system) {
        self.limit = max(limit, 1)
        self.clock = clock
    }
}

/// Whether what a queue does is recorded: a look at one atomic where it is not.
final class RecordingSwitch: Sendable {
    private let isOn = Atomic(false)
    private let present = Locked<QueueRecorder?>(nil)

    /// The recorder that is at work.
    var recorder: QueueRecorder? {
        guard isOn.load(ordering: .relaxed) else { return nil }
        return present.withLock { $0 }
    }

    /// The recorder that is at work, or the last one that was.
    var lastRecorder: QueueRecorder? { present.withLock { $0 } }

    var isRecording: Bool { isOn.load(ordering: .relaxed) }

    /// The present moment for what is recorded next; asked for outside the queue's lock, since the clock is the user's.
    var moment: RecordedMoment? { recorder.map { RecordedMoment(recorder: $0, moment: $0.clock.now) } }

    func start(_ recorder: QueueRecorder) -> QueueRecorder? {
        let old = present.withLock { exchange(&$0, with: recorder) }
        isOn.store(true, ordering: .relaxed)
        return old
    }

    func stop() { isOn.store(false, ordering: .relaxed) }
}

/// A moment on its way to the recorder.
struct RecordedMoment {
    let recorder: QueueRecorder
    let moment: OperationInstant

    /// Under the queue's lock: what is recorded from now on happened at that moment.
    func pass() { recorder.pass(to: moment) }
}

/// Where an operation stands whose handler is about to be called.
struct RecordedPlace {
    let engine: QueueEngine
    let slot: QueueMachine.Slot

    func stamp() -> HandlerStamp? { engine.recording.recorder?.stamp(slot) }
}

/// Notes when the handler of an operation began.
struct HandlerStamp: Sendable {
    let recorder: QueueRecorder
    let number: Int

    func handlerBegins() { recorder.handlerBegins(number) }
}

extension ManagedOperation.Core {
    /// The place in the queue, if what that does is recorded.
    var recordedPlace: RecordedPlace? {
        guard let host, slot >= 0, host.recording.isRecording else { return nil }
        return RecordedPlace(engine: host, slot: slot)
    }
}

extension QueueEngine {
    /// Notes what an operation waited for, just before it begins: afterwards nobody knows.
    func recordLinks(of operation: Operation) {
        guard let recorder = recording.recorder else { return }
        recorder.link(operation, to: operation.dependencies.map(\.behindGate))
    }

    func setRecording(_ knobs: QueueRecording?) {
        let recorder = knobs.map { QueueRecorder($0) }
        let now = recorder?.clock.now
        var old: QueueRecorder?
        var stopped: QueueRecorder?
        let calls = applySettled { state, _ -> [@Sendable () -> Void] in
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
        withExtendedLifetime(old) {}
    }
}

extension QueueManager {
    /// Whether and how what runs when is written down; nil, as from the start, for not at all.
    ///
    /// Setting it begins anew. Set to nil, what was recorded so far stays readable.
    public var recording: QueueRecording? {
        get { engine.recording.recorder?.knobs }
        set { engine.setRecording(newValue) }
    }

    /// What ran when since the recording was switched on; empty if it never was.
    public var record: QueueRecord {
        engine.recording.lastRecorder?.record(of: name) ?? QueueRecord(queue: name, runs: [])
    }
}
