// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

/// A body that waits.
struct WaitingBody {
    let operation: ManagedOperation
    /// Whether the operation, if it is canceled, ends before the body returns.
    let mayOutlive: Bool
}

/// A wait of a body for another operation, as the operation of the body notes it.
struct NotedWait {
    /// The operation that is awaited.
    ///
    /// For a mapped operation it is the original.
    let operation: ManagedOperation
    let goal: BodyWait.Goal
    /// Whether a task waits without blocking its thread, so that canceling the operation of the body ends the wait.
    let isEndedByCancellation: Bool

    /// Whether the wait is still going on, as far as this can be known before the body that waits resumes.
    ///
    /// - Parameter isDecided: Whether the outcome of the body's operation is decided.
    func isLasting(isDecided: Bool) -> Bool { !(isDecided && isEndedByCancellation) && !goal.isReached(by: operation) }

    fileprivate func isSame(as other: NotedWait) -> Bool {
        operation === other.operation && goal == other.goal && isEndedByCancellation == other.isEndedByCancellation
    }
}

/// A wait of the bodies on one thread, or of the body in one task, for an operation.
///
/// The wait is noted with the operations whose bodies wait, so that ``QueueManager/explain(_:)`` can name it, and so that
/// another body that is about to wait can see whether the two would wait for each other.
package struct BodyWait {
    /// What a body waits for.
    enum Goal {
        case outcome, end

        func isReached(by operation: ManagedOperation) -> Bool {
            operation.core.withLock { core in
                self == .outcome ? core.machine.ending != nil : core.machine.isFinished
            }
        }
    }

    /// The circle of operations that the wait closes, each waiting for the next one; nil if the wait can end.
    ///
    /// Another thread may close a circle later: see ``lookAgain(_:)``.
    var circle: [ManagedOperation]? { firstCircle ?? looks?.circle }

    /// Why the wait is refused; nil if it can end.
    var refusal: CancellationCause? { circle.map { .waitsForItself($0.map(\.displayName)) } }

    private let firstCircle: [ManagedOperation]?
    private let bodies: [WaitingBody]
    private let note: NotedWait
    /// The later looks; nil if the first one has found a circle.
    private let looks: BodyWaitLooks?

    /// Notes the wait, and searches for a circle.
    private init(_ bodies: [WaitingBody], _ note: NotedWait) {
        self.bodies = bodies
        self.note = note
        // The wait is noted before the search. So of two bodies that begin to wait for each other, at least one sees
        // the other.
        for body in bodies {
            body.operation.core.withLock { if !$0.machine.isFinished { $0.need().bodyWaits.append(note) } }
        }
        firstCircle = CircleSearch.circle(from: note.operation, to: bodies, visiting: CircleSearch.fewOperations)
        looks = firstCircle == nil ? BodyWaitLooks(bodies, note.operation) : nil
    }

    /// The wait of a canceled task, which ends by itself, unless it is for its own operation or a group around it.
    private init?(ofCanceled body: WaitingBody, _ note: NotedWait) {
        guard let circle = CircleSearch.circle(from: note.operation, to: [body], visiting: 0) else { return nil }
        (firstCircle, bodies, looks) = (circle, [], nil)
        self.note = note
    }

    /// Notes that the bodies on the calling thread, or in the calling task, are about to block the thread; nil if no
    /// body runs there, or if nothing is left to wait for.
    static func begin(for awaited: ManagedOperation, until goal: Goal) -> BodyWait? {
        if goal.isReached(by: awaited) { return nil }
        let bodies = callers
        if bodies.isEmpty { return nil }
        return BodyWait(bodies, NotedWait(operation: awaited.life, goal: goal, isEndedByCancellation: false))
    }

    /// Notes that the body in the calling task is about to wait without its thread; nil if the task is not the body of
    /// an operation, or if nothing is left to wait for.
    static func beginInTask(for awaited: ManagedOperation, until goal: Goal) -> BodyWait? {
        guard let body = taskBody, !goal.isReached(by: awaited) else { return nil }
        let note = NotedWait(operation: awaited.life, goal: goal, isEndedByCancellation: true)
        return Task.isCancelled ? BodyWait(ofCanceled: body, note) : BodyWait([body], note)
    }

    /// The bodies that are the caller, on its thread or in its task, without those whose operations ended before them.
    static var callers: [WaitingBody] {
        var callers: [WaitingBody] = []
        for body in ThreadNotes.current.bodies {
            let operation = body.operation.takeUnretainedValue()
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

    /// Looks again every now and then whether the wait can end, on the clock of the awaited operation.
    ///
    /// - Parameter whenFound: Called once, on a thread of the clock, if the wait cannot end.
    func lookAgain(_ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void) { looks?.begin(whenFound) }

    func end() {
        looks?.end()
        for body in bodies {
            body.operation.core.withLock { core in
                guard let index = core.extras?.bodyWaits.lastIndex(where: note.isSame) else { return }
                core.extras?.bodyWaits.remove(at: index)
            }
        }
    }

    /// Runs a body of an operation, or other code for which its end waits.
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
    func reportCircle(_ circle: [ManagedOperation]) {
        let names = circle.map(\.displayName)
        OperationDiagnostics.report(.waitsForItself, by: self, CancellationCause.waitsForItself(names).message)
    }
}

/// The looks at a wait of bodies after it has begun.
///
/// Another thread may close a circle while the bodies wait: it adds a dependency, or an operation asks for a category.
private final class BodyWaitLooks: Sendable {
    private struct State {
        var timer: (any OperationTimer)?
        /// The number of the look for which the timer is.
        var number = 0
        var circle: [ManagedOperation]?
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

    var circle: [ManagedOperation]? { state.withLock { $0.circle } }

    func begin(_ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void) {
        look(1, after: .seconds(1), on: operation.clock, whenFound)
    }

    func end() {
        let timer = state.withLock { state in
            state.isOver = true
            return exchange(&state.timer, with: nil)
        }
        timer?.cancel()
    }

    private func look(
        _ number: Int, after pause: Duration, on clock: any OperationClock,
        _ whenFound: @escaping @Sendable ([ManagedOperation]) -> Void
    ) {
        let timer = clock.schedule(after: pause) { [weak self] in
            guard let self, !state.withLock({ $0.isOver }) else { return }
            let most = CircleSearch.manyOperations
            guard let circle = CircleSearch.circle(from: operation, to: bodies, visiting: most) else {
                return look(number + 1, after: min(pause * 2, Self.longestPause), on: clock, whenFound)
            }
            let isWanted = state.withLock { state in
                if !state.isOver { state.circle = circle }
                return !state.isOver
            }
            if isWanted { whenFound(circle) }
        }
        let (old, isOver) = state.withLock { state -> ((any OperationTimer)?, Bool) in
            // The timer may have fired by now, and that of the next look may be stored.
            guard state.number < number else { return (nil, state.isOver) }
            state.number = number
            return (exchange(&state.timer, with: timer), state.isOver)
        }
        withExtendedLifetime(old) {}
        if isOver { timer.cancel() }
    }
}

/// The operations whose bodies run in tasks.
package enum BodyTasks {
    /// Several tables, so that bodies that begin on different threads seldom share a lock.
    private final class Table: Sendable {
        let operations = Locked<[Int: ManagedOperation]>([:])
    }

    private static let tables = (0..<16).map { _ in Table() }

    /// Notes that the calling task runs the body of an operation, and returns the number of the task.
    package static func begin(_ operation: ManagedOperation) -> Int {
        let task = currentTask
        table(of: task).operations.withLock { $0[task] = operation }
        return task
    }

    /// Notes that the body of an operation in a task has returned, or that the operation no longer waits for it.
    ///
    /// If the task no longer exists, the body of another operation may have its number.
    package static func end(_ task: Int, of operation: ManagedOperation) {
        let removed = table(of: task).operations.withLock { operations in
            operations[task] === operation ? operations.removeValue(forKey: task) : nil
        }
        withExtendedLifetime(removed) {}
    }

    /// The operation whose body the calling task runs; nil if there is none.
    static var operation: ManagedOperation? {
        let task = currentTask
        return task == 0 ? nil : table(of: task).operations.withLock { $0[task] }
    }

    private static func table(of task: Int) -> Table { tables[task & 15] }

    /// A number that identifies the calling task among all tasks that exist; zero outside of tasks.
    private static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}

/// A body whose wait is over, until there is a slot for it.
struct ReturningBody: Sendable {
    /// Who goes on.
    enum Turn: Sendable {
        /// The thread that waited.
        case thread(DispatchSemaphore)
        /// Nobody's thread: what is called goes on.
        case call(@Sendable () -> Void)
    }

    let key: QueueMachine.Key
    let turn: Turn

    var hasThread: Bool {
        if case .thread = turn { true } else { false }
    }

    /// There is a slot, or the operation ended.
    func grant() {
        switch turn {
        case .thread(let semaphore): semaphore.signal()
        // It may run what is the user's, and end its operation, whereupon another one goes on.
        case .call(let goOn): DispatchQueue.global().async(execute: goOn)
        }
    }
}

/// Those, in the order in which they came.
struct ReturningLine {
    private var bodies = Fifo<ReturningBody>()
    /// How many of them are threads.
    private(set) var threads = 0

    var isEmpty: Bool { bodies.isEmpty }
    var count: Int { bodies.count }
    var first: ReturningBody? { bodies.first }

    mutating func append(_ body: ReturningBody) {
        if body.hasThread { threads += 1 }
        bodies.append(body)
    }

    mutating func removeFirst() {
        if bodies.popFirst()?.hasThread == true { threads -= 1 }
    }

    /// Takes out the threads of that entry.
    mutating func removeThreads(of key: QueueMachine.Key) -> [ReturningBody] {
        let removed = bodies.removeAll {
            $0.hasThread && $0.key.slot == key.slot && $0.key.generation == key.generation
        }
        threads -= removed.count
        return removed
    }
}

/// One thread that waits for one event.
///
/// All waits of the library that block a thread go through here.
///
/// While it is the main thread that waits, closures meant for it go on: see ``MainThreadRelay``.
package final class BlockingWaiter: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let isWoken = Locked(false)

    package init() {}

    /// Lets the thread go on, or lets it pass if it has not come yet.
    package func wake() {
        isWoken.withLock { $0 = true }
        semaphore.signal()
    }

    /// Blocks the calling thread until `wake` was called.
    ///
    /// The body of an operation that a ``QueueManager`` runs gives up its slot meanwhile, and what it waits for comes
    /// first. A thread of another pool is replaced. False, and it returns at once, if it would be one wait too many: see
    /// ``QueueManager/threadLimit``.
    @discardableResult
    package func wait(for operation: ManagedOperation? = nil) -> Bool {
        let notes = ThreadNotes.current
        // What this thread put off may be what it is about to wait for.
        while let work = notes.pending.popFirst() { work() }
        if hasBeenWoken { return true }
        if MainThreadRelay.isOnMain {
            MainThreadRelay.serve(until: self)
            return true
        }
        guard let seat = notes.seat, !seat.hasLeft else {
            guard let lender = notes.lender else {
                semaphore.wait()
                return true
            }
            guard lender.threadWillWait() else { return false }
            // A hook of an operation waits: others of its queue run in its stead.
            let body = notes.bodies.last?.operation.takeUnretainedValue()
            let rest = body.flatMap { $0.placeHost?.hookWillWait(of: $0) }
            semaphore.wait()
            rest?.end()
            lender.threadDidWait()
            return true
        }
        return seat.slot >= 0 ? wait(within: seat, for: operation) : wait(between: seat, for: operation)
    }

    /// A body waits.
    private func wait(within seat: WorkerSeat, for operation: ManagedOperation?) -> Bool {
        guard seat.engine.source.beginRest() else { return false }
        // Before the slot is given up, so that it goes to what is waited for.
        operation?.raise(forBodyOf: seat.urgency)
        seat.engine.bodyWillWait(seat)
        semaphore.wait()
        seat.engine.bodyDidWait(seat)
        seat.engine.source.endRest()
        return true
    }

    /// Something waits that the thread lets go of after one body and before the next.
    private func wait(between seat: WorkerSeat, for operation: ManagedOperation?) -> Bool {
        seat.engine.threadWillWait(seat)
        defer { seat.engine.threadDidWait() }
        guard seat.engine.source.beginRest() else { return false }
        operation?.raise(forBodyOf: .veryLow)
        semaphore.wait()
        seat.engine.source.endRest()
        return true
    }

    /// Blocks the calling thread without giving up a slot.
    package func waitInPlace() { semaphore.wait() }

    var hasBeenWoken: Bool { isWoken.withLock { $0 } }
    func waitForSignal() { semaphore.wait() }
    func signal() { semaphore.signal() }
}
