// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

/// The body of an operation that is waiting.
struct WaitingBody {
    let operation: ManagedOperation
    /// Whether the operation, if it is canceled, ends before the body returns.
    let mayOutlive: Bool
}

/// A wait of a body for another operation, as recorded in the operation of the body.
struct NotedWait {
    /// The operation that the body waits for, or the original if that operation is mapped.
    let operation: ManagedOperation
    let goal: BodyWait.Goal
    /// Whether a task waits without blocking its thread, so that canceling the operation of the body ends the wait.
    let isEndedByCancellation: Bool

    /// Returns whether the wait is still in progress, as far as this is known before the waiting body resumes.
    ///
    /// - Parameter isDecided: Whether the outcome of the body's operation is decided.
    func isLasting(isDecided: Bool) -> Bool { !(isDecided && isEndedByCancellation) && !goal.isReached(by: operation) }

    fileprivate func isSame(as other: NotedWait) -> Bool {
        operation === other.operation && goal == other.goal && isEndedByCancellation == other.isEndedByCancellation
    }
}

/// A wait of the bodies on one thread, or of the body in one task, for an operation.
///
/// The wait is recorded in the operations whose bodies wait. So ``QueueManager/explain(_:)`` can name it, and another
/// body that is about to wait can detect whether the two bodies would wait for each other.
package struct BodyWait {
    /// The event that a body waits for.
    enum Goal {
        case outcome, end

        func isReached(by operation: ManagedOperation) -> Bool {
            operation.core.withLock { core in
                self == .outcome ? core.machine.ending != nil : core.machine.isFinished
            }
        }
    }

    /// The cycle of operations that the wait completes, each waiting for the next one, or `nil` if the wait can end.
    ///
    /// Another thread may complete a cycle later. See ``lookAgain(_:)``.
    var cycle: [ManagedOperation]? { firstCycle ?? looks?.cycle }

    /// The cause for which the wait is refused, or `nil` if it can end.
    var refusal: CancellationCause? { cycle.map { .waitsForItself($0.map(\.displayName)) } }

    private let firstCycle: [ManagedOperation]?
    private let bodies: [WaitingBody]
    private let note: NotedWait
    /// The later searches, or `nil` if the first search found a cycle.
    private let looks: BodyWaitLooks?

    /// Records the wait and searches for a cycle.
    private init(_ bodies: [WaitingBody], _ note: NotedWait) {
        self.bodies = bodies
        self.note = note
        // The wait is recorded before the search. So if two bodies begin to wait for each other, at least one of them
        // sees the other.
        for body in bodies {
            body.operation.core.withLock { if !$0.machine.isFinished { $0.need().bodyWaits.append(note) } }
        }
        firstCycle = BodyWaitCycleSearch.cycle(
            from: note.operation, to: bodies, visiting: BodyWaitCycleSearch.fewOperations)
        looks = firstCycle == nil ? BodyWaitLooks(bodies, note.operation) : nil
    }

    /// Creates the wait of a canceled task if it cannot end, because it is for the body's own operation or a group
    /// around it.
    private init?(ofCanceled body: WaitingBody, _ note: NotedWait) {
        guard let cycle = BodyWaitCycleSearch.cycle(from: note.operation, to: [body], visiting: 0) else { return nil }
        (firstCycle, bodies, looks) = (cycle, [], nil)
        self.note = note
    }

    /// Records that the bodies on the calling thread, or in the calling task, are about to block the thread.
    ///
    /// - Returns: `nil` if no body runs there, or if the awaited event has already occurred.
    static func begin(for awaited: ManagedOperation, until goal: Goal) -> BodyWait? {
        if goal.isReached(by: awaited) { return nil }
        let bodies = callers
        if bodies.isEmpty { return nil }
        return BodyWait(bodies, NotedWait(operation: awaited.life, goal: goal, isEndedByCancellation: false))
    }

    /// Records that the body in the calling task is about to wait without blocking its thread.
    ///
    /// - Returns: `nil` if the task is not the body of an operation, or if the awaited event has already occurred.
    static func beginInTask(for awaited: ManagedOperation, until goal: Goal) -> BodyWait? {
        guard let body = taskBody, !goal.isReached(by: awaited) else { return nil }
        let note = NotedWait(operation: awaited.life, goal: goal, isEndedByCancellation: true)
        return Task.isCancelled ? BodyWait(ofCanceled: body, note) : BodyWait([body], note)
    }

    /// The bodies on the calling thread and in the calling task, without bodies whose operations have already ended.
    static var callers: [WaitingBody] {
        var callers: [WaitingBody] = []
        for body in ThreadNotes.current.bodies {
            let operation = body.managed
            if body.isHook, operation.isOver { continue }
            callers.append(WaitingBody(operation: operation, mayOutlive: body.isHook))
        }
        if let body = taskBody { callers.append(body) }
        return callers
    }

    private static var taskBody: WaitingBody? {
        guard let operation = BodyTasks.operation, !operation.isOver else { return nil }
        return WaitingBody(operation: operation, mayOutlive: operation.endStyle == .atOnce)
    }

    /// Searches for a cycle again at growing intervals, on the clock of the awaited operation.
    ///
    /// - Parameter whenFound: A closure that is called once, on a thread of the clock, if the wait cannot end.
    func lookAgain(_ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void) { looks?.look(whenFound: whenFound) }

    func end() {
        looks?.end()
        for body in bodies {
            body.operation.core.withLock { core in
                guard let index = core.extras?.bodyWaits.lastIndex(where: note.isSame) else { return }
                core.extras?.bodyWaits.remove(at: index)
            }
        }
    }

    /// Runs a body of an operation, or other code that must return before the operation can end.
    ///
    /// - Parameter isHook: Whether the operation does not wait for the code when it is canceled.
    package static func within<Result, Failure: Error>(
        _ operation: ManagedOperation, isHook: Bool = false, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let notes = ThreadNotes.current
        notes.bodies.append(RunningBody(operation: .passUnretained(operation), isHook: isHook))
        defer { notes.bodies.removeLast() }
        return try body()
    }
}

