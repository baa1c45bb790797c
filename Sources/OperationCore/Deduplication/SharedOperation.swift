// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An operation that shares one run of its work with other operations.
///
/// To get a shared operation, call ``SharedOperations/operation(for:make:)``. Each shared operation has its own
/// handlers, callback queue, timeout and owner. If you cancel one of the operations that share a run, the run continues
/// for the others. If you cancel all of them, OperationKit cancels the run. In this case, the operation that you
/// canceled last ends only when the work has ended.
///
/// When a shared operation starts, it joins the run. The operation ends with the outcome of the run. While the
/// operation waits for work that executes elsewhere or has not begun, it occupies no slot in a ``QueueManager``. In an
/// `OperationQueue`, the operation keeps its slot. If the work executes in the slot of a shared operation, this
/// operation keeps the slot until the work has ended, even if you cancel the operation. The work and the operations
/// that share it keep each other alive until the work ends.
package final class SharedOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: only the share changes, and a lock protects it.

    /// The closures that lead to the run of the operation's key.
    struct Share: Sendable {
        let join: @Sendable (SharedOperation) -> Void
        /// Gives up the share, and cancels the run if no other operation shares it.
        let leave: @Sendable (SharedOperation) -> ShareDeparture
        /// Returns the run that the operation shares, or `nil` if it shares none or the run is being created.
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
        /// If the operation joined in the meantime, it leaves once more.
        var leavers = 0
        /// Whether the operation gave up its share, or was notified of the end of the run.
        ///
        /// The operation must not end before that.
        var isOut = false
        /// The run after which the operation ends.
        var run: ManagedOperation?
    }

    private let work: Locked<State>

    init(_ share: Share) {
        work = Locked(State(share: share))
        super.init()
    }

    /// A Boolean value that is always `true`, because a canceled operation may have to wait for the shared work.
    ///
    /// If you cancel a shared operation, it usually ends immediately. However, the last operation that shares the work
    /// ends only when the work has ended. The same is true for an operation in whose slot the work executes.
    package override var windsDownAfterCancellation: Bool { true }

    override var sharedRun: ManagedOperation? { work.withLock { $0.share }?.run(self) }

    /// Joins the run for the key, or begins a run if there is none.
    package override func main() {
        let share = work.withLock { work -> Share? in
            guard let share = work.share else { return nil }
            (work.hasBegun, work.isJoining) = (true, true)
            return share
        }
        // The operation was canceled before it joined a run, so it does not join one.
        guard let share else { return bodyDidReturn() }
        share.join(self)
        let isLeaving = work.withLock { work in
            work.isJoining = false
            return work.isLeaving
        }
        // Another thread canceled the operation, perhaps just before it joined.
        if isLeaving { leave() }
    }

    /// Stops sharing the work and cancels the work if no other operation shares it.
    package override func didCancel(because cause: CancellationCause) {
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

    /// Applies the outcome of the run, and ends this operation when the run has ended.
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
            run.core.withLock { $0.extras?.slotHolder = nil }
            return restForRun()
        }
        guard slotQueue != nil else { return }
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

/// Options that determine where ``SharedOperations`` executes work and how long it keeps results.
package struct SharingOptions: Sendable {
    /// The duration for which the result of a successful run is kept for operations that start later.
    ///
    /// The default is zero, which keeps no results.
    package var timeToLive: Duration = .zero
    /// The clock that measures ``timeToLive``.
    ///
    /// The default is the system's monotonic clock.
    package var clock: any OperationClock = .system
    /// The thread or queue on which the shared work executes.
    ///
    /// The default is ``SharedRunPlace/firstAsker``.
    package var place: SharedRunPlace = .firstAsker

    var keepsResults: Bool { timeToLive > .zero }

    package init(
        timeToLive: Duration = .zero, clock: any OperationClock = .system, place: SharedRunPlace = .firstAsker
    ) {
        (self.timeToLive, self.clock, self.place) = (timeToLive, clock, place)
    }
}

/// The thread or queue on which ``SharedOperations`` executes work.
package enum SharedRunPlace: Sendable {
    /// The work executes on the thread that starts the first operation for the key, and thus in that operation's queue.
    ///
    /// If the work cannot begin immediately, it begins later, outside the queue. While the first operation waits for
    /// the work, the operation occupies no slot in a ``QueueManager``.
    case firstAsker
    /// The work executes in a ``QueueManager``.
    ///
    /// The operations that share the work may be in the same queue, because they occupy no slots while they wait.
    case queue(QueueManager)
    /// The work executes in an `OperationQueue`.
    ///
    /// Do not add the operations that share the work to the same queue. Otherwise, they keep their slots while they
    /// wait, and the work might never begin.
    case operationQueue(OperationQueue)
}

