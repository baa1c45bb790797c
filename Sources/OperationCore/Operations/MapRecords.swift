// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What an operation knows of one operation that is mapped from it.
final class MapRecord: @unchecked Sendable {
    // Sendable: `mapped` is written once, before another thread can reach the record, and loading a weak reference is
    // atomic. Everything else is only touched under the lock of the original.

    weak var mapped: ManagedOperation?
    /// Whether the mapped operation itself was cancelled, and with it the original.
    var isCancelled = false
    /// How the mapped operation ended, once its outcome is converted.
    var ending: LifecycleMachine.Ending?
    /// Whether the mapped operation itself was started.
    var wasStarted = false
    /// Whether the mapped operation was asked if it is ready, as a queue of Foundation does when the operation is
    /// added.
    var wasAsked = false
    /// Whether it was asked after its start.
    var wasAskedAfterStart = false
    var readiness = ReadinessReports()
}

/// All operations that are mapped from one operation, in the order in which they were made.
///
/// Not Sendable on purpose: only touched under the lock of the original, and afterwards by the one thread that ended it.
final class MapRecords {
    private(set) var all: [MapRecord] = []
    /// The number of operations that were told, or are being told, to convert the outcome.
    private var toldCount = 0
    /// The number of records at which those of freed operations are removed.
    private var pruningCount = 16
    /// Whether a thread is converting outcomes.
    ///
    /// It looks afterwards whether operations were added meanwhile.
    var telling = RepeatFlag()
    /// The mapped operation that was given to the queue or group in place of the original, if one was.
    var added: MapRecord?
    /// The started operations, which are kept alive until the original has ended.
    private var started: [ManagedOperation] = []

    var hasUntold: Bool { toldCount < all.count }
    var alive: [ManagedOperation] { all.compactMap(\.mapped) }
    var wasAnyAsked: Bool { all.contains { $0.wasAsked } }

    /// Adds a record.
    ///
    /// The caller must release outside the lock what is appended to `met`.
    func append(_ record: MapRecord, met: inout [ManagedOperation]) {
        if toldCount == 0, all.count >= pruningCount {
            all.removeAll { record in
                guard let mapped = record.mapped else { return true }
                met.append(mapped)
                return false
            }
            pruningCount = max(all.count * 2, 16)
        }
        all.append(record)
    }

    /// Returns the next operations to be told.
    ///
    /// If there are none, ends the telling and returns nil.
    func takeUntold() -> [ManagedOperation]? {
        guard hasUntold else {
            telling.stop()
            return nil
        }
        defer { toldCount = all.count }
        return all[toldCount...].compactMap(\.mapped)
    }

    /// Notes that the caller itself tells the operation that was added last.
    func skipUntold() { toldCount = all.count }

    /// Keeps a started operation alive until the original has ended.
    func keep(_ mapped: ManagedOperation) { started.append(mapped) }

    /// The operations that a queue of Foundation holds and has not started.
    var unstarted: [ManagedOperation] {
        all.compactMap { $0.wasAsked && !$0.wasStarted ? $0.mapped : nil }
    }
}

extension ManagedOperation.Core {
    /// Returns what is known of mapped operations, and makes the records if there are none.
    fileprivate mutating func needMaps() -> MapRecords {
        let extras = need()
        if let maps = extras.maps { return maps }
        let made = MapRecords()
        extras.maps = made
        return made
    }

    /// Notes which object was given to the queue or group.
    mutating func noteAdded(_ operation: ManagedOperation) {
        if let record = operation.mapRecord { extras?.maps?.added = record }
    }

    /// Whether a queue of Foundation may hold the operation, or one that is mapped from it.
    var mayBeInFoundationQueue: Bool { wasAskedForReadiness || extras?.maps?.wasAnyAsked == true }
}

// Mapped operations as their original sees them.
extension ManagedOperation {
    /// The operations that are mapped from this one and still alive.
    final var maps: [ManagedOperation] { core.withLock { $0.extras?.maps?.alive } ?? [] }

    /// Registers a mapped operation, and lets it convert the outcome immediately if the others have already done so.
    ///
    /// It is called once, in the `init` of the mapped operation.
    final func register(_ mapped: ManagedOperation, _ record: MapRecord) {
        record.mapped = mapped
        mapped.copyFoundationLevel()
        var met: [ManagedOperation] = []
        let isLate = core.withLock { core -> Bool in
            if core.machine.isFinished { return true }
            let maps = core.needMaps()
            maps.append(record, met: &met)
            guard core.machine.isTold, !maps.telling.isRunning else { return false }
            maps.skipUntold()
            return true
        }
        withExtendedLifetime(met) {}
        if isLate { mapped.convertOutcome() }
    }

