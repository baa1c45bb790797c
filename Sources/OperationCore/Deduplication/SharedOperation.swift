// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One asker's share in a run: an operation of its own, with the outcome of all.
///
/// Made by ``SharedOperations/operation(for:make:)``. It has its own handlers, callback queue, timeout and owner.
/// Canceling it ends only this share. When the last share is canceled, the run is canceled, too, and that share ends
/// when the body of the run has wound down.
///
/// It joins the run when it is started, and ends when the run has ended. While it waits for a run that executes
/// elsewhere or has not begun, it takes no slot of a ``QueueManager``. In an `OperationQueue` it keeps its place. If
/// the run executes in the slot of a share, that share keeps the slot until the run has ended, even if the share is
/// canceled. The run and its shares keep each other alive until the run ends.
public final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: nothing in it changes but the share, which is behind its lock.

    /// The ways to the run, which know its key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        /// Gives up the share.
        ///
        /// If no other operation shares the run, cancels the run.
        let leave: @Sendable (SharedOperation) -> ShareDeparture
        /// The run that the operation shares; nil if it shares none, or if the run is being made.
        let run: @Sendable (SharedOperation) -> ManagedOperation?
    }

    private struct State {
        var share: Share?
        var hasBegun = false
        /// Whether the operation is joining the run.
        var isJoining = false
        /// Whether the operation was canceled after it began.
        var isLeaving = false
        /// The number of threads that are giving up the share.
        ///
        /// If the operation joined meanwhile, it leaves once more.
        var leavers = 0
        /// Whether the operation gave up its share, or was notified of the end of the run.
        ///
        /// Until then it may not end.
        var isOut = false
        /// The run after which the operation ends.
        var run: ManagedOperation?
    }

    private let work: Locked<State>

    init(_ share: Share) {
        work = Locked(State(share: share))
        super.init()
    }

    /// Always true, because the last share ends with the run, and so does a share in whose slot the run executes.
    ///
    /// The other shares end immediately when they are canceled.
    public override var windsDownAfterCancellation: Bool { true }

    override var sharedRun: ManagedOperation? { work.withLock { $0.share }?.run(self) }

    /// Joins the run of the key, or begins it.
    public override func main() {
        let share = work.withLock { work -> Share? in
            guard let share = work.share else { return nil }
            (work.hasBegun, work.isJoining) = (true, true)
            return share
        }
        // The operation was canceled before it joined, so it asks for nothing.
        guard let share else { return bodyDidReturn() }
        share.join(self)
        let isLeaving = work.withLock { work in
            work.isJoining = false
            return work.isLeaving
        }
        // Another thread canceled the operation, perhaps just before it joined.
        if isLeaving { leave() }
    }

    /// Gives the share up.
    public override func didCancel(because cause: CancellationCause) {
        // If the operation has not begun, `main()` comes later, finds no share, and ends it.
        if work.withLock({ $0.hasBegun }) { leave() }
    }

    private func leave() {
        let share = work.withLock { work in
            work.isLeaving = true
            work.leavers += 1
            return work.share
        }
        let departure = share?.leave(self) ?? .notSharing
        let (old, run) = work.withLock { work -> (Share?, ManagedOperation?) in
            switch departure {
            case .notSharing: break
            case .left(after: let run):
                work.isOut = true
                if let run { work.run = run }
            }
            work.leavers -= 1
            // The thread that joins gives up what it joined, and then ends the operation. If the operation shares no
            // run and was not notified of an end, another thread is about to notify it.
            guard work.leavers == 0, !work.isJoining, work.isOut, work.share != nil else { return (nil, nil) }
            return (exchange(&work.share, with: nil), exchange(&work.run, with: nil))
        }
        guard old != nil else { return }
        guard let run else { return bodyDidReturn() }
        run.whenEnded { [self] in bodyDidReturn() }
    }

    package override func releaseBody() {
        // An operation that is canceled after it began needs the share once more.
        let isCancelled = isCancelled
        let share = work.withLock { work in
            work.hasBegun && isCancelled ? nil : exchange(&work.share, with: nil)
        }
        withExtendedLifetime(share) {}
    }

    /// Takes the outcome of the run, and ends this operation when the run has ended.
    func end(with outcome: OperationOutcome<ResultType, ErrorType>, of run: ManagedOperation) {
        let (old, isLeaving) = work.withLock { work in
            work.isOut = true
            return (exchange(&work.run, with: run), work.isLeaving)
        }
        withExtendedLifetime(old) {}
        // The operation was canceled after the run had its outcome, and could not give up its share.
        if isLeaving { leave() }
        if case .cancelled(let cause) = outcome { cancelIfUndecided(because: cause) }
        run.whenEnded { [self] in
            switch outcome {
            case .success(let result): finishIfUndecided(.success(result))
            case .failure(let error): finishIfUndecided(.failure(error))
            case .cancelled: break
            }
            forget(run)
        }
    }

    /// Keeps the slot of a ``QueueManager`` for the run that was started in it, or gives the slot up if the run has not
    /// begun: it may need the slot for an operation for which it waits.
    func runDidStart(_ run: ManagedOperation) {
        if run.isFinished { return }
        // A run that shares another run has begun, but only waits.
        guard run.isExecuting, run.waitReason?.kind != .sharedRun else {
            run.core.withLock { $0.extras?.placeKeeper = nil }
            return restForRun()
        }
        guard placeHost != nil else { return }
        let old = work.withLock { exchange(&$0.run, with: run) }
        withExtendedLifetime(old) {}
        // The end of the run may have been reported before.
        if run.isFinished { forget(run) }
    }

    private func forget(_ run: ManagedOperation) {
        let old = work.withLock { $0.run === run ? exchange(&$0.run, with: nil) : nil }
        withExtendedLifetime(old) {}
    }

    /// Gives up the slot while a run continues elsewhere.
    func restForRun() { rest(1, because: .sharedRun) }

    private func finishIfUndecided(_ result: Result<ResultType, ErrorType>) {
        // Its share may have ended before, without a word about it.
        if core.withLock({ $0.machine.ending == nil }) { finish(with: result) }
    }
}

