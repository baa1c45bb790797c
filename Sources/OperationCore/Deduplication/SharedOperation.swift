// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An operation that shares one run with other operations, and ends with the outcome of that run.
///
/// To get a shared operation, call ``SharedOperations/operation(for:make:)``. The operation has its own handlers,
/// callback queue, timeout and owner. Canceling the operation ends only its own share. When the last share is canceled,
/// the run is also canceled, and that share ends when the body of the run has wound down.
///
/// A shared operation joins the run when it is started, and ends when the run has ended. While it waits for a run that
/// executes elsewhere or has not begun, it occupies no slot in a ``QueueManager``. In an `OperationQueue`, the
/// operation keeps its slot. If the run executes in the slot of a share, that share keeps the slot until the run has
/// ended, even if the share is canceled. The run and its shares keep each other alive until the run ends.
public final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: nothing in it changes but the share, which is behind its lock.

    /// The closures that lead to the run of the operation's key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        /// Gives up the share, and cancels the run if no other operation shares it.
        let leave: @Sendable (SharedOperation) -> ShareDeparture
        /// Returns the run that the operation shares, or `nil` if it shares none or the run is being made.
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

    /// A Boolean value that is always `true`, because the last share ends with the run.
    ///
    /// If the run executes in the slot of a share, that share also ends with the run. The other shares end immediately
    /// when they are canceled.
    public override var windsDownAfterCancellation: Bool { true }

    override var sharedRun: ManagedOperation? { work.withLock { $0.share }?.run(self) }

    /// Joins the run for the key, or starts a run if there is none.
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

    /// Gives up this operation's share of the run.
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
        work.release { work in
            work.hasBegun && isCancelled ? nil : exchange(&work.share, with: nil)
        }
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

    /// Keeps the slot of a ``QueueManager`` for the run that was started in it, or gives up the slot if the run has not
    /// begun.
    ///
    /// A run that has not begun may need the slot for an operation for which it waits.
    func runDidStart(_ run: ManagedOperation) {
        if run.isFinished { return }
        // A run that shares another run has begun, but only waits.
        guard run.isExecuting, run.waitReason?.kind != .sharedRun else {
            run.core.withLock { $0.extras?.placeKeeper = nil }
            return restForRun()
        }
        guard placeHost != nil else { return }
        work.release { exchange(&$0.run, with: run) }
        // The end of the run may have been reported before.
        if run.isFinished { forget(run) }
    }

    private func forget(_ run: ManagedOperation) {
        work.release { $0.run === run ? exchange(&$0.run, with: nil) : nil }
    }

    /// Gives up the slot while a run continues elsewhere.
    func restForRun() { rest(1, because: .sharedRun) }

    private func finishIfUndecided(_ result: Result<ResultType, ErrorType>) {
        // The operation may have its outcome already. Finishing it again would cause a notice.
        if core.withLock({ $0.machine.ending == nil }) { finish(with: result) }
    }
}

/// The way in which an operation gave up its share in a run.
enum ShareDeparture {
    /// The operation shares no run, because it gave up its share before or the run has just ended.
    case notSharing
    /// The operation has left, and ends after this run if there is one.
    case left(after: ManagedOperation?)
}

/// Options that determine where the runs of ``SharedOperations`` execute and how long their results are kept.
public struct SharingOptions: Sendable {
    /// The duration for which the result of a successful run is kept for operations that start later.
    ///
    /// The default is zero, which keeps no results.
    public var timeToLive: Duration = .zero
    /// The clock that measures ``timeToLive``.
    ///
    /// The default is the system's monotonic clock.
    public var clock: any OperationClock = .system
    /// The place where the run executes.
    ///
    /// The default is ``SharedRunPlace/firstAsker``.
    public var place: SharedRunPlace = .firstAsker

    var keepsResults: Bool { timeToLive > .zero }

    /// Creates options with the default values.
    public init() {}
}

/// The place where the runs of ``SharedOperations`` execute.
public struct SharedRunPlace: Sendable {
    enum Kind {
        case firstAsker
        case manager(QueueManager)
        case foundation(OperationQueue)
    }

    let kind: Kind

    /// The run executes on the thread that starts the first operation of the run, and thus in that operation's queue.
    ///
    /// If the run cannot begin immediately, it begins later, outside the queue. In the meantime, the operation occupies
    /// no slot in a ``QueueManager``.
    public static var firstAsker: Self { Self(kind: .firstAsker) }

    /// The run is added to a queue.
    ///
    /// The operations that share the run may be in the same queue, because they need no slots while they wait.
    public static func queue(_ queue: QueueManager) -> Self { Self(kind: .manager(queue)) }

    /// The run is added to an `OperationQueue`.
    ///
    /// The operations that share the run must not be in the same queue, because they keep their slots while they wait.
    public static func queue(_ queue: OperationQueue) -> Self { Self(kind: .foundation(queue)) }
}