extension ManagedOperation {
    fileprivate var isOver: Bool { core.withLock { $0.machine.isFinished } }

    /// Reports a wait that cannot end.
    func reportCycle(_ cycle: [ManagedOperation]) {
        let names = cycle.map(\.displayName)
        OperationDiagnostics.report(.waitsForItself, by: self, CancellationCause.waitsForItself(names).message)
    }
}

/// The later searches for a cycle after a wait of bodies has begun.
///
/// Another thread may complete a cycle while the bodies wait, for example when it adds a dependency or when an
/// operation asks for a category.
private final class BodyWaitLooks: Sendable {
    private struct State {
        var timer: (any OperationTimer)?
        /// The number of the search for which the timer is set.
        var number = 0
        var cycle: [ManagedOperation]?
        var isOver = false
    }

    private static let longestPause = Duration.seconds(60)

    private let bodies: [WaitingBody]
    private let operation: ManagedOperation
    private let state = Locked(State())

    init(_ bodies: [WaitingBody], _ operation: ManagedOperation) {
        self.bodies = bodies
        self.operation = operation
    }

    var cycle: [ManagedOperation]? { state.withLock { $0.cycle } }

    func end() {
        let timer = state.withLock { state in
            state.isOver = true
            return exchange(&state.timer, with: nil)
        }
        timer?.cancel()
    }

    /// Searches for a cycle after a pause, and then repeatedly after longer pauses.
    func look(
        _ number: Int = 1, after pause: Duration = .seconds(1), on clock: (any OperationClock)? = nil,
        whenFound: @escaping @Sendable ([ManagedOperation]) -> Void
    ) {
        // An operation that has ended may have another clock.
        let clock = clock ?? operation.clock
        let timer = clock.schedule(after: pause) { [weak self] in
            guard let self, !state.withLock({ $0.isOver }) else { return }
            let most = BodyWaitCycleSearch.manyOperations
            guard let cycle = BodyWaitCycleSearch.cycle(from: operation, to: bodies, visiting: most) else {
                return look(number + 1, after: min(pause * 2, Self.longestPause), on: clock, whenFound: whenFound)
            }
            let isWanted = state.withLock { state in
                if !state.isOver { state.cycle = cycle }
                return !state.isOver
            }
            if isWanted { whenFound(cycle) }
        }
        let (old, isOver) = state.withLock { state -> ((any OperationTimer)?, Bool) in
            // The timer may have fired by now, and the timer of the next search may be stored.
            guard state.number < number else { return (nil, state.isOver) }
            state.number = number
            return (exchange(&state.timer, with: timer), state.isOver)
        }
        extendLifetime(old)
        if isOver { timer.cancel() }
    }
}

extension RunningBody {
    /// The operation, because `BodyWait.within` takes no operation of another kind.
    var managed: ManagedOperation { unsafeDowncast(operation.takeUnretainedValue(), to: ManagedOperation.self) }
}