/// The runs of all keys and the operations that share them (the participants), as a value, with at most one run for
/// each key.
///
/// ```text
///         join                 didMake                 runEnded
/// (none) ──────▶ making ───────────────▶ running ─────────────────▶ kept ──▶ (none)
///                   │ last leave            │ last leave, or not to be kept    expired, forgotten
///                   ▼                       ▼
///                 (none)                  (none), and the next run waits for the end of a cancelled one
/// ```
///
/// The table uses no locks or threads. Removed values go to the trash, and the caller releases them without holding the
/// lock.
package struct FlightTable<Key: Hashable, Participant: AnyObject, Run: AnyObject> {
    private enum Phase {
        /// A shared operation creates the run, without holding the lock.
        case making
        case running(Run)
        /// The run succeeded, and operations that start before this moment receive its result.
        case kept(Run, until: OperationInstant, (any OperationTimer)?)
    }

    private struct Flight {
        let number: UInt64
        var phase = Phase.making
        /// The highest priority of all operations that joined.
        var urgency: Int
        var participants: [ObjectIdentifier: (order: Int, participant: Participant)] = [:]
        var lastOrder = 0

        mutating func add(_ participant: Participant) {
            lastOrder += 1
            participants[ObjectIdentifier(participant)] = (lastOrder, participant)
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

    /// Removes the values from the trash and returns them.
    package mutating func takeTrash() -> [Any] { trash.isEmpty ? [] : exchange(&trash, with: []) }
}

// The operations that share a run, called participants.
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

    /// Adds a shared operation that was started.
    package mutating func join(_ participant: Participant, _ key: Key, urgency: Int, now: OperationInstant)
        -> JoinAction
    {
        switch lines[key]?.flight?.phase {
        case .kept(let run, let end, let timer):
            if now < end { return .take(run) }
            trash += [run, timer as Any]
            return begin(participant, key, urgency)
        case nil: return begin(participant, key, urgency)
        case .making: return wait(participant, key, urgency, for: nil)
        case .running(let run): return wait(participant, key, urgency, for: run)
        }
    }

    private mutating func begin(_ participant: Participant, _ key: Key, _ urgency: Int) -> JoinAction {
        lastNumber += 1
        var flight = Flight(number: lastNumber, urgency: urgency)
        flight.add(participant)
        lines[key, default: Line()].flight = flight
        return .make(lastNumber)
    }

    private mutating func wait(_ participant: Participant, _ key: Key, _ urgency: Int, for run: Run?) -> JoinAction {
        lines[key]?.flight?.add(participant)
        guard let number = lines[key]?.flight?.number, urgency > lines[key]?.flight?.urgency ?? .max else {
            return .wait
        }
        lines[key]?.flight?.urgency = urgency
        return run.map { .raise($0, number) } ?? .wait
    }

    /// Returns the run that an operation shares, or `nil` if it shares none or the run is being created.
    package func run(of participant: Participant, _ key: Key) -> Run? {
        guard let flight = lines[key]?.flight, flight.participants[ObjectIdentifier(participant)] != nil,
            case .running(let run) = flight.phase
        else { return nil }
        return run
    }

    package enum LeaveAction {
        /// The operation shares no run, because it left before or `runEnded` has returned it.
        case none
        /// The operation has left, and there is no run to cancel.
        case left
        /// The operation was the last one that shared this run, so the caller must cancel the run.
        case cancel(Run)
    }

    /// Removes a shared operation that was canceled.
    package mutating func leave(_ participant: Participant, _ key: Key) -> LeaveAction {
        guard let left = lines[key]?.flight?.participants.removeValue(forKey: ObjectIdentifier(participant)) else {
            return .none
        }
        trash.append(left.participant)
        guard let flight = lines[key]?.flight, flight.participants.isEmpty else { return .left }
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
    /// The result is `nil` if all operations left in the meantime.
    package mutating func didMake(_ run: Run, _ key: Key, _ number: UInt64) -> [Run]? {
        guard lines[key]?.flight?.number == number else { return nil }
        lines[key]?.flight?.phase = .running(run)
        return lines[key]?.predecessors
    }

    /// Returns the highest priority of the operations that share this run, or `nil` if the run is over.
    package func urgency(_ key: Key, _ number: UInt64) -> Int? {
        guard let flight = lines[key]?.flight, flight.number == number else { return nil }
        return flight.urgency
    }

    /// Notes that the run has an outcome, and returns the operations to notify, in the order in which they arrived.
    package mutating func runEnded(
        _ run: Run, _ key: Key, _ number: UInt64, isCancelled: Bool, keepUntil end: OperationInstant?
    ) -> [Participant] {
        guard lines[key]?.flight?.number == number, case .running = lines[key]?.flight?.phase else { return [] }
        let participants = exchange(&lines[key, default: Line()].flight, with: nil)?.participants.values ?? [:].values
        if isCancelled { lines[key]?.predecessors.append(run) }
        if let end {
            lines[key]?.flight = Flight(number: number, phase: .kept(run, until: end, nil), urgency: 0)
        }
        removeIfEmpty(key)
        return participants.sorted { $0.order < $1.order }.map(\.participant)
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
    /// All operations that shared the work were canceled, so OperationKit canceled the work.
    public static let allAskersLeft = Self("allAskersLeft")
    /// The ``QueueManager`` that you passed to the initializer of ``SharedOperations`` did not accept the shared work.
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