/// How an operation gave up its share in a run.
enum ShareDeparture {
    /// It shares no run: it gave up its share before, or the run has just ended.
    case notSharing
    /// It has left, and ends after this run if that is not nil.
    case left(after: ManagedOperation?)
}

/// How ``SharedOperations`` run and keep what is shared.
public struct SharingOptions: Sendable {
    /// How long after the end of a successful run its result is given to those who ask then: not at all by default.
    public var timeToLive: Duration = .zero
    /// The clock on which that is counted: the system's by default.
    public var clock: any OperationClock = .system
    /// Where the run runs: with the first asker by default.
    public var place: SharedRunPlace = .firstAsker

    var keepsResults: Bool { timeToLive > .zero }

    /// Makes options that keep nothing and run with the first asker; change what you want otherwise.
    public init() {}
}

/// Where the run of ``SharedOperations`` runs.
public struct SharedRunPlace: Sendable {
    enum Kind {
        case firstAsker
        case manager(QueueManager)
        case foundation(OperationQueue)
    }

    let kind: Kind

    /// The run is started on the thread, and so in the queue, in which the first asker is started.
    ///
    /// If it cannot begin then, it begins later outside the queue, and the asker gives up its slot of a
    /// ``QueueManager`` meanwhile.
    public static var firstAsker: Self { Self(kind: .firstAsker) }

    /// The run is added to this queue.
    ///
    /// It may be the queue of the askers, because they need no slots while they wait.
    public static func queue(_ queue: QueueManager) -> Self { Self(kind: .manager(queue)) }

    /// The run is added to this queue.
    ///
    /// It must not be the queue of the askers, because they keep their places in an `OperationQueue` while they wait.
    public static func queue(_ queue: OperationQueue) -> Self { Self(kind: .foundation(queue)) }
}