    /// Lets the mapped operations convert the outcome, one after the other, in the order in which they were made.
    final func tellMaps() {
        // A conversion is user code, and may wait for operations that became ready.
        WorkerSeat.flushCurrent()
        while let untold = core.withLock({ $0.extras?.maps?.takeUntold() }) {
            for mapped in untold { BodyWait.within(self) { mapped.convertOutcome() } }
        }
    }

    /// Runs the completion blocks of the mapped operations, after the original has ended.
    static func runCompletions(of maps: MapRecords) {
        for mapped in maps.alive {
            mapped.runCompletion(
                mapped.storage.withLock { core in core.extras.flatMap { exchange(&$0.completionBlock, with: nil) } })
        }
    }

    /// Handles the start of a mapped operation, by a caller or by the queue of Foundation that holds it.
    final func begin(through mapped: ManagedOperation, _ record: MapRecord, onlyIfNeeded: Bool) {
        let start = mapped.startOfMap(record, isByQueue: !onlyIfNeeded)
        if start == .beside {
            if !onlyIfNeeded { mapped.reportStartBesideQueue() }
            return
        }
        let (wasStarted, isSuspended, isTaken) = core.withLock { core in
            let wasStarted = exchange(&record.wasStarted, with: true)
            if !wasStarted, !core.machine.isFinished { core.extras?.maps?.keep(mapped) }
            let isTaken = core.host != nil || core.parent != nil
            return (wasStarted, core.machine.state == .suspended, isTaken && core.extras?.maps?.added === record)
        }
        if !onlyIfNeeded, isSuspended {
            resumeExecution()
            return
        }
        if !onlyIfNeeded, isTaken { return mapped.reportStartBesideQueue() }
        if !onlyIfNeeded, wasStarted { return mapped.reportSecondStart() }
        beginUnlessTaken(isByQueue: start == .byQueue)
    }
}

// A mapped operation as it sees itself.
extension ManagedOperation {
    /// Where the start of a mapped operation comes from.
    enum StartOfMap {
        /// The queue of Foundation that holds it.
        case byQueue
        /// A caller.
        case manual
        /// A caller, although a queue of Foundation holds the operation and will start it.
        case beside
    }

    /// Gives a mapped operation its outcome, unless it has one, and calls its handlers; returns whether it took the outcome.
    final func conclude(_ ending: LifecycleMachine.Ending, _ box: OutcomeBox?, _ cause: CancellationCause?) -> Bool {
        var feeds: [StateFeed] = []
        var state = OperationState.finished
        var final = ending
        let (isTaken, told) = storage.withLock { core -> (Bool, Told) in
            let isTaken = core.machine.adopt(ending)
            if isTaken { (core.box, core.cause) = (box, cause) }
            final = core.machine.ending ?? ending
            state = core.machine.state
            feeds = core.extras?.feeds.takeAll() ?? []
            return (isTaken, core.takeTold())
        }
        if let mapRecord { core.withLock { _ in mapRecord.ending = final } }
        for feed in feeds { feed.conclude(state)?() }
        tell(told)
        return isTaken
    }

    /// Keeps the outcome that a caller gave a mapped operation, in place of the converted one.
    final func finishMap(as ending: LifecycleMachine.Ending, keeping box: OutcomeBox) -> Bool {
        let (action, told) = storage.withLock { core in
            let action = core.machine.finish(ending, style: .atOnce)
            guard action == .keep else { return (action, Told()) }
            core.box = box
            return (action, core.takeTold())
        }
        switch action {
        case .keep:
            tell(told)
            return true
        case .refuseCancelled: reportFinishAfterCancellation()
        case .tellAndEnd, .awaitTelling, .end, .refuseSecond: reportSecondFinish()
        }
        return false
    }

    /// Keeps the error from the rule of a dependency until the original is canceled because of it.
    final func failMapByRule(keeping box: OutcomeBox) -> Bool {
        storage.withLock { core in
            guard core.machine.failByRule() == .keep else { return false }
            core.box = box
            return true
        }
    }
}

extension Operation {
    /// The operation itself, or the original of a mapped operation, so that pictures and recordings treat both as one.
    var originalOrSelf: Operation { (self as? ManagedOperation)?.life ?? self }
}