/// The runs of all keys and the askers that share them, as a value, with at most one run for each key.
///
/// ```text
///         join                 didMake                 runEnded
/// (none) ──────▶ making ───────────────▶ running ─────────────────▶ kept ──▶ (none)
///                   │ last leave            │ last leave, or not to be kept    expired, forgotten
///                   ▼                       ▼
///                 (none)                  (none), and the next run waits for the end of a cancelled one
/// ```
///
/// The table knows no locks and no threads. Removed values go to the trash, to be released outside the lock.
package struct FlightTable<Key: Hashable, Asker: AnyObject, Run: AnyObject> {
    private enum Phase {
        /// An asker makes the run, outside the lock.
        case making
        case running(Run)
        /// The run succeeded, and its result is for askers that come before that moment.
        case kept(Run, until: OperationInstant, (any OperationTimer)?)
    }

    private struct Flight {
        let number: UInt64
        var phase = Phase.making
        /// The highest priority of all askers that came.
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
        /// Canceled runs that have not ended, after which the next run begins.
        var predecessors: [Run] = []
    }

    private var lines: [Key: Line] = [:]
    private var lastNumber: UInt64 = 0
    private var trash: [Any] = []

    package init() {}

    /// The number of keys in the table.
    package var count: Int { lines.count }

    /// Takes out the values that were removed since the last call.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }
}

// Askers.
extension FlightTable {
    package enum JoinAction {
        /// Make the run, and then call `didMake`.
        case make(UInt64)
        /// Wait for the end of the run, which will be reported.
        case wait
        /// Wait for the end of the run, and raise its priority.
        case raise(Run, UInt64)
        /// Take the result of the run, which has ended.
        case take(Run)
    }

    /// Adds an asker that was started.
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

    /// Returns the run that an asker shares, or `nil` if it shares none or the run is being made.
    package func run(of asker: Asker, _ key: Key) -> Run? {
        guard let flight = lines[key]?.flight, flight.askers[ObjectIdentifier(asker)] != nil,
            case .running(let run) = flight.phase
        else { return nil }
        return run
    }

    package enum LeaveAction {
        /// The asker shares no run: it left before, or `runEnded` has returned it.
        case none
        /// The asker has left, and there is no run to cancel.
        case left
        /// The asker has left, and was the last one of this run, which is to be canceled.
        case cancel(Run)
    }

    /// Removes an asker that was canceled.
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
    /// Notes that the run was made, and returns the runs that must end before it begins.
    ///
    /// The result is `nil` if all askers left meanwhile.
    package mutating func didMake(_ run: Run, _ key: Key, _ number: UInt64) -> [Run]? {
        guard lines[key]?.flight?.number == number else { return nil }
        lines[key]?.flight?.phase = .running(run)
        return lines[key]?.predecessors
    }

    /// Returns the highest priority of the askers of this run, or `nil` if the run is over.
    package func urgency(_ key: Key, _ number: UInt64) -> Int? {
        guard let flight = lines[key]?.flight, flight.number == number else { return nil }
        return flight.urgency
    }

    /// Notes that the run has an outcome, and returns the askers to notify, in the order in which they came.
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

    /// Removes a canceled run that has ended.
    package mutating func runFinished(_ run: Run, _ key: Key) {
        lines[key]?.predecessors.removeAll { $0 === run }
        trash.append(run)
        removeIfEmpty(key)
    }
}

// Kept results.
extension FlightTable {
    /// Stores the timer that will call `expire`, and returns whether there is still a result to expire.
    package mutating func keep(_ timer: any OperationTimer, _ key: Key, _ number: UInt64) -> Bool {
        guard lines[key]?.flight?.number == number, case .kept(let run, let end, nil) = lines[key]?.flight?.phase else {
            return false
        }
        lines[key]?.flight?.phase = .kept(run, until: end, timer)
        return true
    }

    /// Removes a result whose time is over.
    package mutating func expire(_ key: Key, _ number: UInt64) {
        guard lines[key]?.flight?.number == number, let timer = forget(key) else { return }
        trash.append(timer)
    }

    /// Removes a result, and returns the timer to cancel.
    package mutating func forget(_ key: Key) -> (any OperationTimer)? {
        guard case .kept(let run, _, let timer) = lines[key]?.flight?.phase else { return nil }
        lines[key]?.flight = nil
        trash.append(run)
        removeIfEmpty(key)
        return timer
    }

    /// Removes all results, and returns the timers to cancel.
    package mutating func forgetAll() -> [any OperationTimer] {
        lines.keys.compactMap { forget($0) }
    }

    private mutating func removeIfEmpty(_ key: Key) {
        guard let index = lines.index(forKey: key), lines[index].value.flight == nil,
            lines[index].value.predecessors.isEmpty
        else { return }
        // The trash takes the key, too, because it may be an object.
        trash.append(lines.remove(at: index))
    }
}

extension CancellationCause.Code {
    /// All operations that had asked for a shared run were canceled.
    public static let allAskersLeft = Self("allAskersLeft")
    /// The queue for a shared run did not accept the run.
    public static let runRefused = Self("runRefused")
}

extension CancellationCause {
    static func allAskersLeft(_ last: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .allAskersLeft,
            message: "The operation was canceled because all operations that shared its result were canceled.",
            underlyingCause: last)
    }

    static func runRefused(_ error: QueueError) -> CancellationCause {
        CancellationCause(
            code: .runRefused,
            message:
                "The operation was canceled because its queue did not accept it: \(error.message)",
            underlyingError: error)
    }
}