/// Who shares which run, as a value: at most one run for each key, and the askers that wait for it.
///
/// ```text
///         join                 didMake                 runEnded
/// (none) ──────▶ making ───────────────▶ running ─────────────────▶ kept ──▶ (none)
///                   │ last leave            │ last leave, or not to be kept    expired, forgotten
///                   ▼                       ▼
///                 (none)                  (none), and the next run waits for the end of a cancelled one
/// ```
///
/// It knows nothing of locks or threads. What falls out of it goes to the trash, to be let go of outside the lock.
package struct FlightTable<Key: Hashable, Asker: AnyObject, Run: AnyObject> {
    private enum Phase {
        /// An asker makes the run, outside the lock.
        case making
        case running(Run)
        /// It succeeded, and its result is for those who come before that moment.
        case kept(Run, until: OperationInstant, (any OperationTimer)?)
    }

    private struct Flight {
        let number: UInt64
        var phase = Phase.making
        /// The highest priority of those who came.
        var urgency: Int
        var askers: [ObjectIdentifier: (order: Int, asker: Asker)] = [:]
        var lastOrder = 0

        mutating func add(_ asker: Asker) {
            lastOrder += 1
            askers[ObjectIdentifier(asker)] = (lastOrder, asker)
        }
    }

    private struct Line {
        var flight: Flight?
        /// Runs that were cancelled and have not ended: the next one comes after them.
        var predecessors: [Run] = []
    }

    private var lines: [Key: Line] = [:]
    private var lastNumber: UInt64 = 0
    private var trash: [Any] = []

    package init() {}

    /// How many keys something is known of.
    package var count: Int { lines.count }

    /// What fell out since this was asked last.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }
}

// Askers.
extension FlightTable {
    package enum JoinAction {
        /// Make the run and say so with `didMake`.
        case make(UInt64)
        /// There is a run: its end will be told.
        case wait
        /// As `wait`, but the run is more urgent now.
        case raise(Run, UInt64)
        /// The run ended before: its result is this one's.
        case take(Run)
    }

    /// An asker was started.
    package mutating func join(_ asker: Asker, _ key: Key, urgency: Int, now: OperationInstant) -> JoinAction {
        switch lines[key]?.flight?.phase {
        case .kept(let run, let end, let timer):
            if now < end { return .take(run) }
            trash += [run, timer as Any]
            return begin(asker, key, urgency)
        case nil: return begin(asker, key, urgency)
        case .making: return wait(asker, key, urgency, for: nil)
        case .running(let run): return wait(asker, key, urgency, for: run)
        }
    }

    private mutating func begin(_ asker: Asker, _ key: Key, _ urgency: Int) -> JoinAction {
        lastNumber += 1
        var flight = Flight(number: lastNumber, urgency: urgency)
        flight.add(asker)
        lines[key, default: Line()].flight = flight
        return .make(lastNumber)
    }

    private mutating func wait(_ asker: Asker, _ key: Key, _ urgency: Int, for run: Run?) -> JoinAction {
        lines[key]?.flight?.add(asker)
        guard let number = lines[key]?.flight?.number, urgency > lines[key]?.flight?.urgency ?? .max else {
            return .wait
        }
        lines[key]?.flight?.urgency = urgency
        return run.map { .raise($0, number) } ?? .wait
    }

    /// The run that an asker shares; nil if it shares none, or if the run is being made.
    package func run(of asker: Asker, _ key: Key) -> Run? {
        guard let flight = lines[key]?.flight, flight.askers[ObjectIdentifier(asker)] != nil,
            case .running(let run) = flight.phase
        else { return nil }
        return run
    }

    package enum LeaveAction {
        /// The asker shares no run: it left before, or `runEnded` has returned it.
        case none
        /// The asker has left. There is no run to be canceled.
        case left
        /// The asker has left, and was the last one: cancel the run.
        case cancel(Run)
    }

    /// An asker was canceled.
    package mutating func leave(_ asker: Asker, _ key: Key) -> LeaveAction {
        guard let left = lines[key]?.flight?.askers.removeValue(forKey: ObjectIdentifier(asker)) else { return .none }
        trash.append(left.asker)
        guard let flight = lines[key]?.flight, flight.askers.isEmpty else { return .left }
        lines[key]?.flight = nil
        guard case .running(let run) = flight.phase else {
            removeIfEmpty(key)
            return .left
        }
        lines[key]?.predecessors.append(run)
        return .cancel(run)
    }
}

// The run.
extension FlightTable {
    /// The run was made: returns those it is to wait for, or nil if all askers left meanwhile.
    package mutating func didMake(_ run: Run, _ key: Key, _ number: UInt64) -> [Run]? {
        guard lines[key]?.flight?.number == number else { return nil }
        lines[key]?.flight?.phase = .running(run)
        return lines[key]?.predecessors
    }