/// The operations whose bodies run in tasks.
package enum BodyTasks {
    /// There are several tables, so that bodies that begin on different threads rarely share a lock.
    private final class Table: Sendable {
        let operations = Locked<[Int: ManagedOperation]>([:])
    }

    private static let tables = (0..<16).map { _ in Table() }

    /// Records that the calling task runs the body of an operation, and returns the number of the task.
    package static func begin(_ operation: ManagedOperation) -> Int {
        let task = currentTask
        table(of: task).operations.withLock { $0[task] = operation }
        return task
    }

    /// Records that the body of an operation in a task has returned, or that the operation no longer waits for it.
    ///
    /// If the task no longer exists, the body of another operation may have its number.
    package static func end(_ task: Int, of operation: ManagedOperation) {
        let removed = table(of: task).operations.withLock { operations in
            operations[task] === operation ? operations.removeValue(forKey: task) : nil
        }
        extendLifetime(removed)
    }

    /// The operation whose body the calling task runs, or `nil` if there is none.
    static var operation: ManagedOperation? {
        let task = currentTask
        return task == 0 ? nil : table(of: task).operations.withLock { $0[task] }
    }

    private static func table(of task: Int) -> Table { tables[task & 15] }

    /// A number that identifies the calling task among all existing tasks, or zero outside a task.
    private static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}

/// A wait of one thread for one event.
///
/// All waits of the package that block a thread use this class. While the main thread waits, it runs closures that need
/// the main thread. See ``MainThreadRelay``.
package final class BlockingWaiter: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let isWoken = Locked(false)

    package init() {}

    /// Resumes the thread, or lets a later wait return immediately.
    package func wake() {
        isWoken.withLock { $0 = true }
        semaphore.signal()
    }

    /// Blocks the calling thread until `wake` is called.
    ///
    /// If the body of an operation in a ``QueueManager`` waits, the operation releases its slot during the wait, and
    /// the awaited operation becomes the most urgent one. A thread of another pool is replaced.
    ///
    /// - Returns: `false`, without a wait, if too many threads already wait. See ``QueueManager/threadLimit``.
    @discardableResult
    package func wait(for operation: ManagedOperation? = nil) -> Bool {
        let notes = ThreadNotes.current
        // The work that this thread has delayed may be the work that it is about to wait for.
        while let work = notes.pending.popFirst() { work() }
        if wasWoken { return true }
        if MainThreadRelay.isOnMain {
            MainThreadRelay.serve(until: self)
            return true
        }
        if let worker = notes.worker, !worker.hasLeft {
            guard worker.willBlock(for: operation) else { return false }
            semaphore.wait()
            worker.didBlock()
            return true
        }
        guard let threadOwner = notes.threadOwner else {
            semaphore.wait()
            return true
        }
        guard threadOwner.threadWillWait() else { return false }
        // The hook of an operation waits, so other operations can use its slot. A run may use the slot of its asker.
        var holder = notes.bodies.last?.managed
        while let next = holder?.slotHolder { holder = next }
        let rest = holder.flatMap { $0.slotQueue?.hookWillWait(of: $0) }
        semaphore.wait()
        rest?()
        threadOwner.threadDidWait()
        return true
    }

    /// Blocks the calling thread without giving up a slot.
    package func waitInPlace() { semaphore.wait() }

    var wasWoken: Bool { isWoken.withLock { $0 } }
    func signal() { semaphore.signal() }
}

/// A relay that runs closures on the main thread, through the main queue or inside a call of this package that waits
/// there.
///
/// A Linux service may have no main loop. If its main thread waits for an operation, and a closure of that operation
/// waits for the main thread, neither would ever continue. So the closure is stored where both can find it, and
/// whichever comes first runs it.
package enum MainThreadRelay {
    /// The closures, and the nested waits of the main thread.
    private static let state = Locked<(jobs: Fifo<@Sendable () -> Void>, waiters: [BlockingWaiter])>((Fifo(), []))

    private static let mark: DispatchSpecificKey<Void> = {
        let mark = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: mark, value: ())
        return mark
    }()

    /// Whether the caller is on the main thread or the main queue.
    package static var isOnMain: Bool {
        Thread.isMainThread || DispatchQueue.getSpecific(key: mark) != nil
    }

    /// Runs `job` immediately if the caller is on the main thread, or otherwise as soon as the main thread is
    /// available.
    package static func run(_ job: @escaping @Sendable () -> Void) {
        if isOnMain { return job() }
        let waiter = state.withLock { state in
            state.jobs.append(job)
            return state.waiters.last
        }
        DispatchQueue.main.async { runNext() }
        waiter?.signal()
    }

    static func serve(until waiter: BlockingWaiter) {
        state.withLock { $0.waiters.append(waiter) }
        while !waiter.wasWoken {
            if !runNext() { waiter.waitInPlace() }
        }
        let next = state.withLock { state in
            state.waiters.removeAll { $0 === waiter }
            return state.waiters.last
        }
        // A signal for the main thread may have reached only this wait, so the enclosing wait checks again.
        next?.signal()
    }

    /// Runs the oldest job, if there is one that has not been taken.
    @discardableResult
    private static func runNext() -> Bool {
        let job = state.withLock { $0.jobs.popFirst() }
        job?()
        return job != nil
    }
}