    /// The highest priority of those who asked for this run; nil if it is over.
    package func urgency(_ key: Key, _ number: UInt64) -> Int? {
        guard let flight = lines[key]?.flight, flight.number == number else { return nil }
        return flight.urgency
    }

    /// The run has an outcome: returns the askers to be told, in the order in which they came.
    package mutating func runEnded(
        _ run: Run, _ key: Key, _ number: UInt64, isCancelled: Bool, keepUntil end: OperationInstant?
    ) -> [Asker] {
        guard lines[key]?.flight?.number == number, case .running = lines[key]?.flight?.phase else { return [] }
        let askers = exchange(&lines[key, default: Line()].flight, with: nil)?.askers.values ?? [:].values
        if isCancelled { lines[key]?.predecessors.append(run) }
        if let end {
            lines[key]?.flight = Flight(number: number, phase: .kept(run, until: end, nil), urgency: 0)
        }
        removeIfEmpty(key)
        return askers.sorted { $0.order < $1.order }.map(\.asker)
    }

    /// A run that was cancelled has ended.
    package mutating func runFinished(_ run: Run, _ key: Key) {
        lines[key]?.predecessors.removeAll { $0 === run }
        trash.append(run)
        removeIfEmpty(key)
    }
}

// What is kept.
extension FlightTable {
    /// Stores what will call `expire`; false if there is nothing to expire any more.
    package mutating func keep(_ timer: any OperationTimer, _ key: Key, _ number: UInt64) -> Bool {
        guard lines[key]?.flight?.number == number, case .kept(let run, let end, nil) = lines[key]?.flight?.phase else {
            return false
        }
        lines[key]?.flight?.phase = .kept(run, until: end, timer)
        return true
    }

    /// The time of a result is over.
    package mutating func expire(_ key: Key, _ number: UInt64) {
        guard lines[key]?.flight?.number == number, let timer = forget(key) else { return }
        trash.append(timer)
    }

    /// Lets go of a result; returns the timer to be cancelled.
    package mutating func forget(_ key: Key) -> (any OperationTimer)? {
        guard case .kept(let run, _, let timer) = lines[key]?.flight?.phase else { return nil }
        lines[key]?.flight = nil
        trash.append(run)
        removeIfEmpty(key)
        return timer
    }

    /// Lets go of all results; returns the timers to be cancelled.
    package mutating func forgetAll() -> [any OperationTimer] {
        lines.keys.compactMap { forget($0) }
    }

    private mutating func removeIfEmpty(_ key: Key) {
        guard let index = lines.index(forKey: key), lines[index].value.flight == nil,
            lines[index].value.predecessors.isEmpty
        else { return }
        // With the key, which may be an object, too.
        trash.append(lines.remove(at: index))
    }
}

extension CancellationCause.Code {
    /// All who had asked for a shared run were cancelled.
    public static let allAskersLeft = Self("allAskersLeft")
    /// The queue in which a shared run was to run did not take it.
    public static let runRefused = Self("runRefused")
    /// Another operation with the same key is present, and is kept.
    public static let alreadyPresent = Self("alreadyPresent")
}

extension CancellationCause {
    static func allAskersLeft(_ last: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .allAskersLeft,
            message: "The operation was cancelled because all who had asked for its result were cancelled.",
            underlyingCause: last)
    }

    static func runRefused(_ error: QueueError) -> CancellationCause {
        CancellationCause(
            code: .runRefused,
            message:
                "The operation was cancelled because the queue in which it was to run did not take it: \(error.message)",
            underlyingError: error)
    }

    static func alreadyPresent(_ name: String, queue: String) -> CancellationCause {
        CancellationCause(
            code: .alreadyPresent,
            message: "The operation was cancelled because \(name) is in queue \(queue) with the same key, and is kept. "
                + "Add it with the policy replace or append if it is to run.")
    }

    static func replaced(_ name: String, queue: String) -> CancellationCause {
        CancellationCause(
            code: .replaced,
            message: "The operation was cancelled because \(name) was added to queue \(queue) with the same key "
                + "and took its place.")
    }
}
